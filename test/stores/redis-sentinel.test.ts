// Without it a failover behind Sentinel would end in errors that last, or a wrong start without a sentence.

import t, { type Test } from 'tap'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { runCommand } from '../support/process.ts'
import { masterName, startSentinel } from '../support/redis-sentinel.ts'
import { patientRedisEnv, withoutOwnRedis } from '../support/redis-server.ts'
import { patient, quiet } from '../support/redis-store.ts'
import { skipFileIf } from '../support/skip-file.ts'
import { storeContract } from './store-contract.ts'
import { checkFailover, recordingObserver } from './store-recovery.ts'
import { instanceOn } from './usage-instance.ts'

skipFileIf(t, withoutOwnRedis)

const password = 'of-the-sentinels'
const sentinel = await startSentinel(t, password)

const place = {
  ...patient,
  url: `${sentinel.url}/1`,
  mode: 'sentinel',
  nodes: sentinel.others,
  sentinelMaster: masterName,
  sentinelPassword: password,
} as const

let opened = 0
const open = async (t: Test, events: string[] = [], timeouts = patient) => {
  const options = { ...place, ...timeouts, prefix: `test-${opened++}:` }
  const store = await openRedisStore(options, recordingObserver(events))
  t.teardown(() => store.close())
  return store
}

/** Where a process hangs. A busy machine is faster when it is well. */
const hurried = { connectTimeoutMs: 5_000, commandTimeoutMs: 2_000 }

storeContract(t, 'sentinel', open)

t.test("a start that can't go well ends with a sentence", async t => {
  const start = (other: object) => openRedisStore({ ...place, ...other, prefix: 'x:' }, quiet)
  const [server] = sentinel.servers
  const at = sentinel.url.replace('redis://', '')
  const asSingle = { nodes: [], sentinelMaster: null, sentinelPassword: null }
  const asSentinel = { ...asSingle, url: `redis://:${password}@${at}` }
  const single = { ...asSingle, url: `redis://${server?.address}` }
  for (const [other, message] of [
    [{ sentinelMaster: 'another' }, /No such master with that name/],
    [{ sentinelPassword: 'wrong' }, /^redis\.url names .*, which can't be used: .*WRONGPASS/],
    [{ url: single.url, nodes: [] }, /unknown command 'sentinel'/],
    [{ ...asSentinel, mode: 'single' }, /it runs in mode sentinel: set redis\.mode to sentinel/],
    [{ ...asSentinel, mode: 'cluster' }, /unknown command 'cluster'/],
    [{ ...single, mode: 'cluster' }, /cluster support disabled/],
    [{ url: `${sentinel.url}/9999` }, /which can't be used: .*DB index is out of range/],
  ] as const)
    await t.rejects(start(other), { name: 'InputError', message })
})

t.test('a command finds the store through the sentinels, names it, and ends', async t => {
  const { code, stdout, stderr } = await runCommand(['keys', 'list'], {
    ...patientRedisEnv,
    ...sentinel.env,
    ABOHAWA_REDIS__SENTINEL_PASSWORD: password,
    ABOHAWA_REDIS__PREFIX: 'nothing-there:',
  })
  t.strictSame([code, stdout], [1, ''])
  t.match(stderr, `there is no store yet at ${sentinel.url} (master ${masterName}, prefix nothing-there:)`)
})

t.test('the first sentinel may be away', async t => {
  const [first] = sentinel.sentinels
  first?.signal('SIGSTOP')
  await instanceOn(await open(t, [], hurried), 'one')({})
  first?.signal('SIGCONT')
  const keyspace = await (await sentinel.master()).admin.info('keyspace')
  t.match(keyspace, /db1:/, 'keys lie in the database that the URL names')
  t.notMatch(keyspace, /db0:/)
})

for (const how of ['hangs', 'is killed'] as const)
  t.test(`a master that ${how} makes commands fail in time until its replica has taken over`, async t => {
    const events: string[] = []
    const store = await open(t, events, hurried)
    const master = await sentinel.master()
    const fail = () => (how === 'hangs' ? master.signal('SIGSTOP') : master.kill())
    await checkFailover(t, { store, events }, fail)
  })
