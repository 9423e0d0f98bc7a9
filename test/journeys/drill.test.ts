// The drill of 3 a.m.: six faults of a real gateway. For each, `abohawa status` or /readyz, the log and the metrics name the
// cause, the alert fires, and its paragraph of the runbook has the next steps.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type ManualClock, manualClock } from '../support/manual-clock.ts'
import { runCommand } from '../support/process.ts'
import { firesExactly, type Scrape, samplesIn, withoutPromtool } from '../support/promtool.ts'
import { startProvider } from '../support/provider-process.ts'
import { startRedisProcess } from '../support/redis-process.ts'
import { testRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { smallDisk, withoutMounts } from '../support/small-disk.ts'
import { type GatewaySetting, sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '..', '..')
const minute = 60_000
const runbook = readFileSync(join(root, 'docs/runbook.md'), 'utf8')

/** What an operator sees of a fault. */
type Signs = {
  /** In the text of `abohawa status`, or of /readyz. */
  readonly status?: RegExp
  readonly readyz?: RegExp
  /** Of a line of the log. */
  readonly log: object
  /** Series and its value during the fault. */
  readonly metric: readonly [series: string, value: number]
  readonly alert: string
}

const drill = async (
  t: Test,
  { gateway, clock, env = {} }: { gateway: TestGateway; clock: ManualClock; env?: Record<string, string> },
  provoke: () => Promise<void>,
  signs: Signs,
): Promise<void> => {
  const startedAt = clock.now()
  const scrapes: Scrape[] = []
  const scrape = async (at: number) => {
    const { text } = await sendRequest(`${gateway.opsUrl}/metrics`)
    scrapes.push({ minute: at, text })
    return samplesIn(text)
  }
  await scrape(0)
  await provoke()
  const [series, value] = signs.metric
  await until(`${series} is ${value}`, async () => {
    const { text } = await sendRequest(`${gateway.opsUrl}/metrics`)
    return samplesIn(text).get(series) === value
  })
  await scrape(10)
  if (signs.status) {
    const { stdout } = await runCommand(['status', '--gateway', gateway.opsUrl], env)
    t.match(stdout, signs.status, 'the status names it')
  }
  if (signs.readyz)
    t.match((await sendRequest(`${gateway.opsUrl}/readyz`)).text, signs.readyz, 'readiness names it')
  await until('the log names it', () => gateway.logged.some(line => matches(line, signs.log)))
  firesExactly(t, { scrapes, startedAt, at: 40, alerts: [signs.alert] })
  const paragraph = runbook.split(`\n## ${signs.alert}\n`)[1]?.split('\n## ')[0] ?? ''
  t.match(paragraph, /\*\*Consumers:\*\*/, 'the runbook says what consumers notice')
  t.ok((paragraph.match(/^\d\. .*`/gm) ?? []).length >= 2, 'and the next steps, with commands')
}

const matches = (line: Record<string, unknown>, wanted: object): boolean =>
  Object.entries(wanted).every(([name, value]) =>
    value instanceof RegExp ? value.test(String(line[name])) : line[name] === value,
  )

const started = async (
  t: Test,
  { clock = manualClock(), ...setting }: Omit<GatewaySetting, 'clock'> & { clock?: ManualClock },
) => {
  const gateway = await startGateway(t, { ...setting, clock })
  return { gateway, clock, env: { ABOHAWA_STORE__PATH: gateway.config.store.path ?? '' } }
}

t.test('the provider is down', { skip: withoutPromtool }, async t => {
  const provider = await startProvider(t)
  const parts = await started(t, { providerUrl: provider.url })
  await parts.gateway.get('/weather/district/3026')
  await drill(
    t,
    parts,
    async () => {
      await provider.steer({ fault: 'internal-error' })
      for (const cell of ['21.1/89.1', '21.3/89.3', '21.5/89.5', '21.7/89.7'])
        await parts.gateway.get(`/weather/coords/${cell}`)
    },
    {
      status: /circuit +open.*\n.*\n.*last failure.*provider_failing/,
      log: { msg: 'outage begins', outage: 'provider' },
      metric: ['abohawa_provider_circuit{state="closed"}', 0],
      alert: 'AbohawaProviderDown',
    },
  )
})

t.test('the budget of the day is gone', { skip: withoutPromtool }, async t => {
  const provider = await startProvider(t)
  const parts = await started(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_PROVIDER__BUDGET__PER_DAY: '6' },
  })
  await drill(
    t,
    parts,
    async () => {
      for (const cell of ['21.1/89.1', '21.5/89.5', '22.1/90.1'])
        await parts.gateway.get(`/weather/coords/${cell}`)
    },
    {
      status: /day +6 +6/,
      log: { msg: 'answered', status: 500 },
      metric: ['abohawa_provider_budget_used{window="day"}', 6],
      alert: 'AbohawaBudgetSpent',
    },
  )
})

t.test('the disk of the store is full', { skip: withoutPromtool || withoutMounts }, async t => {
  const disk = await smallDisk(t, 16_000_000)
  const parts = await started(t, {
    providerUrl: 'http://127.0.0.1:9',
    env: { ABOHAWA_STORE__PATH: join(disk.folder, 'store.db') },
  })
  await parts.gateway.get('/locations?type=division')
  await drill(
    t,
    parts,
    () =>
      until('counts are kept in the reserve', async () => {
        disk.fill()
        await parts.gateway.get('/locations?type=division')
        const { text } = await sendRequest(`${parts.gateway.opsUrl}/metrics`)
        return /^abohawa_store_reserve_in_use 1$/m.test(text)
      }).then(() => {}),
    {
      log: { msg: /store can not be written/, reason: /full/ },
      metric: ['abohawa_store_reserve_in_use', 1],
      alert: 'AbohawaStoreFull',
    },
  )
  disk.free()
})

t.test('the certificate has expired', { skip: withoutPromtool }, async t => {
  const cert = join(root, 'test/fixtures/localhost.crt')
  const expiresAt = new X509Certificate(readFileSync(cert)).validToDate.getTime()
  const parts = await started(t, {
    providerUrl: 'http://127.0.0.1:9',
    clock: manualClock(expiresAt + 3 * 3_600_000),
    env: {
      ABOHAWA_SERVER__TLS__CERT: cert,
      ABOHAWA_SERVER__TLS__KEY: join(root, 'test/fixtures/localhost.key'),
    },
  })
  const { text } = await sendRequest(`${parts.gateway.opsUrl}/metrics`)
  t.equal(samplesIn(text).get('abohawa_tls_certificate_expiry_timestamp_seconds'), expiresAt / 1000)
  t.match((await sendRequest(`${parts.gateway.opsUrl}/readyz`)).text, /"certificate":"expired /)
  t.ok(
    parts.gateway.logged.some(line =>
      matches(line, { msg: 'the certificate has expired', next: /renew it/ }),
    ),
  )
  t.match(runbook, /\n## AbohawaCertificateExpires\n/)
})

t.test('Redis is frozen', { skip: withoutPromtool || withoutOwnRedis }, async t => {
  const redis = await startRedisProcess()
  t.teardown(redis.stop)
  const clock = manualClock(Date.now())
  const gateway = await startGateway(t, {
    providerUrl: 'http://127.0.0.1:9',
    clock,
    env: { ABOHAWA_REDIS__URL: `redis://${redis.address}`, ABOHAWA_REDIS__COMMAND_TIMEOUT: '300ms' },
  })
  await gateway.get('/locations?type=division')
  redis.signal('SIGSTOP')
  await until('the log names it', async () => {
    await gateway.get('/locations?type=division')
    return gateway.logged.some(line => matches(line, { msg: 'outage begins', outage: 'store' }))
  })
  const { text } = await sendRequest(`${gateway.opsUrl}/metrics`)
  t.equal(samplesIn(text).get('abohawa_store_up{store="redis"}'), 0)
  const { stdout, stderr, code } = await runCommand(['status', '--gateway', gateway.opsUrl], {
    ABOHAWA_REDIS__URL: `redis://${redis.address}`,
  })
  t.equal(code, 1)
  t.match(stdout + stderr, /The store is away: /)
  t.match((await sendRequest(`${gateway.opsUrl}/readyz`)).text, /"store":"not available/)
  redis.signal('SIGCONT')
})

t.test('two gateways of a fleet run with different settings', async t => {
  const redis = await testRedis(t)
  const clock = manualClock(Date.now())
  const env = { ABOHAWA_REDIS__URL: redis.url, ABOHAWA_REDIS__PREFIX: redis.prefix }
  const setting = { providerUrl: 'http://127.0.0.1:9', clock }
  const [one] = await Promise.all([
    startGateway(t, { ...setting, env }),
    startGateway(t, { ...setting, env: { ...env, ABOHAWA_CACHE__FRESH_FOR: '2h' } }),
  ])
  await until(
    'the log warns of it',
    () => {
      clock.advance(minute / 12)
      return one.logged.some(line => matches(line, { msg: /different settings/ }))
    },
    60_000,
    200,
  )
  const { text } = await sendRequest(`${one.opsUrl}/metrics`)
  t.equal(samplesIn(text).get('abohawa_config_variants'), 2)
  const { stdout } = await runCommand(['status', '--gateway', one.opsUrl], env)
  t.match(stdout, /differs/)
  t.match((await sendRequest(`${one.opsUrl}/readyz`)).text, /the fleet runs 2 different ones/)
  t.match(runbook, /\n## AbohawaConfigDiffers\n/)
})
