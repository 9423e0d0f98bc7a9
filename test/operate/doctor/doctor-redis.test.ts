// Without it, `doctor` could pass a cluster that lost a master, or a Sentinel master without replicas.

import t from 'tap'
import { systemClock } from '../../../src/common/clock.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { checkOf } from '../../../src/operate/doctor/check.ts'
import { redisChecks } from '../../../src/operate/doctor/redis.ts'
import { account, makeAccount } from '../../support/redis-account.ts'
import { startCluster } from '../../support/redis-cluster.ts'
import { masterName, startSentinel } from '../../support/redis-sentinel.ts'
import { startRedis, withoutOwnRedis } from '../../support/redis-server.ts'
import { patient } from '../../support/redis-store.ts'
import { skipFileIf } from '../../support/skip-file.ts'
import { until } from '../../support/until.ts'

skipFileIf(t, withoutOwnRedis)

const checksOf = async (redis: Record<string, unknown>) => {
  const config = loadConfig({ files: [], env: {} })
  const { checks, clock } = await redisChecks(
    { redis: { ...config.redis, ...patient, ...redis } },
    systemClock,
  )
  return new Map([...checks, checkOf('clocks', clock)].map(check => [check.name, check]))
}

t.test('a cluster is well with the documented user, and is not once a master is gone', async t => {
  const cluster = await startCluster(t, 0)
  for (const { admin } of cluster.nodes) await makeAccount(admin, true)
  const url = cluster.url.replace('//', `//${account.user}:${account.password}@`)
  const look = () => checksOf({ url, mode: 'cluster' })
  const checks = await look()
  t.match(checks.get('redis'), { status: 'ok', detail: /cluster_state is ok/ })
  t.hasStrict(checks.get('redis rights'), { status: 'ok' })

  const last = cluster.nodes.at(-1)
  await last?.kill()
  await until('the cluster is not well', async () =>
    [...(await look()).values()].some(({ status }) => status === 'fail'),
  )
})

t.test('a master behind Sentinel is well with replicas, and is to be looked at without', async t => {
  const sentinel = await startSentinel(t)
  const { url, others: nodes } = sentinel
  const look = () => checksOf({ url, mode: 'sentinel', nodes, sentinelMaster: masterName })
  await until('the replicas are there', async () => (await look()).get('redis')?.status === 'ok')
  t.match((await look()).get('redis'), { detail: /; master with 2 replicas$/ })
  for (const replica of sentinel.servers.slice(1)) await replica.kill()
  await until('the replicas are missed', async () => (await look()).get('redis')?.status === 'warn')
  t.match((await look()).get('redis'), { detail: /nothing can take over/, fix: /Start a replica/ })
})

t.test('a wrong password, a frozen process and missing rights are told as what they are', async t => {
  const { url, signal, admin: raw } = await startRedis(t)
  await makeAccount(raw)
  const as = (password: string) => url.replace('//', `//${account.user}:${password}@`)
  t.match((await checksOf({ url: as('wrong') })).get('redis'), {
    status: 'fail',
    detail: /WRONGPASS/,
    fix: /^Correct the user and the password/,
  })
  await raw.acl('SETUSER', account.user, '-hset', '-time', '-zrem')
  const checks = await checksOf({ url: as(account.password) })
  t.hasStrict(checks.get('redis rights'), { status: 'fail', fix: 'ACL SETUSER abohawa +hset +zrem +time' })
  t.hasStrict(checks.get('clocks'), { status: 'skip' })
  await raw.acl('SETUSER', account.user, '+hset', '+time', '+zrem', 'resetchannels')
  t.hasStrict((await checksOf({ url: as(account.password) })).get('redis rights'), {
    detail: 'the user abohawa may not use the channels abohawa:*',
    fix: 'ACL SETUSER abohawa ~abohawa:* &abohawa:*',
  })
  await makeAccount(raw)
  await raw.acl('SETUSER', account.user, '-hdel', '-zrem', '-del', '-unlink')
  t.hasStrict((await checksOf({ url: as(account.password) })).get('redis rights'), { status: 'fail' })
  const left = await raw.keys('*doctor:*')
  t.equal(left.length, 3)
  for (const key of left) t.ok((await raw.pttl(key)) > 0, `${key} ends by itself`)
  await makeAccount(raw)
  const clients = async () =>
    String(await raw.call('CLIENT', 'LIST'))
      .trim()
      .split('\n').length
  await until('the connections of before are closed', async () => (await clients()) === 1)
  await raw.config('SET', 'maxclients', '2')
  t.match((await checksOf({ url: as(account.password) })).get('redis rights'), {
    detail: /^subscribe failed: (ERR max number of clients reached|read ECONNRESET)$/,
    fix: /maxclients/,
  })
  await raw.config('SET', 'maxclients', '100')
  t.match(checks.get('redis settings'), { status: 'warn', detail: /^appendonly no/ })
  signal('SIGSTOP')
  const frozen = await checksOf({ url: as(account.password), connectTimeoutMs: 500, commandTimeoutMs: 500 })
  t.match(frozen.get('redis'), { status: 'fail', fix: /takes no commands/ })
  t.comment(frozen.get('redis')?.detail)
})
