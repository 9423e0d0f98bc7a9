// Without it moved slots, a lost master or a script over two slots would lose counts on a Redis Cluster.

import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { usageTag } from '../../src/stores/redis/key-names.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { withOneWrite } from '../../src/stores/redis/server.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { freePort } from '../support/listening.ts'
import { runCommand } from '../support/process.ts'
import { account, makeAccount, refusals } from '../support/redis-account.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { patientRedisEnv, type RedisProcess, startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { patient, quiet } from '../support/redis-store.ts'
import { skipFileIf } from '../support/skip-file.ts'
import { until } from '../support/until.ts'
import { spendingStep, spendingWindow, usedIn } from './spending.ts'
import { storeContract } from './store-contract.ts'
import { checkFailover, recordingObserver } from './store-recovery.ts'
import { instanceOn, messagesArrive } from './usage-instance.ts'

skipFileIf(t, withoutOwnRedis)

/** Where a node hangs. A busy machine is faster when it is well. */
const hurried = { connectTimeoutMs: 5_000, commandTimeoutMs: 2_000 }
const cluster = await startCluster(t)
for (const { admin } of cluster.nodes) await makeAccount(admin, true)
const url = cluster.url.replace('//', `//${account.user}:${account.password}@`)

let opened = 0
const open = async (t: Test, { events = [] as string[], timeouts = patient, of = cluster } = {}) => {
  const prefix = `abohawa:${opened++}:`
  const store = await openRedisStore(
    {
      ...{ ...timeouts, mode: 'cluster', prefix },
      url: of === cluster ? url : of.url,
      nodes: of.nodes.slice(1, 3).map(node => node.address),
    },
    recordingObserver(events),
  )
  t.teardown(() => store.close())
  return { store, prefix }
}

storeContract(t, 'cluster', async t => (await open(t)).store)

const later = Date.now() + 3_600_000

t.test('everything at once, over keys of all masters, goes to the right node', async t => {
  const { store } = await open(t)
  const windows = ['minute:1', 'minute:2', 'hour:1'].map(name =>
    spendingWindow({ name, limit: 1e9, keepUntil: later }),
  )
  const more = [spendingWindow({ name: 'hour:1', keepUntil: later, added: { charged: 1, refunded: 0 } })]
  const now = Date.now()
  const instances = Array.from({ length: 30 }, (_, i) => instanceOn(store, `instance-${i}`))
  for (let round = 0; round < 20; round++)
    await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        const name = `cell-${i}`
        await Promise.all([
          instances[i]?.({ keyId: `key_${i}`, limit: 1e6 }),
          store.usedOn(`key_${i}`, ['2126-11-21', '2126-11-20']),
          store.spend(spendingStep({ provider: `acc${i}`, windows, wanted: 3_000, now })),
          store.spend(spendingStep({ provider: `acc${i}`, windows: more, now })),
          store.writeBytes(name, Buffer.from(name), later),
          store.readBytes(name),
          store.acquireLease(name, 'one', 1_000),
          store.appendChangeRecord(i % 2 ? 'keys' : 'purges', 'x', later),
          store.deleteBytes([name, `${name}-other`]),
        ])
      }),
    )
  t.strictSame(await usedIn(store, 'acc7', ['minute:1', 'hour:1'], now), [60_000, 60_020])
  t.strictSame(await store.usedOn('key_7', ['2126-11-21']), [20])
})

t.test('its memory is that of the master with least room', async t => {
  const { store } = await open(t)
  const [first] = cluster.nodes
  await first?.admin.config('SET', 'maxmemory', 50_000_000)
  t.match(await store.size(), { maxBytes: 50_000_000 })
  await first?.admin.config('SET', 'maxmemory', 0)
  t.match(await store.size(), { maxBytes: 0 })
})

t.test('a start in another mode ends with a sentence', async t => {
  const observer = { redisAway: () => t.fail(), redisBack: () => t.fail() }
  const start = (other: object) =>
    openRedisStore({ ...patient, url: cluster.url, prefix: 'x:', ...other }, observer)
  const message = /can't be used: it runs in mode cluster: set redis\.mode to cluster; `abohawa doctor` says/
  await t.rejects(start({}), { name: 'InputError', message })
  const at = `127.0.0.1:${await freePort()}`
  const away = new RegExp(`^redis\\.url names ${at}, .*, which can't be used: .*ECONNREFUSED`)
  await t.rejects(start({ mode: 'cluster', url: `redis://${at}`, nodes: [at] }), { message: away })
})

