// Without it foreign or damaged records in Redis could become weather, quotas or keys.

import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { issueKeys, quietZone } from '../scenarios/keys.ts'
import { metric, processEnv } from '../scenarios/set-up.ts'
import { residentMiB } from '../support/proc.ts'
import { runCommand, startCommand, startLimited, withoutPrlimit } from '../support/process.ts'
import { startProviderHere } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

// The gateways and the provider are processes on the machine's clock.
const provider = await startProviderHere(t, undefined, null)
const skip = withoutPrlimit
// A gateway takes some 200 MB resident by itself; the contents of Redis may add next to nothing.
const dataBytes = 900_000_000
const maxMiB = 220

const zone = quietZone()
const today = createCalendar(zone).dayOf(Date.now())

const setUp = async (t: Test) => {
  const redis = await testRedis(t)
  const raw = new Redis(redis.url)
  t.teardown(() => raw.quit())
  const env = processEnv(provider.url, {
    ABOHAWA_LOG__LEVEL: 'info',
    ABOHAWA_QUOTA__TIME_ZONE: zone,
    ...redis.env,
  })
  const createKey = async (tier = 'free') => {
    const [issued] = await issueKeys(env, [tier])
    return issued ?? { id: '', key: '' }
  }
  return { raw, prefix: redis.prefix, env, createKey }
}

const startGateway = async (t: Test, env: Record<string, string>) => {
  const gateway = await startLimited(t, dataBytes, env)
  const { api = '', ops = '' } = gateway.urls
  const read = (name: string) => metric(ops, name)
  const send = (path: string, key: string) => sendRequest(`${api}/api/v1${path}`, { key })
  const logged = (msg: string) =>
    gateway.lines.flatMap(line =>
      line.includes(`"msg":"${msg}"`) ? [JSON.parse(line) as Record<string, unknown>] : [],
    )
  return { ...gateway, metric: read, send, logged }
}

t.test('whatever lies under the key of a cell, its own weather is answered', { skip }, async t => {
  const { raw, prefix, env, createKey } = await setUp(t)
  const { key } = await createKey('enterprise')
  const gateway = await startGateway(t, env)
  const at = (i: number) => `/weather/coords/${(22.1 + i / 10).toFixed(1)}/90.4`
  const from = await gateway.send(at(0), key)
  t.equal(from.status, 200)
  const [genuineKey = ''] = await raw.keys(`${prefix}bytes:*`)
  const genuine = (await raw.getBuffer(genuineKey)) as Buffer
  const keyOf = (i: number) => genuineKey.replace('22.1', (22.1 + i / 10).toFixed(1))
  const put = (bytes: Buffer) => (name: string) => raw.set(name, bytes)
  const cases: [what: string, reason: string, put: (name: string) => Promise<unknown>][] = [
    ['the entry of another cell', 'key', put(genuine)],
    ['a list', 'wrong_type', name => raw.rpush(name, 'x')],
    ['200 MB', 'too_large', name => raw.setrange(name, 200_000_000, 'x')],
    ['an entry whose last byte is missing', 'checksum', put(genuine.subarray(0, -1))],
  ]
  for (const [i, [what, reason, place]] of cases.entries()) {
    const name = keyOf(i + 1)
    await place(name)
    const { calls } = await provider.state()
    const { status, headers, body } = await gateway.send(at(i + 1), key)
    t.equal(status, 200, what)
    t.match(headers['cache-status'], /fwd=miss/, 'it counts as absent')
    t.strictNotSame(body.hourly, from.body.hourly, 'the weather is not that of another cell')
    t.equal((await provider.state()).calls, calls + 1, 'fetched once')
    t.ok((await gateway.metric(`abohawa_cache_entries_refused_total{reason="${reason}"}`)) >= 1, reason)
    t.equal(await raw.type(name), 'string', 'a good one is there')
    t.ok((await raw.strlen(name)) < 10_000)
  }
  const lines = gateway.logged('shared cache entry rejected')
  t.ok(lines.length >= 4 && lines.length <= 8, `${lines.length} lines for ${cases.length} reasons`)
  t.match(lines[0], { level: 'warn', reason: 'key', key: /^[0-9a-f]{12}:22\.2,90\.4$/ })

  await put(genuine)(keyOf(30))
  const command = ['cache', 'show', '25.1,90.4', '--gateway', gateway.urls.ops ?? '']
  t.match(
    (await runCommand(command, env)).stdout,
    /the cached entry is invalid: it was written for another cell/,
  )
  const peak = residentMiB(gateway.child.pid, 'VmHWM')
  t.ok(peak < maxMiB, `${peak.toFixed(0)} MiB at most`)
})

