// A second upstream behind the first: two real providers whose weather differs, so that every body shows where it came from.

import t, { type Test } from 'tap'
import { type ProviderProcess, startProvider } from '../support/provider-process.ts'
import { type Answer, type GatewaySetting, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const [first, second] = await Promise.all([
  startProvider(t, ['--runs', 'none', '--seed', '1']),
  startProvider(t, ['--runs', 'none', '--seed', '2']),
])

const places = ['23.8/90.4', '24.9/91.9', '22.4/91.8', '24.4/88.6', '22.8/89.5', '25.7/89.2']
const pathOf = (place: string) => `/weather/coords/${place}`
const upstreamOf = ({ headers }: Answer) => / upstream=([\w-]+)/.exec(headers['cache-status'] ?? '')?.[1]

// What each of them alone would answer.
const alone = async (provider: ProviderProcess) => {
  const gateway = await startGateway(t, { providerUrl: provider.url })
  const bodies = await Promise.all(places.map(async place => (await gateway.get(pathOf(place))).body.current))
  return new Map(places.map((place, i) => [place, bodies[i]]))
}
const [ofFirst, ofSecond] = await Promise.all([alone(first), alone(second)])
const weatherOf: Record<string, Map<string, unknown>> = { primary: ofFirst, 'fallback-1': ofSecond }

const fallbacks = (more: object = {}, url = second.url) =>
  JSON.stringify([{ baseUrl: url, budget: { perMinute: null, perHour: null, perDay: null }, ...more }])

const setUp = async (t: Test, { env = {}, ...more }: Partial<GatewaySetting> = {}) => {
  for (const provider of [first, second]) await provider.steer({ fault: 'none', hold: false, reset: true })
  const gateway = await startGateway(t, {
    providerUrl: first.url,
    ...more,
    env: {
      ABOHAWA_PROVIDER__FALLBACKS: fallbacks(),
      ABOHAWA_TEST_PROVIDER__RETRIES: '0',
      ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '300ms',
      ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '600ms',
      ...env,
    },
  })
  /** The upstream that a response names, whose weather its body has to be. */
  const ask = async (place: string): Promise<string | undefined> => {
    const answer = await gateway.get(pathOf(place))
    if (answer.status !== 200) return answer.text
    const upstream = upstreamOf(answer)
    t.strictSame(answer.body.current, weatherOf[upstream ?? '']?.get(place), `the weather of ${upstream}`)
    return upstream
  }
  return { gateway, ask }
}
const circuitOf = ({ metric }: TestGateway) => metric('abohawa_provider_circuit{state="closed"}')

t.test('while the first is away the second answers; then the first does again', async t => {
  const { gateway, ask } = await setUp(t)
  t.equal(await ask('23.8/90.4'), 'primary')
  t.equal((await second.state()).calls, 0, 'nobody asks the second while the first answers')
  await first.steer({ fault: 'reset' })
  for (const place of places.slice(1, 4)) t.equal(await ask(place), 'fallback-1')
  t.equal(await ask('23.8/90.4'), 'primary', 'what the first gave stays')
  t.equal(await circuitOf(gateway), 0)

  const calls = (await first.state()).calls
  await first.steer({ fault: 'none' })
  await until('a probe has closed the circuit', async () => (await circuitOf(gateway)) === 1)
  const back = await first.state()
  t.ok(back.calls - calls <= 3, 'by few requests')
  t.equal(back.requests.at(-1)?.latitudes, 1, 'of one point')
  t.equal(await ask('22.8/89.5'), 'primary')
  t.equal(await ask('24.9/91.9'), 'fallback-1', 'what the second gave stays until it is due')
})
