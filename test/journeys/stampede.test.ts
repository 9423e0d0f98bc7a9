// Many callers request one cold cell: the provider gets one request and everybody the right response.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { createGrid } from '../../src/weather/cell.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider-process.ts'
import { type Answer, sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

const provider = await startProvider(t)

// The paths of all places in the cell with the most of them, and of a point in it.
const callersOfOneCell = (): string[] => {
  const grid = createGrid(0.1)
  const { locations } = JSON.parse(readFileSync(usualCatalogue, 'utf8')) as { locations: Place[] }
  const cells = Map.groupBy(locations, ({ latitude, longitude }) => grid.cellOf(latitude, longitude).id)
  const [id, places] = [...cells].sort(([, a], [, b]) => b.length - a.length)[0] ?? ['', []]
  return [...places.map(place => `${place.type}/${place.id}`), `coords/${id.replace(',', '/')}`]
}
type Place = { type: string; id: string; latitude: number; longitude: number }

t.test(
  '200 simultaneous cold requests for places in one cell are one provider call and 200 right answers',
  async t => {
    const gateway = await startGateway(t, { providerUrl: provider.url })
    const callers = callersOfOneCell()
    t.ok(callers.length > 8, `${callers.length} different paths`)
    const { calls } = await provider.steer({ hold: true })
    const pending = Array.from({ length: 200 }, (_, i) =>
      gateway.get(`/weather/${callers[i % callers.length]}?lang=en`),
    )
    // A unit is counted before the cache is read, so once all are counted all of them wait for the one load.
    const counted = async () =>
      (await gateway.administration.usage(gateway.keyIds.enterprise ?? '', 1)).days[0]?.used
    await until(
      'all are counted and the provider has a request',
      async () => (await provider.state()).inFlight > 0 && (await counted()) === 200,
    )
    await provider.steer({ hold: false })
    const answers = await Promise.all(pending)
    t.equal((await provider.state()).calls - calls, 1)
    t.strictSame(new Set(answers.map(({ status }) => status)), new Set([200]))
    t.equal(new Set(answers.map(({ body }) => JSON.stringify(body.current))).size, 1)
    t.equal(
      new Set(answers.map(({ headers }) => headers['x-ratelimit-remaining'])).size,
      200,
      'each was counted',
    )
    answers.forEach(({ body }, i) => {
      const [type, id] = (callers[i % callers.length] ?? '').split('/')
      t.equal(body.location.type, type)
      if (type !== 'coords') t.equal(body.location.id, id, 'each got its own place')
    })
    t.equal(answers.filter(({ headers }) => /collapsed/.test(headers['cache-status'] ?? '')).length, 199)
  },
)

t.test('cells that miss together travel in one request, and each gets its own weather', async t => {
  const gateway = await startGateway(t, { providerUrl: provider.url })
  const { calls, points } = await provider.state()
  const ids = (await gateway.get('/locations?type=district&limit=100')).body.results.map(
    ({ id }: { id: string }) => id,
  )
  await provider.steer({ hold: true })
  const pending = ids.map((id: string) => gateway.get(`/weather/district/${id}?lang=en`))
  const counted = async () =>
    (await gateway.administration.usage(gateway.keyIds.enterprise ?? '', 1)).days[0]?.used
  // The request for the list of districts is counted too.
  await until('all are counted', async () => (await counted()) === ids.length + 1)
  await provider.steer({ hold: false })
  const answers = await Promise.all<Answer>(pending)
  const state = await provider.state()
  const cells = new Set(
    answers.map(({ headers }) => /key="([^"]+)"/.exec(headers['cache-status'] ?? '')?.[1]),
  )
  t.equal(state.points - points, cells.size, 'each cell once')
  t.ok(state.calls - calls <= 2, `${state.calls - calls} calls for ${cells.size} cells`)
  t.ok(state.maxInFlight <= 1, 'never more at once than the provider runs')
  for (const { body, headers } of answers.slice(0, 10)) {
    const [lat, lng] = (/key="([^"]+)"/.exec(headers['cache-status'] ?? '')?.[1] ?? '').split(',')
    const alone = await sendRequest(
      `${provider.url}/v1/forecast?latitude=${lat}&longitude=${lng}&timezone=Asia%2FDhaka&daily=temperature_2m_max`,
    )
    const day = alone.body.daily.time.indexOf(body.daily.time[3])
    t.equal(body.daily.temperature_2m_max[3], alone.body.daily.temperature_2m_max[day], `cell ${lat},${lng}`)
  }
})

t.test('a failed load fails all waiters, backs off, and is retried for the next caller', async t => {
  const clock = manualClock()
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    clock,
    env: { ABOHAWA_TEST_PROVIDER__RETRIES: '0', ABOHAWA_TEST_CACHE__RETRY_AFTER: '10s' },
  })
  const point = '/weather/coords/24.4/88.6'
  const { calls } = await provider.steer({ fault: 'internal-error' })
  const failed = await Promise.all([1, 2, 3].map(() => gateway.get(point)))
  t.strictSame(
    failed.map(({ status }) => status),
    [500, 500, 500],
  )
  await provider.steer({ fault: 'none' })
  const backingOff = await gateway.get(point)
  t.equal(backingOff.status, 500)
  const seconds = Number(backingOff.headers['retry-after'])
  t.ok(seconds >= 10 && seconds <= 15, `retry-after is ${seconds} s`)
  t.equal((await provider.state()).calls - calls, 1, 'they failed together, and nobody retried')
  clock.advance(seconds * 1_000)
  await provider.steer({ now: new Date(clock.now()).toISOString() })
  t.equal((await gateway.get(point)).status, 200)
  t.equal((await provider.state()).calls - calls, 2)
})
