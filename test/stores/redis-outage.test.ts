// A single Redis that hangs, or is stopped and started again.

import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t from 'tap'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { startRedisProcess } from '../support/redis-process.ts'
import { withoutOwnRedis } from '../support/redis-server.ts'
import { inTurn, recordingObserver, wentAndCameBack } from '../support/store-recovery.ts'
import { until } from '../support/until.ts'
import { messagesArrive } from '../support/usage-instance.ts'
import { workedMs } from '../support/work-time.ts'

if (withoutOwnRedis) t.bailout(withoutOwnRedis)

const timeouts = { connectTimeoutMs: 500, commandTimeoutMs: 200 }

t.test('a Redis that hangs fails commands in time; its outage and its return are reported', async t => {
  const events: string[] = []
  const server = await startRedisProcess()
  t.teardown(server.stop)
  const store = await openRedisStore(
    { ...timeouts, url: `redis://${server.address}`, prefix: 'x:' },
    recordingObserver(events),
  )
  t.teardown(() => store.close())
  server.signal('SIGSTOP')
  const from = workedMs()
  await t.rejects(store.ping(), {
    name: 'StoreError',
    message: 'Redis failed: it did not answer within 200 ms',
  })
  t.ok(workedMs() - from < 600, `failed after ${workedMs() - from} ms`)
  await until('it is taken for away', async () => events.length > 0)
  const startedAt = workedMs()
  await t.rejects(store.ping(), {
    name: 'StoreError',
    message: 'Redis failed: it did not answer within 400 ms',
  })
  t.ok(workedMs() - startedAt < 100, 'then commands fail at once')
  server.signal('SIGCONT')
  await until('it works again', async () => {
    await store.ping()
    return true
  })
  await until('its return is reported', async () => events.at(-1) === 'back')
  t.equal(events[0], 'away: it did not answer within 400 ms')
  t.match(inTurn(events), wentAndCameBack)
})

t.test('a Redis that is restarted is reported away and back, and messages arrive again', async t => {
  const events: string[] = []
  const first = await startRedisProcess()
  const store = await openRedisStore(
    { ...timeouts, url: `redis://${first.address}`, prefix: 'x:' },
    { redisAway: () => events.push('away'), redisBack: () => events.push('back') },
  )
  t.teardown(() => store.close())
  await messagesArrive(store)
  await first.stop()
  await until('it is away', async () => events.length > 0)
  await t.rejects(store.ping(), { name: 'StoreError' })
  await t.rejects(store.appendChangeRecord('purges', '{}', Date.now() + 60_000), {
    message: 'Redis failed: there is no connection to it',
  })
  const again = await startRedisProcess({ port: first.port })
  t.teardown(again.stop)
  await messagesArrive(store)
  t.match(inTurn(events), wentAndCameBack)
})

t.test(
  'a Redis that became a replica under many commands is away, left once, and back as a master only',
  async t => {
    const events: string[] = []
    const warnings: string[] = []
    const onWarning = ({ message }: Error) => warnings.push(message)
    process.on('warning', onWarning)
    t.teardown(() => process.off('warning', onWarning))
    const server = await startRedisProcess()
    t.teardown(server.stop)
    const store = await openRedisStore(
      { ...timeouts, url: `redis://${server.address}`, prefix: 'x:' },
      recordingObserver(events),
    )
    t.teardown(() => store.close())
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
  },
)

t.test('a start without an answer ends soon: what else may be wrong is looked at together', async t => {
  const silent = createServer(socket => sockets.add(socket))
  const sockets = new Set<Socket>()
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const { port } = silent.address() as AddressInfo
  const from = workedMs()
  await t.rejects(
    openRedisStore(
      { url: `redis://127.0.0.1:${port}`, prefix: 'x:', connectTimeoutMs: 5_000, commandTimeoutMs: 200 },
      { redisAway: () => {}, redisBack: () => {} },
    ),
    { message: /did not answer within [24]00 ms/ },
  )
  const tookMs = workedMs() - from
  t.ok(tookMs < 2_500, `after ${Math.round(tookMs)} ms`)
})

t.test('a closed store does not report Redis away', async t => {
  const server = await startRedisProcess()
  t.teardown(server.stop)
  const store = await openRedisStore(
    { ...timeouts, url: `redis://${server.address}`, prefix: 'x:' },
    { redisAway: () => t.fail(), redisBack: () => t.fail() },
  )
  await store.close()
  await until(
    'the connection is gone',
    async () =>
      String(await server.admin.client('LIST'))
        .trim()
        .split('\n').length === 1,
  )
})

t.test('a Redis that refuses the password after a change is reported with its reason', async t => {
  const events: string[] = []
  const server = await startRedisProcess({ args: ['--requirepass', 'former'], password: 'former' })
  t.teardown(server.stop)
  const store = await openRedisStore(
    { ...timeouts, url: `redis://:former@${server.address}`, prefix: 'x:' },
    recordingObserver(events),
  )
  t.teardown(() => store.close())
  await server.admin.config('SET', 'requirepass', 'later')
  await server.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await until('the reason is reported', async () => events.some(reason => reason.includes('WRONGPASS')))
  await t.rejects(store.ping(), { name: 'StoreError', message: /^Redis failed: .*WRONGPASS/ })
  t.equal(events.filter(reason => reason.includes('WRONGPASS')).length, 1, 'and once')
  await server.admin.config('SET', 'requirepass', 'former')
  await until('it works again', async () => {
    await store.ping()
    return true
  })
  await until('its return is reported', async () => events.at(-1) === 'back')
})
