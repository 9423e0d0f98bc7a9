// Without it a fault or lie of the provider could reach consumers, spoil the cache, or cause a storm of retries.

import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { startHostileProvider } from '../support/hostile-provider.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const at = '2026-11-21T06:05:30Z'
const clock = manualClock(at)
const provider = await startProviderHere(t)

// A new gateway for each fault, so that none sees the fault before it.
const setUp = async (t: Test, timeout = '30s'): Promise<TestGateway> => {
  clock.set(at)
  await provider.steer({ now: at, fault: 'none' })
  return startGateway(t, {
    providerUrl: provider.url,
    clock,
    env: {
      ABOHAWA_TEST_PROVIDER__RETRIES: '2',
      ABOHAWA_PROVIDER__TIMEOUT: timeout,
      ABOHAWA_TEST_PROVIDER__BODY_TIMEOUT: timeout,
      ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
      ABOHAWA_TEST_CACHE__RETRY_AFTER: '20s',
    },
  })
}

const busy = 'no weather is available for this place right now: '
const once = 1
const withRetries = 3
const unusable = "the weather provider's answer was not usable"
const cutOff = "the weather provider's answer was cut off"
const usedUp = 'the gateway has used up its quota at the weather provider'
// faults, calls for one request, the end of the sentence, seconds to wait
const faults: [names: string, calls: number, sentence: string, retryAfter?: number][] = [
  ['bad-request', once, 'the weather provider has none for this grid cell'],
  ['too-much-data', once, 'the weather provider refused the size of our request'],
  ['unauthorized unknown-key forbidden not-found', once, 'the weather provider does not accept this gateway'],
  // 06:05:30 UTC: the minute ends in 30 s, the hour in 54.5 min, the UTC day in almost 18 h; plus the margin.
  ['minutely-limit', once, usedUp, 32],
  ['hourly-limit', once, usedUp, 3_272],
  ['daily-limit', once, usedUp, 64_472],
  ['concurrent-limit', withRetries, 'the weather provider is busy'],
  ['internal-error bad-gateway gateway-timeout', withRetries, 'the weather provider is failing'],
  ['overloaded', once, 'the weather provider is overloaded'],
  ['empty cut-off streaming-error', withRetries, cutOff],
  ['reset', withRetries, 'the connection to the weather provider broke'],
  ['hang stall', once, 'the weather provider did not answer in time'],
  ['header-only wrong-count wrong-offset missing-section', once, unusable],
  ['missing-variable short-array all-null irregular-times', once, unusable],
]

// The gateway's own first backoff of a failed cell: 20 to 30 s.
const firstBackoff = [20, 30] as const

const each = faults.flatMap(([names, ...rest]) => names.split(' ').map(name => [name, ...rest] as const))
for (const [fault, calls, sentence, retryAfter] of each)
  t.test(`${fault}: a cold cell is 500 after ${calls} call(s), and a warm one is served on`, async t => {
    // Of a fault that only a timeout ends, a short one is waited for.
    const gateway = await setUp(t, ['hang', 'stall'].includes(fault) ? '2s' : undefined)
    const [warm, cold] = ['/weather/coords/25/89', '/weather/coords/21/90']
    const before = await gateway.get(warm)
    t.equal(before.status, 200)
    const { calls: callsBefore } = await provider.steer({ fault })
    const answer = await gateway.get(cold)
    t.equal(answer.status, 500)
    t.equal(answer.body.error, busy + sentence)
    const [least, most] = retryAfter ? [retryAfter, retryAfter] : firstBackoff
    const seconds = Number(answer.headers['retry-after'])
    t.ok(seconds >= least && seconds <= most, `retry-after ${seconds}, expected ${least} to ${most}`)
    t.notMatch(answer.text, /open-meteo|127\.0\.0\.1|nginx|reason|html/i, 'nothing of the provider’s own')
    t.equal((await provider.state()).calls - callsBefore, calls)
    t.strictSame((await gateway.get(cold)).body, answer.body, 'the same error again')
    t.equal((await provider.state()).calls - callsBefore, calls, 'and the provider is left alone')

    // Stale, so that a refresh meets the fault; the old weather stays.
    clock.advance(2 * 3_600_000)
    const stale = await gateway.get(warm)
    t.equal(stale.status, 200)
    t.match(stale.headers['cache-status'], /fwd=stale; (collapsed; )?ttl=-\d+; detail=memory/)
    const failures = () => gateway.metric('abohawa_cache_refresh_failures_total{purpose="refresh"}')
    await until('the refresh has failed', async () => (await failures()) === 1)
    t.match((await gateway.get(warm)).headers['cache-status'], /; hit; ttl=-\d+; detail=memory/, 'it rests')
    clock.set(at)
    t.strictSame((await gateway.get(warm)).body, before.body, 'the good timeline was not overwritten')
    const later = '2026-11-22T08:00:00Z'
    clock.set(later)
    await provider.steer({ fault: 'none', now: later })
    t.equal((await gateway.get(cold)).status, 200, 'and the cold cell recovers with the provider')
  })

t.test('a batch is refused for one point: the others are served, the bad one alone fails', async t => {
  const gateway = await setUp(t)
  await provider.steer({ fault: 'poison' })
  const points = ['22.2/91.1', '22.3/91.1', '22.4/91.1', '22.5/91.1', '22.6/91.1', '22.7/91.1']
  const answers = await Promise.all(points.map(point => gateway.get(`/weather/coords/${point}`)))
  t.strictSame(
    answers.map(({ status }) => status),
    [500, 200, 200, 200, 200, 200],
  )
  await provider.steer({ fault: 'none' })
})