t.test('a cluster whose nodes announce no address is refused for that reason', async t => {
  const args = ['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())]
  const { admin, address } = await startRedis(t, { args })
  await admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
  await until('it is ok', async () => String(await admin.cluster('INFO')).includes('cluster_state:ok'))
  const start = async () => {
    const options = { ...patient, mode: 'cluster' as const, prefix: 'x:', url: `redis://${address}` }
    await (await openRedisStore(options, quiet)).close()
  }
  const message = /can't be used: a node announces no address; set cluster-announce-ip/
  // Redis knows no address of itself before it meets another node; an empty name it writes as a question mark.
  for (const preferred of ['ip', 'hostname']) {
    await admin.config('SET', 'cluster-preferred-endpoint-type', preferred)
    await t.rejects(start(), { name: 'InputError', message }, preferred)
  }
  await admin.config('SET', 'cluster-announce-hostname', '127.0.0.1')
  await start()
})

t.test(
  'counts of a single server are refused by a cluster, and those of a cluster by a single server',
  async t => {
    const { store, prefix } = await open(t)
    const day = new Date().toISOString().slice(0, 10)
    const reopened = async () => {
      const again = await openRedisStore({ ...patient, mode: 'cluster', url, prefix }, quiet)
      await again.close()
    }
    const ids = ['key_1', 'key_2', 'key_3', 'key_4']
    const [ofFirst = ''] = ids.filter(id => usageTag(id) === '{q0}')
    const [ofOther = ''] = ids.filter(id => usageTag(id) !== '{q0}')
    await store.ensureSubscriber(sampleSubscriber)
    for (const id of ids) await store.addKey({ ...sampleKey(id), previousHashes: [] })
    const month = `${prefix}used:{q0}:${day.slice(0, 7)}`
    const { admin } = await cluster.masterOf(month)
    await admin.hset(month, ofFirst, `${day.slice(8)}:7`)
    await reopened()
    await admin.hset(month, ofOther, `${day.slice(8)}:7`)
    await t.rejects(reopened(), {
      name: 'InputError',
      message: /whose counts were written by a single server.*`abohawa store copy`/,
    })
    await store.raiseUsed(ofOther, day, 7, later)
    await reopened()

    const single = await startRedis(t)
    const start = async () => {
      const options = { ...patient, url: `redis://${single.address}`, prefix: 'x:' }
      await (await openRedisStore(options, quiet)).close()
    }
    await start()
    await single.admin.hset(`x:quota:{q2}:${day}`, 'key_1', '7 -:0:7')
    await t.rejects(start(), { name: 'InputError', message: /whose counts were written by a cluster/ })
  },
)

t.test('a command finds that no gateway has used the cluster, names it, and ends', async t => {
  const { code, stdout, stderr } = await runCommand(['keys', 'list'], {
    ...patientRedisEnv,
    ABOHAWA_REDIS__URL: cluster.url,
    ABOHAWA_REDIS__MODE: 'cluster',
    ABOHAWA_REDIS__PREFIX: 'nothing-there:',
  })
  t.strictSame([code, stdout], [1, ''])
  t.match(stderr, `there is no store yet at ${cluster.url} (prefix nothing-there:)`)
})

t.test('slots that move are followed without an error or a lost count', async t => {
  const { store, prefix } = await open(t)
  let over = false
  const counted = new Map<string, number>()
  const work = async (i: number) => {
    const commit = instanceOn(store, `instance-${i}`)
    while (!over) {
      const keyId = `key_${i}`
      await commit({ keyId, limit: 1e9 })
      counted.set(keyId, (counted.get(keyId) ?? 0) + 1)
      await store.readBytes(`cell-${i}`)
      await usedIn(store, `acc${i}`, ['a', 'b'], Date.now())
    }
  }
  const working = Array.from({ length: 40 }, (_, i) => work(i))
  try {
    for (let i = 0; i < 12; i++) await cluster.moveSlotOf(`${prefix}quota:${usageTag(`key_${i}`)}:`)
  } finally {
    over = true
  }
  await Promise.all(working)
  for (const [keyId, count] of counted)
    if ((await store.usedOn(keyId, ['2126-11-21']))[0] !== count) t.fail(`${keyId} was not counted right`)
  t.ok(counted.size === 40)
})

t.test('a moving slot whose new master does not answer fails commands, and nothing else', async t => {
  const { store, prefix } = await open(t, { timeouts: hurried })
  const { from, to, settle } = await cluster.beginMoving(`${prefix}bytes:{cell}`)
  await Promise.all(Array.from({ length: 20 }, (_, i) => store.readBytes(`cell-${i}`)))
  const nodeTimeouts = (ms: number) =>
    Promise.all(cluster.nodes.map(({ admin }) => admin.config('SET', 'cluster-node-timeout', ms)))
  await nodeTimeouts(60_000)
  const unheard: unknown[] = []
  const hear = (error: unknown) => unheard.push(error)
  process.on('unhandledRejection', hear)
  t.teardown(() => process.off('unhandledRejection', hear))
  to.signal('SIGSTOP')
  const message = /did not answer within 2000 ms/
  await t.rejects(store.readBytes('cell'), { name: 'StoreError', message }, 'which is asked there')
  to.signal('SIGCONT')
  t.equal(await from.admin.ping(), 'PONG')
  t.strictSame(unheard, [], 'a process ends with such an error')
  await settle()
  await until('it is served again', async () => (await store.readBytes('cell')) === undefined)
  await nodeTimeouts(2_500)
})

t.test('a command that was given up before its node was ready does not run later', async t => {
  const { port, signal } = await startRedis(t)
  signal('SIGSTOP')
  const node = withOneWrite(new Redis({ port, commandTimeout: 300, maxRetriesPerRequest: null }))
  t.teardown(() => node.disconnect())
  node.on('error', () => {})
  await t.rejects(node.incr('given up'), { message: 'Command timed out' })
  signal('SIGCONT')
  await until('it is ready', async () => (await node.ping()) === 'PONG')
  t.equal(await node.get('given up'), null)
})

for (const how of ['hangs', 'is killed'] as const)
  t.test(`a master that ${how} makes commands fail in time until its replica has taken over`, async t => {
    const events: string[] = []
    const { store, prefix } = await open(t, { events, timeouts: hurried })
    const master = await cluster.masterOf(`${prefix}bytes:{cell}`)
    const fail = () => (how === 'hangs' ? master.signal('SIGSTOP') : master.kill())
    await checkFailover(t, { store, events }, fail)
    t.match(events[0], /^away: 127\.0\.0\.1:/)
    if (how === 'is killed') return
    master.signal('SIGCONT')
    await until('it is a replica now', async () =>
      (await master.admin.info('replication')).includes('link_status:up'),
    )
  })

t.test('the documented user was refused nothing', async t => {
  const running = cluster.nodes.filter(({ admin }) => admin.status === 'ready')
  for (const { admin } of running) t.strictSame(await refusals(admin), [])
})

t.test('masters alone', async t => {
  const masters = await startCluster(t, 0)
  const of = masters
  await t.test('a store that once lost all of them does not report them away when it is closed', async t => {
    const events: string[] = []
    const { store } = await open(t, { events, timeouts: hurried, of })
    for (const node of masters.nodes) node.signal('SIGSTOP')
    const reads = () => Promise.allSettled(Array.from({ length: 20 }, (_, i) => store.readBytes(`cell-${i}`)))
    await until('none is connected any more', async () =>
      (await reads()).every(each => /can't be reached/.test(String(Object(each).reason))),
    )
    for (const node of masters.nodes) node.signal('SIGCONT')
    await until('all answer', async () => events.at(-1) === 'back')
    const before = [...events]
    await store.close()
    await until('the connections are gone', async () => {
      const lists = await Promise.all(masters.nodes.map(({ admin }) => admin.client('LIST')))
      return lists.every(list => String(list).trim().split('\n').length === 1)
    })
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
    t.strictSame(events, before)
  })

  await t.test('a master that asks for a password now is told with that as the reason', async t => {
    const events: string[] = []
    const { store } = await open(t, { events, timeouts: hurried, of })
    const [{ admin }] = masters.nodes as [RedisProcess]
    await admin.config('SET', 'requirepass', 'secret-enough')
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await until('it is told', async () => {
      await Promise.allSettled(Array.from({ length: 20 }, (_, i) => store.readBytes(`cell-${i}`)))
      return events.some(event => /^away: 127\.0\.0\.1:\d+: NOAUTH: it asks for a password/.test(event))
    })
    await admin.config('SET', 'requirepass', '')
    await until('its return is reported', () => events.at(-1) === 'back')
    t.equal(events.filter(event => event.includes('NOAUTH')).length, 1, 'once')
  })

  await t.test('messages arrive after the node that they came by left the cluster and runs on', async t => {
    const { store } = await open(t, { of })
    await messagesArrive(store)
    const listeners = await Promise.all(
      masters.nodes.map(async ({ admin }) => String(await admin.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))),
    )
    await masters.remove(masters.nodes[listeners.findIndex(each => each.includes('id='))] as RedisProcess)
    await until('the store follows', async () => {
      await Promise.all(Array.from({ length: 20 }, (_, i) => store.readBytes(`cell-${i}`)))
      return true
    })
    await messagesArrive(store)
  })
})
