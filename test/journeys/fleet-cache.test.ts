// What the cache of a fleet promises, in small: one request for a cell that everybody wants, however a process or Redis
// ends meanwhile; weather for the right time through an outage. The benchmark of the cache has the same in large.

import t from 'tap'
import { measureProviderOutage } from '../scenarios/provider-outage.ts'
import { killLeaseHolder, killRedis, measureStampede, startFleet } from '../scenarios/stampede.ts'
import { withoutOwnRedis } from '../support/redis-server.ts'

const size = { processes: 3, callersEach: 40 }
const path = '/api/v1/weather/coords/23.7/90.4'
const answered = (answers: readonly { status: number }[]) =>
  answers.filter(({ status }) => status === 200).length
const skip = withoutOwnRedis
// A machine that is held up is neither an outage of Redis nor the death of a process.
const patient = { ABOHAWA_REDIS__COMMAND_TIMEOUT: '10s', ABOHAWA_CACHE__LEASE_FOR: '5s' }

t.test('a cell that all processes are asked for at once is asked of the provider once', { skip }, async t => {
  const { calls, answers } = await measureStampede(await startFleet(t, size, patient), path)
  t.equal(calls, 1)
  t.equal(answered(answers), 120)
})

t.test(
  'when the process that fetches is killed another fetches, and all callers of the others are answered',
  {
    skip,
  },
  async t => {
    const { calls, answers } = await killLeaseHolder(await startFleet(t, size, patient), path)
    t.equal(calls, 2)
    t.equal(answered(answers), 80)
  },
)

t.test(
  'when Redis ends while everybody waits, each process fetches for itself at most once',
  {
    skip,
  },
  async t => {
    const { calls, answers } = await killRedis(await startFleet(t, size), path)
    t.ok(calls >= 1 && calls <= size.processes, `${calls} requests`)
    t.equal(answered(answers), 120)
  },
)

t.test(
  'through an outage every cell answers for the right time, and the provider is left in peace',
  async t => {
    const found = await measureProviderOutage(t, { cells: 20, hours: 6, stepMinutes: 120, tickMs: 0 })
    t.equal(found.requests, 60)
    t.equal(found.failed, 0)
    t.equal(found.wrong, 0)
    t.ok(found.calls <= found.allowed, `${found.calls} requests, ${found.allowed} allowed`)
    t.equal(found.notBack, 0, 'all are fresh again')
  },
)
