// Without it a stalled target would also stall the load, and so hide its own latency.

import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createCapacity, isGeneratorError, reasonOf } from '../../../../tools/load/replay/generator-errors.ts'
import { generatorOf } from '../../../../tools/load/replay/load.ts'
import type { Pace } from '../../../../tools/load/replay/pace.ts'
import { listenOn } from '../../../support/listening.ts'
import { until } from '../../../support/until.ts'
import { ok, startTarget } from './scripted-target.ts'
import { arriving, every, sendSome } from './send-some.ts'

t.test('while the target stalls, requests stay due, and their latency counts from then', async t => {
  const target = await startTarget(t)
  target.hold()
  const { ended, answers, recorder } = await sendSome(target.url, arriving(every(5, 10)), { connections: 2 })
  await until('two requests are in flight', () => target.received.length === 2)
  const stalled = performance.now()
  await until('the last was due for more than 10 ms', () => performance.now() - stalled > 70)
  t.equal(target.received.length, 2, 'the others have no connection')
  target.release()
  await ended
  t.equal(answers.length, 10)
  const dues = answers.map(({ dueAt }) => dueAt).sort((a, b) => a - b)
  t.strictSame(dues, every(5, 10))
  for (const { dueAt, sentAt, endedAt } of answers) {
    t.ok(sentAt >= dueAt && endedAt >= sentAt, `${dueAt}: sent at ${sentAt}, ended at ${endedAt}`)
    t.ok(endedAt >= 70, 'none was answered during the stall')
  }
  t.ok(recorder.counts.late >= 8, `${recorder.counts.late} were late`)
  t.equal(recorder.counts.dropped, 0)
})

t.test('recorded gaps are divided by the speed, and a rate is even, in the order of arrival', async t => {
  const evenly: Partial<Pace> = { mode: 'rate', rate: 400, loop: true, durationMs: 20 }
  for (const [instants, pace, dues, paths] of [
    [[400, 0, 100], { speed: 10 }, [0, 10, 40], '/1/2/0'],
    [[0, 7_000, 9_000], evenly, [0, 2.5, 5, 7.5, 10, 12.5, 15, 17.5], '/0/1/2/0/1/2/0/1'],
  ] as const) {
    const target = await startTarget(t)
    const requests = arriving(instants).map((request, i) => ({ ...request, path: `/${i}` }))
    const { ended, answers } = await sendSome(target.url, requests, { pace, connections: 1 })
    await ended
    const found = answers.map(({ dueAt }) => dueAt).sort((a, b) => a - b)
    t.strictSame([found, target.received.map(({ path }) => path).join('')], [dues, paths])
    for (const { dueAt, sentAt } of answers) t.ok(sentAt >= dueAt, 'none is sent early')
  }
})

t.test('in a closed loop each connection sends its next request after the answer', async t => {
  const target = await startTarget(t)
  target.hold()
  const pace = { mode: 'closed' } as const
  const { ended, recorder } = await sendSome(target.url, arriving(every(0, 20)), { pace, connections: 4 })
  await until('four are in flight', () => target.received.length === 4)
  target.release()
  await ended
  t.equal(target.connections, 4)
  t.match(recorder.counts, { sent: 20, answered: 20, late: 0, dropped: 0 })
})

for (const [mode, pace, count, least] of [
  ['a closed loop', { mode: 'closed', loop: true, durationMs: 300 }, 1, 300],
  ['a closed loop over a file', { mode: 'closed' }, 2, 2_000],
  ['recorded arrivals', {}, 20, 285],
] as const)
  t.test(`a target that stands still to the end of ${mode} is part of how long it ran`, async t => {
    let answered = 0
    const target = await startTarget(t, () => (answered++ === 0 ? ok() : undefined))
    const options = { pace, connections: 1, timeoutMs: 2_000, queueTimeoutMs: 100 }
    const { ended, recorder, sentFor } = await sendSome(target.url, arriving(every(15, count)), options)
    await ended
    t.equal(recorder.counts.answered, 1)
    t.ok(sentFor() >= least, `${sentFor()} ms`)
  })

