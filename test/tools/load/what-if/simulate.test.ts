// Without it `whatif` could count hits and provider weight that no gateway has.

import t from 'tap'
import { hourMs, minuteMs, utcDayMs } from '../../../../src/common/calendar.ts'
import type { TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'
import { trafficOf, trySetting } from './simulate-on.ts'

const noBudget = 'provider.budget.perMinute=null provider.budget.perHour=null provider.budget.perDay=null'
const plain = `cache.freshSpread=0 cache.refreshAheadFor=0s ${noBudget}`
/** Of one cell, by the provider's rules. */
const weight = 3
const begin = Date.parse('2026-11-16T06:00:00Z')
const second = 1_000
const freshMs = 10 * minuteMs

const at = (ms: number, path = '/api/v1/weather/district/3026'): TrafficRequest => ({
  at: begin + ms,
  method: 'GET',
  path,
  key: 'key-0001',
})
// A cell each: a degree apart.
const far = (i: number): string => `/api/v1/weather/coords/${22 + (i % 4)}.05/${89 + Math.floor(i / 4)}.05`

const outcomes = ({ hits, stale, misses, failed, provider }: Awaited<ReturnType<typeof trySetting>>) => ({
  memory: hits.memory,
  shared: hits.shared,
  stale,
  misses,
  failed,
  loads: provider.weight / weight,
})
const none = { memory: 0, shared: 0, stale: 0, misses: 0, failed: 0, loads: 0 }

t.test('weather turns stale and expires at its instants', async t => {
  const settings = `cache.freshness=age cache.freshFor=10m cache.staleFor=10m ${plain}`
  const fresh = [at(0), at(freshMs - 1)]
  t.match(outcomes(await trySetting(settings, fresh)), { ...none, misses: 1, memory: 1, loads: 1 })
  const stale = [at(0), at(freshMs)]
  t.match(outcomes(await trySetting(settings, stale)), { ...none, misses: 1, stale: 1, loads: 2 })
  // The refresh behind the stale answer is there with the next request.
  const after = [...stale, at(freshMs + 1)]
  t.match(outcomes(await trySetting(settings, after)), { ...none, misses: 1, stale: 1, memory: 1, loads: 2 })
  const usable = [at(0), at(2 * freshMs - 1)]
  t.match(outcomes(await trySetting(settings, usable)), { ...none, misses: 1, stale: 1, loads: 2 })
  const expired = [at(0), at(2 * freshMs)]
  t.match(outcomes(await trySetting(settings, expired)), { ...none, misses: 2, loads: 2 })
})

t.test('a list of places counts as a request for each', async t => {
  const settings = `cache.freshness=age ${plain}`
  const places = [0, 1, 2].map(i => far(i).replace('/api/v1/weather/', ''))
  const list = `/api/v1/weather?places=${places},${places[0]}`
  const figures = await trySetting(settings, [at(0, far(0)), at(minuteMs, list), at(2 * minuteMs, list)])
  t.match(outcomes(figures), { ...none, misses: 3, memory: 4, loads: 3 })
  t.match(figures, { requests: 7, none: 0 })
})

t.test('what is in demand is refreshed before it turns stale', async t => {
  const settings = `cache.freshness=age cache.freshFor=1h cache.freshSpread=0 cache.refreshAheadFor=1m ${noBudget}`
  // Due after an hour, a minute later stale; half of that minute is left for a full batch.
  const requests = [at(0), at(minuteMs), at(hourMs + minuteMs)]
  const figures = await trySetting(settings, requests)
  t.match(outcomes(figures), { ...none, misses: 1, memory: 2, loads: 2 })
  t.ok(figures.age.max >= minuteMs / second && figures.age.p95 <= minuteMs / second)
  const withoutDemand = [at(0), at(hourMs + minuteMs)]
  t.match(outcomes(await trySetting(settings, withoutDemand)), { ...none, misses: 1, stale: 1, loads: 2 })
})

t.test('by run, weather is fresh until a newer run has settled', async t => {
  const settings = `cache.freshness=run cache.settleFor=10m cache.spreadOver=0s ${plain}`
  // A run becomes available at 06:30 UTC.
  const before = [at(0), at(40 * minuteMs - 1)]
  t.match(outcomes(await trySetting(settings, before)), { ...none, misses: 1, memory: 1, loads: 1 })
  const after = [at(0), at(40 * minuteMs), at(41 * minuteMs)]
  t.match(outcomes(await trySetting(settings, after)), { ...none, misses: 1, stale: 1, memory: 1, loads: 2 })
})

t.test('a spent budget refuses cells with nothing cached, and not those that are cached', async t => {
  const settings = `cache.freshness=age cache.freshFor=1h provider.budget.perDay=${3 * weight} provider.budget.reserve=0`
  const requests = [0, 1, 2, 3].map(i => at(i * second, far(i)))
  const figures = await trySetting(settings, [...requests, at(10 * second, far(0))])
  t.match(outcomes(figures), { ...none, misses: 3, failed: 1, memory: 1, loads: 3 })
  t.strictSame(figures.provider.most, { minute: 9, hour: 9, day: 9 })
  t.strictSame(figures.provider.days, [{ day: '2026-11-16', requests: 3, weight: 9 }])
})

t.test('a full minute delays cold cells to the next one', async t => {
  const settings = `provider.budget.perMinute=${weight} provider.budget.reserve=0 cache.waitFor=2m`
  // Half a minute before its end, with the margin for clocks that differ.
  const requests = [at(40 * second, far(0)), at(41 * second, far(1))]
  const figures = await trySetting(settings, requests)
  t.match(outcomes(figures), { ...none, misses: 2, loads: 2 })
  t.equal(figures.provider.most.minute, weight)
})

t.test('freshness is stretched when demand weighs more than the budget', async t => {
  const requests = Array.from({ length: 60 }, (_, minute) => [at(minute * minuteMs, far(minute % 8))]).flat()
  const settings = 'cache.freshness=age cache.freshFor=5m provider.budget.perDay=600'
  const figures = await trySetting(settings, requests)
  t.ok(figures.stretch.most > 2, `at most ${figures.stretch.most}`)
  t.ok(figures.stretch.share > 0.5 && figures.stretch.share <= 1)
  const plenty = await trySetting(`cache.freshness=age cache.freshFor=5m ${noBudget}`, requests)
  t.strictSame(plenty.stretch, { most: 1, share: 0 })
  t.ok(plenty.provider.weight > figures.provider.weight)
})

t.test('a small memory tier evicts, and the shared tier has it', async t => {
  const round = (from: number) => Array.from({ length: 8 }, (_, i) => at(from + i * second, far(i)))
  const requests = [...round(0), ...round(minuteMs), ...round(2 * minuteMs)]
  const small = await trySetting(`cache.memory=100KiB ${plain}`, requests)
  t.match(outcomes(small), { ...none, misses: 8, shared: 16, loads: 8 })
  t.ok(small.memory.mostBytes <= 100 * 1024 && small.memory.mostEntries < 8)
  const large = await trySetting(`cache.memory=64MiB ${plain}`, requests)
  t.match(outcomes(large), { ...none, misses: 8, memory: 16, loads: 8 })
  t.equal(large.memory.mostEntries, 8)
  t.equal(large.memory.sharedEntries, 8)
  t.ok(large.memory.mostBytes > 8 * 17_000, 'timelines and the bodies that are kept with them')
})

t.test('bodies in several encodings take more memory than one', async t => {
  const requests = Array.from({ length: 70 }, (_, i) => at(i * second))
  const plainly = await trySetting(plain, requests)
  const accepts = (i: number) => ['gzip', 'br', 'identity'][i % 3] ?? ''
  const encoded = requests.map((request, i) => ({ ...request, accepts: accepts(i) }))
  const both = await trySetting(plain, encoded)
  t.ok(both.memory.mostBytes > plainly.memory.mostBytes + 1_000)
})

t.test('instances share what one of them loads', async t => {
  const later = await trySetting(plain, [at(0), at(second), at(2 * second)], { instances: 2 })
  t.match(outcomes(later), { ...none, misses: 1, shared: 1, memory: 1, loads: 1 })
  // While the provider takes its time, the other instance waits for the same load.
  const options = { instances: 2, latencyMs: 500 }
  const meanwhile = await trySetting(plain, [at(0), at(100), at(200)], options)
  t.match(outcomes(meanwhile), { ...none, misses: 3, loads: 1 })
})

t.test('requests that are refused before the cache is read have no weather', async t => {
  const { key: _, ...keyless } = at(0)
  const figures = await trySetting(plain, [
    keyless,
    { ...at(1), method: 'POST' },
    { ...at(2), status: 429 },
    at(3, '/api/v1/weather/district/999999'),
    at(4, '/api/v1/weather/nowhere/3026'),
    at(5, '/api/v1/weather/district/3026?lang=fr'),
    at(6, '/api/v1/weather/coords/91/90'),
    at(7, '/api/v1/locations?type=district'),
    at(8, '/api/v2/weather/district/3026'),
    at(9, '/api/v1/weather/district/%'),
    at(10, '/api/v1/forecast/district/3026?days=99'),
    at(11, '/api/v1/forecast/district/3026?days=3'),
    { ...at(12), method: 'HEAD' },
  ])
  t.equal(figures.requests, 13)
  t.equal(figures.none, 11)
  t.match(outcomes(figures), { ...none, misses: 1, memory: 1, loads: 1 })
})

t.test('a warm-up is not counted, and leaves the cache as it is', async t => {
  const requests = [at(0), at(30 * minuteMs), at(hourMs)]
  const options = { warmUpMs: 10 * minuteMs }
  const figures = await trySetting(`cache.freshness=age cache.freshFor=3h ${plain}`, requests, options)
  t.match(outcomes(figures), { ...none, memory: 2 })
  t.equal(figures.requests, 2)
  t.strictSame(figures.age, { p50: 1_800, p95: 3_600, max: 3_600 })
})

t.test('gaps are skipped, and the figures are those of a clock that ticks through them', async t => {
  // Over midnight UTC and a new run: some alone, some that bring what is in demand to its refresh.
  const hours = [16.5, 16.7, 17.3, 17.35, 17.9, 18.05, 18.9, 19.1]
  const requests = hours.map((hour, i) => at(hour * hourMs, far(i % 3)))
  const cases = [
    [`cache.freshness=run ${noBudget}`, {}],
    [
      'cache.freshness=age cache.freshFor=30m provider.budget.perDay=40 provider.budget.perMinute=6',
      { instances: 2, latencyMs: 400 },
    ],
  ] as const
  for (const [settings, options] of cases) {
    const skipped = await trySetting(settings, requests, options)
    t.strictSame(skipped, await trySetting(settings, requests, { ...options, skips: false }), settings)
    t.equal(skipped.weather, requests.length)
  }
})

t.test('a sparse year costs what its requests cost, and progress goes by the clock', async t => {
  const requests = Array.from({ length: 400 }, (_, i) => at(i * 0.9 * utcDayMs, far(i % 3)))
  const shares: number[] = []
  const onProgress = (share: number) => void shares.push(share)
  const figures = await trySetting(`cache.freshness=run ${noBudget}`, requests, { onProgress })
  t.match(outcomes(figures), { ...none, misses: 400, loads: 400 })
  // Ticks would be sixty million.
  t.ok(shares.length < 20_000, `looked at the gaps ${shares.length} times`)
  t.strictSame(
    shares,
    shares.toSorted((one, other) => one - other),
  )
  t.ok(shares.some(share => share > 0.4 && share < 0.6))
  t.equal(shares.at(-1), 1)
})

t.test('requests far out of place are put in their place, with all that belongs to them', async t => {
  const request = (ms: number, place: string): TrafficRequest => {
    return { ...at(ms, `/api/v1/weather/district/${place}`), key: `k${ms}${place}`, accepts: place }
  }
  const requests = [request(3_000, 'c'), request(1_000, 'a'), request(2_000, 'b'), request(1_000, 'd')]
  const traffic = await trafficOf(requests)
  const rows = Array.from(traffic.at, (at, i) => {
    const form = traffic.forms[traffic.form[i] ?? 0]
    return [at - begin, form?.path?.at(-1), form?.accepts, traffic.keys[(traffic.key[i] ?? 0) - 1]]
  })
  t.strictSame(rows, [
    [1_000, 'a', 'a', 'k1000a'],
    [1_000, 'd', 'd', 'k1000d'],
    [2_000, 'b', 'b', 'k2000b'],
    [3_000, 'c', 'c', 'k3000c'],
  ])
  t.ok(traffic.at.buffer instanceof SharedArrayBuffer)
})