t.test('a retry that helps is not noticed by the consumer', async t => {
  const gateway = await setUp(t)
  for (const [i, fault] of ['internal-error', 'reset', 'cut-off', 'bad-gateway'].entries()) {
    await provider.steer({ fault, times: 1 })
    t.equal((await gateway.get(`/weather/coords/26.5/88.${i}`)).status, 200, fault)
  }
})

t.test('our key goes to the provider in a header and shows nowhere', async t => {
  const keyed = await startProviderHere(t, { runs: 'none', apiKey: 'provider-secret-1' }, at)
  const start = (key: string) =>
    startGateway(t, { providerUrl: keyed.url, clock, env: { ABOHAWA_PROVIDER__API_KEY: key } })
  const withKey = await start('provider-secret-1')
  t.equal((await withKey.get('/weather/district/3026')).status, 200)
  t.notMatch(JSON.stringify(await keyed.state()), /provider-secret/)
  const wrong = await start('provider-secret-2')
  const refused = await wrong.get('/weather/district/3026')
  t.equal(refused.status, 500)
  t.notMatch(refused.text + JSON.stringify(wrong.logged), /provider-secret/)
})

// A provider that lies or floods. All lies are in test/provider/open-meteo/decode.test.ts.

type Damage = (answer: string) => string | Buffer
const put =
  (pattern: RegExp, by: string): Damage =>
  answer =>
    answer.replaceAll(pattern, by)
const damages: [what: string, damage: Damage, reason: string, sentence: string][] = [
  [
    'temperatures of 8191.9',
    answer =>
      answer.replaceAll(/"temperature_2m":\[[^\]]+/g, of => of.replaceAll(/(?<=[[,])[^,]+/g, '8191.9')),
    'out_of_range',
    unusable,
  ],
  ['weather of another place', put(/"latitude":[^,]+/g, '"latitude":51.5'), 'wrong_place', unusable],
  ['more bytes than requested', () => Buffer.alloc(2_000_000, ' '), 'too_large', unusable],
  ['zipped bytes that are not said to be', answer => gzipSync(answer), 'damaged', cutOff],
]

t.test('one odd value is null and costs no place its weather; it is counted and said once', async t => {
  clock.set(at)
  await provider.steer({ now: at, fault: 'odd-values' })
  const { get, metric, logged } = await startGateway(t, { providerUrl: provider.url, clock })
  for (const place of ['21/90', '22/90', '23/90', '24/90']) {
    const { status, body } = await get(`/weather/coords/${place}`)
    t.equal(status, 200)
    // Every twentieth hour from yesterday's first on: here 16:00, four hours from now.
    const { cloud_cover, weather_code, relative_humidity_2m, precipitation } = body.hourly
    t.strictSame(
      [cloud_cover[4], weather_code[4], relative_humidity_2m[4], precipitation[4]],
      [null, null, 100, 0],
      'the last two were rounded beyond their bounds',
    )
    t.notOk([...cloud_cover.slice(0, 4), ...weather_code.slice(0, 4)].includes(null))
  }
  const countOf = (variable: string) => metric(`abohawa_provider_odd_values_total{variable="${variable}"}`)
  t.ok(((await countOf('weather_code')) ?? 0) >= 12)
  t.equal(await countOf('precipitation'), 0)
  t.match(
    logged.filter(({ msg }) => msg === 'odd values left out'),
    [
      {
        level: 'warn',
        variable: 'weather_code',
        section: 'minutely_15',
        value: '4',
        allowed: /^the WMO codes 0/,
      },
      { level: 'warn', variable: 'cloud_cover', value: '140' },
    ],
  )
  await provider.steer({ fault: 'none' })
})

t.test('nobody gets an answer that lies; it is counted, and the older weather is served on', async t => {
  let damage: Damage = answer => answer
  const lying = await startHostileProvider(t, provider.url, {
    lying: async ({ response, honest }) => response.end(damage(await honest())),
  })
  const { get, metric, opsUrl } = await startGateway(t, {
    providerUrl: lying.url('lying'),
    clock,
    env: {
      ABOHAWA_TEST_PROVIDER__RETRIES: '0',
      ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
      ABOHAWA_TEST_CACHE__RETRY_AFTER: '10ms',
      ABOHAWA_TEST_CACHE__RETRY_AFTER_AT_MOST: '10ms',
    },
  })
  for (const [i, [what, lie, reason, sentence]] of damages.entries()) {
    const counted = () => metric(`abohawa_provider_refused_answers_total{reason="${reason}"}`)
    clock.set(at)
    await provider.steer({ now: at, fault: 'none' })
    damage = answer => answer
    const [warm, cold] = [`/weather/coords/23/88.${2 * i}`, `/weather/coords/24/88.${2 * i}`]
    const before = await get(warm)
    t.equal(before.status, 200, what)

    damage = lie
    t.hasStrict(await get(cold), { status: 500, body: { error: busy + sentence } })
    t.equal(await counted(), 1)
    clock.advance(2 * 3_600_000)
    t.match((await get(warm)).headers['cache-status'], /fwd=stale/)
    await until(`the refresh is refused as ${reason}`, async () => ((await counted()) ?? 0) >= 2)
    clock.set(at)
    t.strictSame((await get(warm)).body, before.body, 'as it was')
    t.equal((await sendRequest(`${opsUrl}/readyz`)).status, 200)
  }
})
