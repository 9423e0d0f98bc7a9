// Without it `--check-bodies` could miss a broken body, or blame a correct one.

import { brotliCompressSync, gzipSync } from 'node:zlib'
import t from 'tap'
import type { Destination } from '../../../../src/common/endpoints.ts'
import { checkBodies, digestLines } from '../../../../tools/load/replay/body-check.ts'
import { type KeptBody, oneEach } from '../../../../tools/load/replay/kept-bodies.ts'
import { startSimulator } from '../../../../tools/provider/simulator.ts'
import { manualClock } from '../../../support/manual-clock.ts'
import { startGateway } from '../../../support/start-gateway.ts'

const clock = manualClock(Date.parse('2026-11-21T06:00:00Z'))
const simulator = await startSimulator({ clock })
t.teardown(simulator.close)
const { get } = await startGateway(t, { providerUrl: simulator.url, clock })

const paths: [Destination, string][] = [
  ['weather', '/api/v1/weather/district/3026?lang=en'],
  ['coords', '/api/v1/weather/coords/23.81/90.41'],
  ['forecast', '/api/v1/forecast/district/3026?days=3'],
  ['locations', '/api/v1/locations?type=district'],
  ['location', '/api/v1/locations/district/3026'],
  ['weather', '/api/v1/weather/district/9999'],
  ['weather_places', '/api/v1/weather?places=district/3026,coords/23.81/90.41,district/9999'],
  ['forecast_places', '/api/v1/forecast?days=3&places=district/3026,coords/23.81/90.41,district/3026'],
]
const fetched = async (): Promise<KeptBody[]> =>
  Promise.all(
    paths.map(async ([endpoint, path]) => {
      const { status, text } = await get(path.replace('/api/v1', ''))
      return { path, endpoint, status, encoding: undefined, body: Buffer.from(text) }
    }),
  )
const kept = await fetched()

t.test('the bodies of a gateway are right, also compressed', async t => {
  const statuses = kept.map(({ status }) => status)
  t.strictSame(statuses, [200, 200, 200, 200, 200, 404, 200, 200])
  t.strictSame(checkBodies(kept), { checked: 8, faults: [] })
  const gzip = kept.map(each => ({ ...each, encoding: 'gzip', body: gzipSync(each.body) }))
  const br = kept.map(each => ({ ...each, encoding: 'br', body: brotliCompressSync(each.body) }))
  t.strictSame(checkBodies([...gzip, ...br]), { checked: 16, faults: [] })
})

t.test('what is wrong in a body is found', async t => {
  const [weather, , forecast] = kept as [KeptBody, KeptBody, KeptBody]
  const [list, days] = kept.slice(6) as [KeptBody, KeptBody]
  const listed = (of: KeptBody, change: (body: { location: { id: string } }[]) => object): KeptBody => ({
    ...of,
    body: Buffer.from(JSON.stringify(change(JSON.parse(Buffer.from(of.body).toString())))),
  })
  const changed = (of: KeptBody, section: string, field: string, value: unknown): KeptBody => {
    const body = JSON.parse(Buffer.from(of.body).toString())
    body[section][field] = value
    return { ...of, body: Buffer.from(JSON.stringify(body)) }
  }
  const cases: [KeptBody, RegExp][] = [
    [{ ...weather, body: weather.body.subarray(0, 50) }, /not JSON/],
    [{ ...weather, encoding: 'gzip' }, /not valid gzip/],
    [changed(weather, 'location', 'id', '3033'), /the place is district 3033, not the requested one/],
    [changed(weather, 'current', 'temperature_2m', 99), /200: current.temperature_2m: Too big: .*<=70/],
    [changed(weather, 'current', 'weather_code', 40), /^current.weather_code is 40, which can't occur$/],
    [changed(weather, 'current', 'temperature_2m', 'warm'), /status 200: current.temperature_2m: /],
    [{ ...forecast, path: forecast.path.replace('days=3', 'days=4') }, /has 3 days instead of 4/],
    [changed(forecast, 'daily', 'time', ['2026-11-21']), /the columns of daily have different lengths/],
    [{ ...weather, status: 500 }, /status 500: error: /],
    [listed(list, body => body.slice(1)), /^has 2 places instead of 3$/],
    [
      listed(list, body => [body[1], body[0], body[2]] as object),
      /^district\/3026: the place is coords undefined/,
    ],
    [{ ...days, path: days.path.replace('days=3', 'days=2') }, /^district\/3026: has 3 days instead of 2$/],
    [listed(days, () => []), /status 200: /],
  ]
  for (const [body, fault] of cases) {
    const { faults } = checkBodies([body, body])
    t.equal(faults.length, 1)
    t.match(faults[0], { path: body.path, fault, count: 2 })
  }
})

t.test('what two workers kept of one path is one', t => {
  const [first, ...others] = kept
  const failed = { ...first, status: 503 } as KeptBody
  t.strictSame(oneEach([...kept, failed, ...kept, failed]), [first, ...others, failed])
  t.end()
})

t.test('the digest is of what does not change with time', async t => {
  const before = digestLines(kept)
  clock.advance(3 * 3_600_000)
  const after = await fetched()
  t.notSame(after[0]?.body, kept[0]?.body, 'the weather is another')
  t.equal(digestLines(after), before)
  t.match(JSON.parse(before.split('\n')[0] ?? ''), { path: /^\/api/, status: 200, digest: /^[0-9a-f]{32}$/ })
  const renamed = kept.map(each => ({
    ...each,
    body: Buffer.from(Buffer.from(each.body).toString().replace('Dhaka', 'Dacca')),
  }))
  t.not(digestLines(renamed), before)
})
