// Without it a Redis that hangs, restarts or becomes a replica would hold up requests or be reported with a wrong reason.

import { createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { listenOn } from '../support/listening.ts'
import { startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { patient, quiet } from '../support/redis-store.ts'
import { skipFileIf } from '../support/skip-file.ts'
import { patienceMs, until } from '../support/until.ts'
import { inTurn, recordingObserver, wentAndCameBack } from './store-recovery.ts'
import { messagesArrive } from './usage-instance.ts'

skipFileIf(t, withoutOwnRedis)

/** Where Redis hangs. A busy machine is faster when it is well. */
const hurried = { connectTimeoutMs: 5_000, commandTimeoutMs: 2_000 }

/** A Redis of the test, a store on it, and what its observer saw. */
const setUp = async (t: Test, setting: Parameters<typeof startRedis>[1] = {}, timeouts = patient) => {
  const events: string[] = []
  const server = await startRedis(t, setting)
  const user = setting.password ? `:${setting.password}@` : ''
  const place = { ...timeouts, url: `redis://${user}${server.address}`, prefix: 'x:' }
  const store = await openRedisStore(place, recordingObserver(events))
  t.teardown(() => store.close())
  const worksAgain = async () => {
    await until('it works again', () => store.ping().then(() => true))
    await until('its return is reported', () => events.at(-1) === 'back')
  }
  return { events, server, store, worksAgain }
}
const noAnswerIn = (ms: number) => `it did not answer within ${ms} ms`

t.test('a Redis that hangs fails commands in time; its outage and its return are reported', async t => {
  const { events, server, store, worksAgain } = await setUp(t, {}, hurried)
  server.signal('SIGSTOP')
  await t.rejects(store.ping(), { name: 'StoreError', message: `Redis failed: ${noAnswerIn(2_000)}` })
  await until('it is taken for away', async () => events.length > 0)
  const reason = 'the reason of the outage: the command was not sent'
  await t.rejects(store.ping(), { name: 'StoreError', message: `Redis failed: ${noAnswerIn(4_000)}` }, reason)
  server.signal('SIGCONT')
  await worksAgain()
  t.equal(events[0], `away: ${noAnswerIn(4_000)}`)
  t.match(inTurn(events), wentAndCameBack)
})

t.test('a Redis that is restarted is reported away and back, and messages arrive again', async t => {
  const { events, server: first, store } = await setUp(t)
  await messagesArrive(store)
  await first.kill()
  await until('it is away', async () => events.length > 0)
  await t.rejects(store.ping(), { name: 'StoreError', code: 'store_unavailable' })
  await t.rejects(store.appendChangeRecord('purges', '{}', Date.now() + 60_000), {
    message: /^Redis failed: (the connection was closed|connect ECONNREFUSED|read ECONNRESET)/,
  })
  await first.start()
  await messagesArrive(store)
  t.match(inTurn(events), wentAndCameBack)
})

t.test('a Redis that loads its file is asked again soon, however long it expects to load', async t => {
  const { events, server } = await setUp(t)
  await server.kill()
  await until('it is away', async () => events.length > 0)
  const delays = new Set<unknown>()
  const begin = setTimeout
  const noting: typeof begin = Object.assign((...given: Parameters<typeof begin>) => {
    delays.add(given[1])
    return begin(...given)
  }, begin)
  t.intercept(globalThis, 'setTimeout', { value: noting })
  let asked = 0
  const text = 'loading:1\r\nloading_eta_seconds:3600\r\n'
  const loading = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', sent => {
      // The client knows older versions of the protocol.
      if (/hello/i.test(String(sent))) socket.write('-NOPROTO unsupported protocol version\r\n')
      const times = String(sent).match(/info/gi)?.length ?? 0
      asked += times
      socket.write(`$${text.length}\r\n${text}\r\n`.repeat(times))
    })
  }).listen(server.port, '127.0.0.1')
  t.teardown(() => loading.close())
  await until('it was asked again', () => asked >= 2)
  t.ok(delays.has(500))
  t.notOk(delays.has(10_000), 'the time that the client would wait by itself')
})

t.test('a Redis that became a replica is away, left once, and back as a master only', async t => {
  const warnings: string[] = []
  const onWarning = ({ message }: Error) => warnings.push(message)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const { events, server, store } = await setUp(t)
  const later = Date.now() + 60_000
  const connections = async () =>
    Number(/total_connections_received:(\d+)/.exec(await server.admin.info('stats'))?.[1])
  await server.admin.replicaof('127.0.0.1', '1')
  const before = await connections()
  const written = await Promise.allSettled(
    Array.from({ length: 30 }, (_, i) => store.appendChangeRecord('keys', `${i}`, later)),
  )
  for (const each of written) t.match(each, { status: 'rejected', reason: { name: 'StoreError' } })
  await until('it was tried three times', async () => (await connections()) - before >= 3)
  t.strictSame(events, ['away: it is a replica, which takes no writes'])
  await t.rejects(store.ping(), { message: 'Redis failed: it is a replica, which takes no writes' })
  await server.admin.replicaof('no', 'one')
  await until('it has come back', async () => events.length > 1)
  t.equal(events[1], 'back')
  await store.appendChangeRecord('keys', 'x', later)
  t.equal(events.length, 2)
  t.strictSame(warnings, [])
})

t.test('what follows the first refused write names the replica too', async t => {
  const { server, store } = await setUp(t)
  await server.admin.replicaof('127.0.0.1', '1')
  // Its first write, the number of the format, may fail without a word.
  const subscriber = { id: 'sub_1', name: 'First', createdAt: Date.now(), revokedAt: null }
  await t.rejects(store.ensureSubscriber(subscriber), {
    name: 'StoreError',
    message: 'Redis failed: it is a replica, which takes no writes',
  })
})

t.test('a start without an answer waits for a command, and not as long as for a connection', async t => {
  const silent = createServer(socket => sockets.add(socket))
  const sockets = new Set<Socket>()
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  const port = await listenOn(t, silent)
  const place = { ...hurried, connectTimeoutMs: patienceMs, url: `redis://127.0.0.1:${port}`, prefix: 'x:' }
  await t.rejects(openRedisStore(place, quiet), { message: /did not answer within [24]000 ms/ })
})

t.test('a closed store does not report Redis away', async t => {
  const { events, server, store } = await setUp(t)
  await store.close()
  const clients = async () =>
    String(await server.admin.client('LIST'))
      .trim()
      .split('\n')
  await until('the connection is gone', async () => (await clients()).length === 1)
  t.strictSame(events, [])
})

t.test('a Redis that refuses the password after a change is reported with its reason', async t => {
  const { events, server, store, worksAgain } = await setUp(t, {
    args: ['--requirepass', 'former'],
    password: 'former',
  })
  await server.admin.config('SET', 'requirepass', 'later')
  await server.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await until('the reason is reported', async () => events.some(reason => reason.includes('WRONGPASS')))
  await t.rejects(store.ping(), { name: 'StoreError', message: /^Redis failed: .*WRONGPASS/ })
  t.equal(events.filter(reason => reason.includes('WRONGPASS')).length, 1, 'and once')
  await server.admin.config('SET', 'requirepass', 'former')
  await worksAgain()
})