t.test('key, accept-encoding, method and host are sent as they are to be', async t => {
  const target = await startTarget(t, ({ method }) =>
    method === 'HEAD' ? 'HTTP/1.1 200 OK\r\ncontent-length: 10000\r\n\r\n' : ok(),
  )
  const requests = [
    ...arriving([0], { key: 'a', accepts: 'gzip, br' }),
    ...arriving([1], { method: 'HEAD' }),
    ...arriving([2], { key: 'b' }),
  ]
  const keys = [undefined, 'svc_live_a', 'svc_live_b']
  const { ended, answers } = await sendSome(target.url, requests, { keys, connections: 1 })
  await ended
  t.equal(answers.length, 3, 'the head of a long body is a whole answer')
  const [first, second, third] = target.received
  const host = `127.0.0.1:${target.port}`
  t.strictSame(first?.headers, { host, 'accept-encoding': 'gzip, br', 'x-api-key': 'svc_live_a' })
  t.strictSame([second?.method, second?.headers], ['HEAD', { host }])
  t.equal(third?.headers['x-api-key'], 'svc_live_b')
  t.equal(target.connections, 1, 'the connection is kept')
})

t.test('a conditional request has the ETag last seen of its path and encoding, the first none', async t => {
  let answered = 0
  const target = await startTarget(t, ({ headers }) =>
    headers['if-none-match'] === '"2"'
      ? 'HTTP/1.1 304 Not Modified\r\netag: "2"\r\n\r\n'
      : ok('{}', `etag: "${++answered}"\r\n`),
  )
  const conditional = { conditional: true, accepts: 'gzip' }
  const requests = [
    ...arriving([0, 1, 2], conditional),
    ...arriving([3], { conditional: true, accepts: 'br' }),
    ...arriving([4], { accepts: 'gzip' }),
  ]
  const { ended, recorder } = await sendSome(target.url, requests, { connections: 1 })
  await ended
  const etags = target.received.map(({ headers }) => headers['if-none-match'])
  t.strictSame(etags, [undefined, '"1"', '"2"', undefined, undefined])
  t.strictSame(recorder.counts.statuses, { 200: 4, 304: 1 })
})

t.test('what the cache did and how old the weather is comes from the head', async t => {
  const target = await startTarget(t, () =>
    ok(
      '{}',
      'Cache-Status: abohawa; hit; ttl=412; detail=memory; key="23.8,90.4"\r\ndate: Sat, 21 Nov 2026 06:10:00 GMT\r\nlast-modified: Sat, 21 Nov 2026 06:00:00 GMT\r\n',
    ),
  )
  const { ended, answers } = await sendSome(target.url, arriving([0]))
  await ended
  t.hasStrict(answers, [{ endpoint: 'weather', outcome: 'hit', status: 200, ageSeconds: 600 }])
})

t.test('a request on a kept connection that the target has closed is sent again, once', async t => {
  let requests = 0
  const target = await startTarget(t, (_request, socket) => {
    requests += 1
    if (requests !== 2) return ok()
    socket.resetAndDestroy()
    return undefined
  })
  const { ended, recorder } = await sendSome(target.url, arriving([0, 20, 40]), { connections: 1 })
  await ended
  t.match(recorder.counts, { sent: 3, answered: 3, failed: {} })
  t.equal(target.received.length, 4)
})

t.test('an open loop opens some connections before it uses one again, and uses them in turn', async t => {
  const target = await startTarget(t)
  const few = await sendSome(target.url, arriving(every(15, 16)), { connections: 4 })
  await few.ended
  const usesOf = (number: number) => target.received.filter(({ connection }) => connection === number).length
  const uses = [0, 1, 2, 3].map(usesOf)
  // On a busy machine some wait, and then the first to be free takes one more.
  t.ok(Math.min(...uses) >= 2, `${uses}`)

  const spread = await startTarget(t)
  const many = await sendSome(spread.url, arriving(every(5, 16)), { connections: 256 })
  await many.ended
  t.equal(spread.connections, 16)
})

t.test('a closed loop that no connection reaches pauses', async t => {
  const server = createServer(socket => socket.on('error', () => {}).end('no TLS is spoken here\r\n'))
  const port = await listenOn(t, server)
  const pace = { mode: 'closed', loop: true, durationMs: 300 } as const
  const options = { pace, connections: 2 }
  const { ended, recorder } = await sendSome(`https://127.0.0.1:${port}`, arriving([0]), options)
  await ended
  const { sent, failed } = recorder.counts
  t.strictSame(failed, { connection: sent })
  t.ok(sent > 0 && sent <= 10, `${sent} were tried`)
})

