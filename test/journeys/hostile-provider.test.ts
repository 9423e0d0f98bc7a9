// A provider that lies or floods, as consumers and operators see it: nobody gets its weather, older weather is still served, the
// metrics name the fault, and the gateway stays healthy. All lies are in test/provider/open-meteo/decode-lies.test.ts.

import { gzipSync } from 'node:zlib'
import t from 'tap'
import { startHostileProvider } from '../support/hostile-provider.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const start = '2026-11-21T06:05:30Z'
const clock = manualClock(start)
const honest = await startProviderHere(t, undefined, start)

/** Returns the damaged form of an honest response. */
type Spoil = (answer: string) => string | Buffer
let spoil: Spoil = answer => answer
const provider = await startHostileProvider(t, honest.url, {
  lying: async ({ response, honest }) => response.end(spoil(await honest())),
})
const gateway = await startGateway(t, {
  providerUrl: provider.url('lying'),
  clock,
  env: {
    ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '100',
    ABOHAWA_TEST_CACHE__RETRY_AFTER: '10ms',
    ABOHAWA_TEST_CACHE__RETRY_AFTER_AT_MOST: '10ms',
  },
})
const refusedAs = async (reason: string): Promise<number> =>
  (await gateway.metric(`abohawa_provider_refused_answers_total{reason="${reason}"}`)) ?? 0

const sentence =
  "no weather can be given for this place right now: the weather provider's answer was not usable"
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
    clock.set(start)
    spoil = answer => answer
    longitude = Math.round((longitude + 0.2) * 10) / 10
    const [warm, cold] = [`/weather/coords/23/${longitude}`, `/weather/coords/24/${longitude}`]
    const before = await gateway.get(warm)
    t.equal(before.status, 200)
    const counted = await refusedAs(reason)

    spoil = lie
    const answer = await gateway.get(cold)
    t.equal(answer.status, 500)
    t.match(
      answer.body.error,
      reason === 'damaged' ? /: the weather provider's answer was cut off$/ : sentence,
    )
    t.equal(await refusedAs(reason), counted + 1)

    clock.advance(2 * 3_600_000)
    t.match((await gateway.get(warm)).headers['cache-status'], /fwd=stale/)
    await until(`the refresh is refused as ${reason}`, async () => (await refusedAs(reason)) >= counted + 2)
    clock.set(start)
    t.strictSame((await gateway.get(warm)).body, before.body, 'as it was')
    t.equal((await sendRequest(`${gateway.opsUrl}/readyz`)).status, 200)
    spoil = answer => answer
  })