t.test('a damaged count or key costs itself alone, and the log says so', { skip }, async t => {
  const { raw, prefix, env, createKey } = await setUp(t)
  const [bad, good] = [await createKey(), await createKey()]
  const gateway = await startGateway(t, env)
  const list = '/locations?type=division'
  const remaining = async (key: string) => (await gateway.send(list, key)).headers['x-ratelimit-remaining']
  t.strictSame([await remaining(bad.key), await remaining(good.key)], ['99', '99'])
  const [live = ''] = await raw.keys(`${prefix}quota:*`)
  await raw.hset(live, bad.id, 'nan one:1:1')
  t.strictSame([await remaining(bad.key), await remaining(good.key)], ['98', '98'])
  t.equal(await gateway.metric('abohawa_quota_counting{state="counting"}'), 1, 'all count together')

  await raw.hset(`${prefix}key:${bad.id}`, 'limit', '-7')
  const restarted = await startGateway(t, env)
  t.match(await restarted.send(list, bad.key), { status: 401 })
  t.hasStrict(await restarted.send(list, good.key), { status: 200, headers: { 'x-ratelimit-limit': '100' } })
  t.hasStrict(gateway.logged('store record rejected'), [
    { record: 'usage', name: bad.id, fault: `its count of ${today} can't be read` },
  ])
  const fault = 'limit must be empty or an integer from 1, got "-7"'
  t.hasStrict(restarted.logged('store record rejected'), [{ record: 'key', name: bad.id, fault }])
  t.equal(await restarted.metric('abohawa_store_records_refused_total{record="key"}'), 1)
  const listed = await runCommand(['keys', 'list'], env)
  t.match(listed, {
    code: 0,
    stdout: new RegExp(good.id),
    stderr: /The record of key key_\w+ is damaged: limit must be/,
  })
  t.notMatch(listed.stdout, bad.id)
  t.match(await runCommand(['store', 'export'], env), {
    code: 1,
    stderr: /Left out: the record of key key_\w+ is damaged/,
  })
})

t.test(
  'a gateway starts and runs beside foreign records and messages, and doctor names them',
  { skip },
  async t => {
    const { raw, prefix, env, createKey } = await setUp(t)
    const { key } = await createKey()
    const first = await startCommand(t, ['serve'], ['api'], env)
    await sendRequest(`${first.urls.api}/api/v1/weather/coords/23.7/90.4`, { key })
    first.child.kill('SIGTERM')
    await first.exited
    const [wanted = ''] = await raw.keys(`${prefix}wanted:*`)
    t.ok(wanted, 'the demand is recorded')
    const shared = [wanted, ...['instances', 'notices:purges', 'notices:keys'].map(name => prefix + name)]
    await raw.del(...shared)
    for (const name of shared) await raw.rpush(name, 'x')
    const gateway = await startGateway(t, env)
    t.match(await gateway.send('/weather/coords/23.7/90.4', key), { status: 200 })
    t.match(await gateway.send('/weather/coords/24.1/90.4', key), { status: 200 })
    const { stdout } = await runCommand(['doctor', '--no-spend', '--json'], env)
    const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; detail: string }[] }
    const records = checks.find(({ name }) => name === 'records')
    t.equal(records?.status, 'fail')
    for (const name of shared)
      t.match(records?.detail, `WRONGTYPE: ${name} has a type that no gateway writes`)

    await raw.del(...shared)
    await until('it counts itself', async () => (await gateway.metric('abohawa_instances')) === 1)
    // Messages between gateways, with controls for a terminal and a page.
    const refused = 'abohawa_store_records_refused_total{record="message"}'
    const texts = ['\u001b[2J<script>', `a ${today} ${'9'.repeat(300)}`]
    await until('the messages are refused', async () => {
      for (const text of texts) await raw.publish(`${prefix}used`, text)
      return (await gateway.metric(refused)) >= 4
    })
    t.equal(gateway.child.exitCode, null)
    const lines = gateway.logged('store record rejected')
    t.ok(lines.length > 0 && lines.length < 20, `${lines.length} lines`)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: no such character is to be there
    t.ok(lines.every(({ fault }) => !/[\u0000-\u001f]/.test(String(fault)) && String(fault).length < 200))
  },
)
