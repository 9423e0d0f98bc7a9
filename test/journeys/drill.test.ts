// Without it an operator at 3 a.m. could find no cause of a fault in status, log, metrics, alert or runbook.

import { X509Certificate } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { paragraphOf, runInShell } from '../deploy/runbook.ts'
import { type ManualClock, manualClock, noon } from '../support/manual-clock.ts'
import { runCommand } from '../support/process.ts'
import { firesExactly, type Scrape, samplesIn, withoutPromtool } from '../support/promtool.ts'
import { startProvider } from '../support/provider.ts'
import { patientRedisEnv, startRedis, testRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { smallDisk, withoutMounts } from '../support/small-disk.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '..', '..')
const minute = 60_000
const hour = 60 * minute
const nowhere = 'http://127.0.0.1:9'
const provider = await startProvider(t)

/** What an operator sees of a fault. */
type Signs = {
  /** In the text of `abohawa status`; it ends with 1 while the store is away, else with 0. */
  readonly status: { readonly text: RegExp; readonly code?: number }
  /** Fields of a line of the log; `next` is the next step. */
  readonly log: { readonly msg: RegExp; readonly next: RegExp; readonly [field: string]: RegExp }
  /** A series, and its value during the fault. */
  readonly metric: readonly [series: string, value: number]
  readonly alert: string
  /** Others that fire with it. */
  readonly others?: readonly string[]
  /** The series behind them, which rises above 3 within a second. */
  readonly alsoMoves?: string
  /** What the first command of the alert's paragraph in the runbook prints. */
  readonly firstStep: RegExp
}

type Scene = {
  readonly gateway: TestGateway
  readonly clock: ManualClock
  /** What the shell of the operator has. */
  readonly variables: Record<string, string>
}

const started = async (
  t: Test,
  setting: { providerUrl: string; clock?: ManualClock; env?: Record<string, string> },
): Promise<Scene> => {
  const { providerUrl, clock = manualClock(), env = {} } = setting
  const gateway = await startGateway(t, { providerUrl, clock, env })
  const file = join(t.testdir(), 'gateway.yaml')
  writeFileSync(file, `provider: { baseUrl: '${providerUrl}' }\n`)
  const path = gateway.config.store.path
  const variables = {
    ...{ OPS: gateway.opsUrl, API: new URL(gateway.apiUrl).host, FILE: file, PROVIDER: providerUrl },
    ...{ CERT: env.ABOHAWA_SERVER__TLS__CERT ?? '', DATA: dirname(path), ABOHAWA_STORE__PATH: path },
    ...env,
  }
  return { gateway, clock, variables }
}

const drill = async (
  t: Test,
  { gateway, clock, variables }: Scene,
  provoke: () => unknown,
  { status, log, metric: [series, value], alert, others = [], alsoMoves, firstStep }: Signs,
): Promise<void> => {
  const startedAt = clock.now()
  const scrapes: Scrape[] = []
  const metrics = async () => (await sendRequest(`${gateway.opsUrl}/metrics`)).text
  const scrape = async (at: number) => scrapes.push({ minute: at, text: await metrics(), now: clock.now() })

  await scrape(0)
  await provoke()
  await until(`${series} is ${value}`, async () => samplesIn(await metrics()).get(series) === value)
  if (alsoMoves) {
    clock.advance(1_000)
    await until(`${alsoMoves} moves`, async () => Number(samplesIn(await metrics()).get(alsoMoves)) > 3)
  }
  await scrape(10)
  firesExactly(t, { scrapes, startedAt, at: 9, alerts: [] })
  firesExactly(t, { scrapes, startedAt, at: 40, alerts: [alert, ...others] })

  // Without the other variables of a shell it needs no process of its own.
  const settings = Object.entries(variables).filter(([name]) => name.startsWith('ABOHAWA_'))
  const shown = await runCommand(['status', '--gateway', gateway.opsUrl], Object.fromEntries(settings))
  t.match(shown.stdout, status.text, 'the status names it')
  t.equal(shown.code, status.code ?? 0, shown.stderr)
  await until(`the log names it, as in ${JSON.stringify(gateway.logged.slice(-3))}`, () =>
    gateway.logged.some(line =>
      Object.entries(log).every(([field, wanted]) => wanted.test(String(line[field]))),
    ),
  )

  const { steps } = paragraphOf(alert)
  const isOfHere = (text: string) => 'ABOHAWA_REDIS__URL' in variables || !text.includes('ABOHAWA_REDIS__URL')
  const [first, ...later] = steps
    .flatMap(({ commands }) => commands)
    .filter(({ skipped, text }) => !skipped && isOfHere(text))
  const found = await runInShell(t, first?.text ?? 'false', variables)
  t.equal(found.code, 0, `${first?.text}\n${found.stderr}`)
  t.match(found.stdout, firstStep, `its first step names the cause: ${first?.text}`)
  for (const { text } of later) {
    const { code, stdout, stderr } = await runInShell(t, text, variables)
    const isStatus = text.startsWith('bin/abohawa status ')
    t.equal(code, (isStatus && status.code) || 0, `${text}\n${stderr}`)
    t.not(stdout, '', text)
  }
}

t.test('the provider is down', { skip: withoutPromtool }, async t => {
  await provider.steer({ fault: 'none', reset: true, now: noon })
  const scene = await started(t, { providerUrl: provider.url })
  await scene.gateway.get('/weather/district/3026')
  await drill(
    t,
    scene,
    async () => {
      await provider.steer({ fault: 'internal-error' })
      for (const cell of ['21.1/89.1', '21.3/89.3', '21.5/89.5', '21.7/89.7'])
        await scene.gateway.get(`/weather/coords/${cell}`)
    },
    {
      status: {
        text: /circuit +(?:half-)?open.*\n.*\n.*last failure.*provider_failing: .*500.*\n.*consumers get errors now/,
      },
      log: {
        msg: /^(?:provider|store) outage started$/,
        outage: /^provider$/,
        code: /^provider_failing$/,
        reason: /500/,
        next: /how long the cache lasts; .*#abohawaproviderdown$/,
      },
      metric: ['abohawa_provider_circuit{state="closed"}', 0],
      alert: 'AbohawaProviderDown',
      firstStep: /last failure .*provider_failing: .*500/,
    },
  )
})

t.test('the budget of the day is gone', { skip: withoutPromtool }, async t => {
  await provider.steer({ fault: 'none', reset: true, now: null })
  const scene = await started(t, {
    providerUrl: provider.url,
    // The commands that read the store have the machine's day.
    clock: manualClock(Date.now()),
    env: { ABOHAWA_PROVIDER__BUDGET__PER_DAY: '6' },
  })
  await drill(
    t,
    scene,
    async () => {
      for (const cell of ['21.1/89.1', '21.5/89.5', '22.1/90.1'])
        await scene.gateway.get(`/weather/coords/${cell}`)
    },
    {
      status: { text: /day +6 +6 +100\.0 % +in .* used up/ },
      log: {
        msg: /^daily budget spent$/,
        limit: /^6$/,
        resetsAt: /T00:00:00/,
        next: /^raise provider\.budget\.perDay .*#abohawabudgetspent$/,
      },
      metric: ['abohawa_provider_budget_used{window="day"}', 6],
      alert: 'AbohawaBudgetSpent',
      // With nothing left, weather stays fresh for as long as it may.
      others: ['AbohawaBudgetShort'],
      alsoMoves: 'abohawa_cache_freshness_stretch',
      firstStep: /day .*used up/,
    },
  )
})

t.test('the disk of the store is full', { skip: withoutPromtool || withoutMounts }, async t => {
  const disk = await smallDisk(t, 16_000_000)
  const scene = await started(t, {
    providerUrl: nowhere,
    env: { ABOHAWA_STORE__PATH: join(disk.folder, 'store.db') },
  })
  const { gateway } = scene
  await gateway.get('/locations?type=division')
  await drill(
    t,
    scene,
    () =>
      until('counts go on locally', async () => {
        disk.fill()
        await gateway.get('/locations?type=division')
        return (await gateway.metric('abohawa_quota_counting{state="away"}')) === 1
      }),
    {
      status: { text: /store outage since/ },
      log: {
        msg: /^(?:provider|store) outage started$/,
        reason: /full/,
        next: /leave the gateways running; .*#abohawastoredown$/,
      },
      metric: ['abohawa_quota_counting{state="away"}', 1],
      alert: 'AbohawaQuotaNotCounted',
      firstStep: /counted locally: .*full/,
    },
  )
  disk.free()
  await until('the counts are in the store', async () => {
    scene.clock.advance(1_000)
    await gateway.get('/locations?type=division')
    return (await gateway.metric('abohawa_quota_counting{state="counting"}')) === 1
  })
  t.match((await sendRequest(`${gateway.opsUrl}/readyz`)).text, /"quota":"counted in the store"/)
})

t.test('the certificate has expired', { skip: withoutPromtool }, async t => {
  const cert = join(root, 'test/fixtures/localhost.crt')
  const expiresAt = new X509Certificate(readFileSync(cert)).validToDate.getTime()
  const scene = await started(t, {
    providerUrl: nowhere,
    clock: manualClock(expiresAt - 20 * 24 * hour),
    env: {
      ABOHAWA_SERVER__TLS__CERT: cert,
      ABOHAWA_SERVER__TLS__KEY: join(root, 'test/fixtures/localhost.key'),
    },
  })
  const warnings = () => scene.gateway.logged.filter(({ msg }) => /^certificate /.test(String(msg)))
  t.strictSame(warnings(), [])
  await drill(
    t,
    scene,
    async () => {
      scene.clock.set(expiresAt - minute)
      await until('the log warns', () => warnings().length === 1)
      scene.clock.set(expiresAt + 3 * hour)
    },
    {
      status: { text: /certificate +expired 3 h ago/ },
      log: {
        msg: /^certificate expired$/,
        level: /^error$/,
        expiresAt: /^2126-/,
        next: /^renew it .*#abohawacertificateexpires$/,
      },
      metric: ['abohawa_tls_certificate_expiry_timestamp_seconds', expiresAt / 1000],
      alert: 'AbohawaCertificateExpires',
      firstStep: /certificate +expired 3 h ago/,
    },
  )
  t.match((await sendRequest(`${scene.gateway.opsUrl}/readyz`)).text, /"certificate":"expired /)
})

t.test('Redis is frozen', { skip: withoutPromtool || withoutOwnRedis }, async t => {
  const redis = await startRedis(t)
  await provider.steer({ fault: 'none', reset: true, now: null })
  const scene = await started(t, {
    providerUrl: provider.url,
    clock: manualClock(Date.now()),
    env: {
      ...patientRedisEnv,
      ABOHAWA_REDIS__URL: redis.url,
      ABOHAWA_REDIS__COMMAND_TIMEOUT: '2s',
      ABOHAWA_PROVIDER__BUDGET__PER_DAY: '600',
    },
  })
  const { gateway } = scene
  await gateway.get('/weather/district/3026')
  await drill(
    t,
    scene,
    async () => {
      redis.signal('SIGSTOP')
      await until('quotas are counted here', async () => {
        await gateway.get('/locations?type=division')
        return (await gateway.metric('abohawa_quota_counting{state="counting"}')) === 0
      })
    },
    {
      status: { text: /Redis +away: .*did not answer within [24]000 ms/, code: 1 },
      log: {
        msg: /^(?:provider|store) outage started$/,
        outage: /^store$/,
        reason: /did not answer within [24]000 ms/,
        next: /leave the gateways running; .*#abohawastoredown$/,
      },
      metric: ['abohawa_store_up{store="redis"}', 0],
      alert: 'AbohawaStoreDown',
      others: ['AbohawaQuotaNotCounted'],
      firstStep: /"store":"not available: Redis failed: it did not answer within [24]000 ms"/,
    },
  )
  t.ok(Number.isNaN(await gateway.metric('abohawa_redis_memory_used_bytes')), 'memory is not known')
  redis.signal('SIGCONT')
})

t.test('two gateways of a fleet run with different settings', { skip: withoutPromtool }, async t => {
  const redis = await testRedis(t)
  const clock = manualClock(Date.now())
  const env = redis.env
  const scene = await started(t, { providerUrl: nowhere, clock, env })
  const { gateway } = scene
  let other: TestGateway | undefined
  await drill(
    t,
    scene,
    async () => {
      const differing = { ...env, ABOHAWA_CACHE__FRESH_FOR: '2h' }
      other = await startGateway(t, { providerUrl: nowhere, clock, env: differing })
      await until('both have run for two minutes', async () => {
        clock.advance(minute / 2)
        return (await gateway.metric('abohawa_config_variants')) === 2 && hasWarned(gateway)
      })
    },
    {
      status: { text: / differs +ready (.|\n)*1 other instance runs different settings/ },
      log: {
        msg: /^fleet settings differ$/,
        variants: /^2$/,
        next: /which instances differ; .*#abohawaconfigdiffers$/,
      },
      metric: ['abohawa_config_variants', 2],
      alert: 'AbohawaConfigDiffers',
      firstStep: / differs +ready /,
    },
  )
  t.match((await sendRequest(`${gateway.opsUrl}/readyz`)).text, /the fleet runs 2 different ones/)
  t.equal(await other?.set({ 'cache.freshFor': '1h' }), 'applied')
  const isTold = () => gateway.logged.some(({ msg }) => msg === 'fleet settings agree again')
  await until('they are told to agree', async () => {
    clock.advance(minute / 2)
    return (await gateway.metric('abohawa_config_variants')) === 1 && isTold()
  })
})

const hasWarned = ({ logged }: TestGateway): boolean =>
  logged.some(({ msg }) => msg === 'fleet settings differ')