t.test('a limit of the machine that sends is no failure of the target', async t => {
  const fault = (code: string, errors?: Error[]) => Object.assign(new Error(code), { code, errors })
  for (const code of ['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM'])
    t.ok(isGeneratorError(reasonOf(fault(code))), code)
  const unroutable = fault('EADDRNOTAVAIL')
  t.equal(reasonOf(fault('EADDRNOTAVAIL', [unroutable, fault('ECONNREFUSED')])), 'refused')
  t.ok(isGeneratorError(reasonOf(fault('EADDRNOTAVAIL', [unroutable, unroutable]))))
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH'])
    t.notOk(isGeneratorError(reasonOf(fault(code))))

  const capacity = createCapacity(5)
  t.ok(capacity.allows(4))
  capacity.limited(3)
  t.notOk(capacity.allows(0), 'paused')
  t.hasStrict(generatorOf([{ cpuShare: 0.2, loopDelayP99: 1, lateP99: 1, limit: 'no file is left' }], true), {
    saturated: true,
    limited: true,
    reason: 'no file is left',
  })
})

t.test('what has no answer has a reason', async t => {
  const target = await startTarget(t, ({ path }, socket) => {
    if (path === '/reset') socket.resetAndDestroy()
    if (path === '/short') socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf')
    return path === '/nonsense' ? '220 mail.example.org ESMTP\r\n\r\n' : undefined
  })
  const paths = ['/reset', '/short', '/nonsense']
  const requests = paths.flatMap(path => arriving([0], { path }))
  const broken = await sendSome(target.url, requests)
  await broken.ended
  const reasonsOf = (failures: typeof broken.failures) => failures.map(([reason]) => reason).sort()
  t.strictSame(reasonsOf(broken.failures), ['closed', 'protocol', 'reset'])
  t.match(broken.recorder.counts, { sent: 3, answered: 0 })

  const slow = await sendSome(target.url, arriving([0], { path: '/never' }), { timeoutMs: 50 })
  await slow.ended
  t.strictSame(reasonsOf(slow.failures), ['timeout'])

  const gone = await sendSome('http://127.0.0.1:1', arriving([0, 1]))
  await gone.ended
  t.strictSame(reasonsOf(gone.failures), ['refused', 'refused'])
})

t.test('a stop sends nothing more, drops what waits, and counts what was answered', async t => {
  const target = await startTarget(t)
  target.hold()
  const requests = arriving([...every(0, 5), 3_600_000])
  const { ended, stop, recorder, sentFor } = await sendSome(target.url, requests, { connections: 2 })
  const since = performance.now()
  await until('two are in flight', () => target.received.length === 2)
  await until('some time has passed', () => performance.now() - since > 60)
  stop()
  target.release()
  await ended
  t.ok(sentFor() >= 60, `${sentFor()} ms until it was ended`)
  t.match(recorder.counts, { sent: 2, answered: 2, dropped: 3, failed: {} })
})

t.test('through a Unix socket', async t => {
  // Not in the folder of the test: the path of a socket has at most 107 bytes.
  const folder = mkdtempSync(join(tmpdir(), 'abohawa-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'target.sock')
  const target = await startTarget(t, () => ok(), { path })
  const { ended, recorder } = await sendSome(target.url, arriving([0, 1]))
  await ended
  t.match(recorder.counts, { answered: 2, failed: {} })
  t.equal(target.received[0]?.headers.host, 'localhost')
})

t.test('a sender that could not keep up says so', async t => {
  const target = await startTarget(t)
  const { ended, load } = await sendSome(target.url, arriving(every(1, 100)))
  // The event loop stands still: the requests are noticed late.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
  await ended
  const { lateP99 } = load.form()
  t.ok(lateP99 > 100, `${lateP99} ms late`)
  t.match(generatorOf([load.form()], false), { saturated: true, reason: /load generator/ })
  const quiet = { cpuShare: 0.2, loopDelayP99: 1, lateP99: 1 }
  t.match(generatorOf([quiet], false), { saturated: false, reason: null })
})
