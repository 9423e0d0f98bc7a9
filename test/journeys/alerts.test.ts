// Without it a real fault could raise no alert, a wrong one, or a false one on a healthy gateway.

import { closeSync, copyFileSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/common/clock.ts'
import { freePort } from '../support/listening.ts'
import { manualClock } from '../support/manual-clock.ts'
import { spawnServe } from '../support/process.ts'
import { ruleTests, type Scrape, samplesIn, type Watch, withoutPromtool } from '../support/promtool.ts'
import { startProviderHere } from '../support/provider.ts'
import { patientRedisEnv, startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { type GatewaySetting, sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

const hourMs = 3_600_000
const scrape = async (opsUrl: string): Promise<string> => (await sendRequest(`${opsUrl}/metrics`)).text

const isOurs = (series: string): boolean => /^(abohawa|http_server)_/.test(series)

const watches: Watch[] = []

/** A gateway, and the minutes at which Prometheus would have scraped it. Its clock stands still unless one is given. */
const watched = async (t: Test, { clock = manualClock(), ...setting }: GatewaySetting) => {
  const startedAt = clock.now()
  const gateway = await startGateway(t, { ...setting, clock })
  const scrapes: Scrape[] = []
  const expected: { at: number; alerts: string[] }[] = []
  watches.push({ name: t.name, scrapes, startedAt, expected })
  return {
    gateway,
    scrapeAt: async (minute: number): Promise<Map<string, number>> => {
      const text = await scrape(gateway.opsUrl)
      const samples = samplesIn(text)
      // Traffic and faults change values; no series appears that was not there from the first scrape.
      const [first] = scrapes
      if (first)
        t.strictSame([...samples.keys()].filter(isOurs), [...samplesIn(first.text).keys()].filter(isOurs))
      scrapes.push({ minute, text })
      return samples
    },
    /** Exactly these alerts fire at a minute before the next scrape. All are checked in one run at the end. */
    fires: (at: number, ...alerts: string[]) => {
      expected.push({ at, alerts })
    },
  }
}

const isOpen = async (opsUrl: string) =>
  samplesIn(await scrape(opsUrl)).get('abohawa_provider_circuit{state="closed"}') === 0

t.test('a healthy gateway raises no alert', { skip: withoutPromtool }, async t => {
  const provider = await startProviderHere(t)
  const { gateway, scrapeAt, fires } = await watched(t, { providerUrl: provider.url })
  await scrapeAt(0)
  for (let minute = 5; minute <= 60; minute += 5) {
    await gateway.get('/weather/district/3026')
    await gateway.get('/weather/district/9')
    await gateway.get('/locations?type=division', { key: null })
    await scrapeAt(minute)
  }
  fires(30)
  fires(60)
})

t.test('the provider is down, and the cache runs out', { skip: withoutPromtool }, async t => {
  const provider = await startProviderHere(t)
  const clock = manualClock()
  const { gateway, scrapeAt, fires } = await watched(t, { providerUrl: provider.url, clock })
  await gateway.get('/weather/district/3026')
  await scrapeAt(0)
  await provider.steer({ fault: 'internal-error' })
  const loadedAt = clock.now() / 1000
  clock.advance(5 * hourMs)
  await gateway.get('/weather/district/3026')
  await until('the circuit is open', () => isOpen(gateway.opsUrl))
  const early = await scrapeAt(10)
  const left = early.get('abohawa_cache_time_to_first_expiry_seconds') ?? 0
  t.ok(left > 7 * 3600 && left < 9 * 3600, `${left} s are left after 5 h of 13`)
  t.equal(early.get('abohawa_provider_last_success_timestamp_seconds'), loadedAt)
  t.equal(
    early.get('abohawa_provider_last_failure_timestamp_seconds{cause="provider_failing"}'),
    loadedAt + 5 * 3600,
  )
  fires(12)
  fires(16, 'AbohawaProviderDown')
  clock.advance(6.5 * hourMs)
  for (let minute = 20; minute <= 60; minute += 5) {
    t.equal((await gateway.get('/weather/district/3026')).status, 200, 'stale, and served')
    await scrapeAt(minute)
  }
  fires(24, 'AbohawaProviderDown')
  fires(45, 'AbohawaCacheRunsOut', 'AbohawaProviderDown', 'AbohawaWeatherOld')
})

t.test('the provider is down, and nothing is cached', { skip: withoutPromtool }, async t => {
  const provider = await startProviderHere(t)
  const { gateway, scrapeAt, fires } = await watched(t, { providerUrl: provider.url })
  await scrapeAt(0)
  await provider.steer({ fault: 'internal-error' })
  for (let minute = 10; minute <= 20; minute += 2) {
    t.equal((await gateway.get('/weather/district/3026')).status, 500)
    await until('the circuit is open', async () => {
      await gateway.get(`/weather/coords/21.${minute}/89.1`)
      return isOpen(gateway.opsUrl)
    })
    await scrapeAt(minute)
  }
  fires(18, 'AbohawaCacheRunsOut', 'AbohawaErrors', 'AbohawaProviderDown')
})

t.test('the provider refuses the key', { skip: withoutPromtool }, async t => {
  const provider = await startProviderHere(t, { apiKey: 'another' })
  const { gateway, scrapeAt, fires } = await watched(t, { providerUrl: provider.url })
  await scrapeAt(0)
  t.equal((await gateway.get('/weather/district/3026')).status, 500)
  await scrapeAt(10)
  fires(10)
  fires(12, 'AbohawaProviderDenied')
})

t.test('the provider refuses a point, and is limited', { skip: withoutPromtool }, async t => {
  const provider = await startProviderHere(t)
  const { gateway, scrapeAt, fires } = await watched(t, { providerUrl: provider.url })
  await scrapeAt(0)
  await provider.steer({ fault: 'bad-request', times: 1 })
  await gateway.get('/weather/district/3026')
  await provider.steer({ fault: 'daily-limit', times: 1 })
  await gateway.get('/weather/coords/21.1/89.1')
  const samples = await scrapeAt(10)
  t.equal(samples.get('abohawa_cache_backoff_cells{cause="provider_refused"}'), 1)
  fires(14, 'AbohawaProviderLimits')
  fires(45, 'AbohawaCacheRunsOut', 'AbohawaCellsRefused', 'AbohawaProviderLimits')
})

t.test('Redis is slow', { skip: withoutPromtool || withoutOwnRedis }, async t => {
  const provider = await startProviderHere(t)
  const redis = await startRedis(t, { args: ['--maxmemory', '1gb'] })
  const { gateway, scrapeAt, fires } = await watched(t, {
    providerUrl: provider.url,
    // Redis has no other.
    clock: systemClock,
    env: { ...patientRedisEnv, ABOHAWA_REDIS__URL: redis.url, ABOHAWA_REDIS__COMMAND_TIMEOUT: '2s' },
  })
  await gateway.get('/locations?type=division')
  const healthy = await scrapeAt(0)
  t.equal(healthy.get('abohawa_store_up{store="redis"}'), 1)
  t.equal(healthy.get('abohawa_redis_memory_max_bytes'), 2 ** 30)
  t.ok((healthy.get('abohawa_redis_memory_used_bytes') ?? 0) > 100_000)
  t.ok((healthy.get('abohawa_redis_request_duration_seconds_count{outcome="ok"}') ?? 0) > 3)

  const timed = 'abohawa_redis_request_duration_seconds_count{outcome="timeout"}'
  const timeouts = async () => samplesIn(await scrape(gateway.opsUrl)).get(timed) ?? 0
  for (let minute = 10; minute <= 16; minute += 2) {
    const before = await timeouts()
    redis.signal('SIGSTOP')
    await until('a request of it times out', async () => (await timeouts()) > before)
    redis.signal('SIGCONT')
    await until('it answers again', async () => {
      const text = await scrape(gateway.opsUrl)
      return /^abohawa_store_up\{store="redis"\} 1$/m.test(text) && /"counting"\} 1$/m.test(text)
    })
    await scrapeAt(minute)
  }
  fires(16, 'AbohawaRedisTimeouts')
})

t.test('Redis is nearly full', { skip: withoutPromtool || withoutOwnRedis }, async t => {
  const redis = await startRedis(t)
  const { scrapeAt, fires } = await watched(t, {
    providerUrl: 'http://127.0.0.1:9',
    clock: systemClock,
    env: { ...patientRedisEnv, ABOHAWA_REDIS__URL: redis.url },
  })
  const [, used] = /^used_memory:(\d+)/m.exec(await redis.admin.info('memory')) ?? []
  await redis.admin.config('SET', 'maxmemory', Math.round(Number(used) * 1.05))
  await scrapeAt(0)
  fires(12, 'AbohawaRedisMemoryHigh')
})

t.test('the file of the catalogue has a fault', { skip: withoutPromtool }, async t => {
  const path = join(t.testdir(), 'locations.json')
  copyFileSync(usualCatalogue, path)
  const { gateway, scrapeAt, fires } = await watched(t, {
    providerUrl: 'http://127.0.0.1:9',
    env: { ABOHAWA_CATALOGUE__PATH: path },
  })
  t.equal((await scrapeAt(0)).get('abohawa_catalogue_faulty'), 0)
  writeFileSync(path, '{"provenance":')
  await t.rejects(gateway.reloadCatalogue(), { name: 'InputError' })
  t.equal((await gateway.get('/locations/upazila/302672')).status, 200, 'the former one stays')
  t.match((await sendRequest(`${gateway.opsUrl}/readyz`)).body, {
    status: 'ready',
    detail: { catalogue: /newer file rejected/ },
  })
  await scrapeAt(10)
  fires(16, 'AbohawaCatalogueRefused')
})

t.test("the log can't be written", { skip: withoutPromtool }, async t => {
  const port = await freePort()
  const full = openSync('/dev/full', 'w')
  spawnServe(t, t.testdir(), ['ignore', full, 'ignore'], { ABOHAWA_OPS__PORT: String(port) })
  closeSync(full)
  const startedAt = systemClock.now()
  const text = await until('lines are dropped', async () => {
    const seen = await scrape(`http://127.0.0.1:${port}`)
    return /^abohawa_log_lines_dropped_total [1-9]/m.test(seen) && seen
  })
  // Prometheus had seen it at 0 before: every series is there from the first scrape.
  const before = text.replace(/^(abohawa_log_lines_dropped_total) .*$/m, '$1 0')
  const scrapes = [
    { minute: 0, text: before },
    { minute: 10, text },
  ]
  const expected = [
    { at: 9, alerts: [] },
    { at: 12, alerts: ['AbohawaLogLinesDropped'] },
  ]
  watches.push({ name: t.name, scrapes, startedAt, expected })
})

t.test('of each fault exactly its alerts fire, at its minutes', { skip: withoutPromtool }, async t => {
  t.ok(watches.length > 5 && watches.every(({ expected }) => expected.length > 0))
  const { fine, output } = ruleTests(watches)
  t.ok(fine, output)
})
