// The provider in every fault mode, and one that lies or floods: the response without a cached entry, whether the gateway retries, what it never stores,
// and that consumers with a cached entry notice nothing.

import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { startHostileProvider } from '../support/hostile-provider.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const at = '2026-11-21T06:05:30Z'
const clock = manualClock(at)
const provider = await startProviderHere(t)

// A new gateway for each fault, so that none sees the fault before it.
const setUp = async (t: Test): Promise<TestGateway> => {
  clock.set(at)
  await provider.steer({ now: at, fault: 'none' })
  return startGateway(t, {
    providerUrl: provider.url,
    clock,
    env: {
      ABOHAWA_TEST_PROVIDER__RETRIES: '2',
      ABOHAWA_PROVIDER__TIMEOUT: '300ms',
      ABOHAWA_TEST_PROVIDER__BODY_TIMEOUT: '300ms',
      ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
      ABOHAWA_TEST_CACHE__RETRY_AFTER: '20s',
    },
  })
}

const busy = 'no weather can be given for this place right now: '
const once = 1
const withRetries = 3
const unusable = "the weather provider's answer was not usable"
// fault, calls for one request, the end of the sentence, seconds to wait
const faults: [string, number, string, number?][] = [
  ['bad-request', once, 'the weather provider has none for this grid cell'],
  ['too-much-data', once, 'the weather provider refused the size of our request'],
  ['unauthorized', once, 'the weather provider does not accept this gateway'],
  ['unknown-key', once, 'the weather provider does not accept this gateway'],
  ['forbidden', once, 'the weather provider does not accept this gateway'],
  ['not-found', once, 'the weather provider does not accept this gateway'],
  // 06:05:30 UTC: the minute ends in 30 s, the hour in 54.5 min, the UTC day in almost 18 h; plus the margin.
  ['minutely-limit', once, "the gateway's share of the weather provider is used up", 32],
  ['hourly-limit', once, "the gateway's share of the weather provider is used up", 3_272],
  ['daily-limit', once, "the gateway's share of the weather provider is used up", 64_472],
  ['concurrent-limit', withRetries, 'the weather provider is busy'],
  ['internal-error', withRetries, 'the weather provider is failing'],
  ['bad-gateway', withRetries, 'the weather provider is failing'],
  ['gateway-timeout', withRetries, 'the weather provider is failing'],
  ['overloaded', once, 'the weather provider is overloaded'],
  ['empty', withRetries, "the weather provider's answer was cut off"],
  ['cut-off', withRetries, "the weather provider's answer was cut off"],
  ['streaming-error', withRetries, "the weather provider's answer was cut off"],
  ['header-only', once, "the weather provider's answer was not usable"],
  ['reset', withRetries, 'the connection to the weather provider broke'],
  ['hang', once, 'the weather provider did not answer in time'],
  ['stall', once, 'the weather provider did not answer in time'],
  ['wrong-count', once, unusable],
  ['wrong-offset', once, unusable],
  ['missing-section', once, unusable],
  ['missing-variable', once, unusable],
  ['short-array', once, unusable],
  ['all-null', once, unusable],
  ['irregular-times', once, unusable],
]

// The gateway's own first backoff of a failed cell: 20 to 30 s.
const firstBackoff = [20, 30] as const

for (const [fault, calls, sentence, retryAfter] of faults)
  t.test(`${fault}: a cold cell is 500 after ${calls} call(s), and a warm one is served on`, async t => {
    const gateway = await setUp(t)
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
    await until('the refresh has failed', async () => (await failures()) === 1, 20_000, 25)
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
  for (const fault of ['internal-error', 'reset', 'cut-off', 'bad-gateway']) {
    await provider.steer({ fault, times: 1 })
    const longitude = 88 + faults.findIndex(([name]) => name === fault) / 10
    t.equal((await gateway.get(`/weather/coords/26.5/${longitude}`)).status, 200, fault)
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

// A provider that lies or floods. All lies are in test/provider/open-meteo/decode-lies.test.ts.

/** Returns the damaged form of an honest response. */
type Spoil = (answer: string) => string | Buffer
let spoil: Spoil = answer => answer
const lying = await startHostileProvider(t, provider.url, {
  lying: async ({ response, honest }) => response.end(spoil(await honest())),
})
const lied = await startGateway(t, {
  providerUrl: lying.url('lying'),
  clock,
  env: {
    ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
    ABOHAWA_TEST_CACHE__RETRY_AFTER: '10ms',
    ABOHAWA_TEST_CACHE__RETRY_AFTER_AT_MOST: '10ms',
  },
})
const refusedAs = async (reason: string): Promise<number> =>
  (await lied.metric(`abohawa_provider_refused_answers_total{reason="${reason}"}`)) ?? 0

const all =
  (pattern: RegExp, by: string): Spoil =>
  answer =>
    answer.replaceAll(pattern, by)
const lies: [string, Spoil, string][] = [
  ['a temperature of 8191.9', all(/("temperature_2m":\[)[^,]+/g, '$18191.9'), 'out_of_range'],
  ['a weather code of 0.5', all(/("weather_code":\[)[^,]+/g, '$10.5'), 'out_of_range'],
  ['weather of another place', all(/"latitude":[^,]+/g, '"latitude":51.5'), 'wrong_place'],
  ['weather in other units', all(/°C/g, '°F'), 'wrong_unit'],
  ['weather in Greenwich’s time', all(/"utc_offset_seconds":21600/g, '"utc_offset_seconds":0'), 'wrong_time'],
  ['a list without end', () => `[${'0,'.repeat(100_000)}0]`, 'too_many_elements'],
  ['lists in each other', () => `[${'['.repeat(1_000_000)}`, 'too_deep'],
  ['more bytes than requested', () => Buffer.alloc(2_000_000, ' '), 'too_large'],
  ['zipped bytes that are not said to be', answer => gzipSync(answer), 'damaged'],
]

let longitude = 88
for (const [what, lie, reason] of lies)
  t.test(`${what}: nobody gets it, it is counted, and the older weather is served on`, async t => {
    clock.set(at)
    await provider.steer({ now: at, fault: 'none' })
    spoil = answer => answer
    longitude = Math.round((longitude + 0.2) * 10) / 10
    const [warm, cold] = [`/weather/coords/23/${longitude}`, `/weather/coords/24/${longitude}`]
    const before = await lied.get(warm)
    t.equal(before.status, 200)
    const counted = await refusedAs(reason)

    spoil = lie
    const answer = await lied.get(cold)
    t.equal(answer.status, 500)
    t.match(
      answer.body.error,
      reason === 'damaged' ? `${busy}the weather provider's answer was cut off` : busy + unusable,
    )
    t.equal(await refusedAs(reason), counted + 1)

    clock.advance(2 * 3_600_000)
    t.match((await lied.get(warm)).headers['cache-status'], /fwd=stale/)
    await until(`the refresh is refused as ${reason}`, async () => (await refusedAs(reason)) >= counted + 2)
    clock.set(at)
    t.strictSame((await lied.get(warm)).body, before.body, 'as it was')
    t.equal((await sendRequest(`${lied.opsUrl}/readyz`)).status, 200)
    spoil = answer => answer
  })
