// Which sockets a process inherits, by the environment that sd_listen_fds(3) describes.

import t from 'tap'
import { inheritedSockets } from '../../src/gateway/inherited-sockets.ts'

const pid = 4711
const inherited = (count: string, names?: string, of = String(pid)) =>
  inheritedSockets({ LISTEN_PID: of, LISTEN_FDS: count, LISTEN_FDNAMES: names }, pid)

t.test('by name, and the first for the API whatever its name is', async t => {
  t.strictSame(inherited('1'), { api: 3 })
  t.strictSame(inherited('1', ''), { api: 3 })
  t.strictSame(inherited('1', 'abohawa.socket'), { api: 3 })
  t.strictSame(inherited('1', 'ops'), { ops: 3 })
  t.strictSame(inherited('3', 'health:ops:api'), { health: 3, ops: 4, api: 5 })
  t.strictSame(inherited('2', 'abohawa.socket:ops'), { api: 3, ops: 4 })
})

t.test('what is for another process, or not there, is nothing', async t => {
  t.strictSame(inheritedSockets({}, pid), {})
  t.strictSame(inherited('1', 'api', '4712'), {})
  t.strictSame(inherited('1', 'api', ''), {})
})

t.test('a wrong count, and a socket for no listener, are refused with a sentence', async t => {
  for (const [count, names, message] of [
    ['', 'api', /^LISTEN_FDS is "", but must be a number of sockets$/],
    ['0', '', /^LISTEN_FDS is "0", but/],
    ['-1', '', /^LISTEN_FDS is "-1", but/],
    ['2', 'api', /^LISTEN_FDNAMES is "api", but must have 2 names, as LISTEN_FDS says$/],
    [
      '2',
      undefined,
      /^socket 2 of 2 that this process inherits is named ""; allowed: one each named api, ops/,
    ],
    ['2', 'api:api', /^socket 2 of 2 that this process inherits is named "api";/],
    ['2', 'api:other', /^socket 2 of 2 that this process inherits is named "other";/],
    ['2', 'one:api', /^socket 2 of 2 that this process inherits is named "api";/],
  ] as const)
    t.throws(() => inherited(count, names), { name: 'InputError', message }, `${count} ${names}`)
})
