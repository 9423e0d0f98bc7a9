// Without it generated traffic could have other places, rates and shares than its options say.

import t, { type Test } from 'tap'
import { hourMs, minuteMs } from '../../../../src/common/calendar.ts'
import { generate } from '../../../../tools/load/traffic/generate/generate.ts'
import type { TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'
import {
  generated,
  noEndpoints,
  productCatalogue,
  productWorld,
  start,
  usualSettings,
} from './generated-traffic.ts'

const many = { rate: 1 }
const isAbout = (t: Test, what: string, actual: number, expected: number, tolerance: number) =>
  t.ok(Math.abs(actual - expected) <= tolerance, `${what}: ${actual}, expected ${expected} ± ${tolerance}`)
const shareOf = (requests: readonly TrafficRequest[], holds: (request: TrafficRequest) => boolean) =>
  requests.filter(holds).length / requests.length
/** How often each value is there, the most frequent first. */
const countsOf = <Value>(values: Iterable<Value>): [Value, number][] => {
  const counts = new Map<Value, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].sort((a, b) => b[1] - a[1])
}
/** Requests by the local hour. */
const hoursOf = (requests: readonly TrafficRequest[]): number[] => {
  const hours = new Array<number>(24).fill(0)
  for (const { at } of requests) {
    const hour = Math.floor((at - start) / hourMs) % 24
    hours[hour] = (hours[hour] as number) + 1
  }
  return hours
}
/** The slope of the logarithms of counts over those of their ranks. */
const slopeOf = (counts: readonly number[]): number => {
  const points = counts.map((count, i): [number, number] => [Math.log(i + 1), Math.log(count)])
  const x = points.reduce((sum, [px]) => sum + px, 0) / points.length
  const y = points.reduce((sum, [, py]) => sum + py, 0) / points.length
  const across = points.reduce((sum, [px, py]) => sum + (px - x) * (py - y), 0)
  return across / points.reduce((sum, [px]) => sum + (px - x) ** 2, 0)
}
const weatherPath = /^\/api\/v1\/weather\/(?:division|district|upazila|union)\/(\d+)(?:\?lang=en)?$/

t.test('arrivals are in order, within the time, and as many as the rate says', async t => {
  for (const shape of ['day', 'flat', 'ramp', 'spike'] as const)
    for (const durationMs of [10 * minuteMs, 36 * hourMs]) {
      const instants = generated({ shape, durationMs, rate: 36_000_000 / durationMs }).map(({ at }) => at)
      isAbout(t, `${shape}, requests`, instants.length, 36_000, 4 * Math.sqrt(36_000))
      t.ok(
        instants.every((at, i) => i === 0 || at >= (instants[i - 1] as number)),
        'in order',
      )
      t.ok((instants[0] as number) >= start && (instants.at(-1) as number) < start + durationMs)
    }
})

t.test('other shapes, and even arrivals', async t => {
  const hours = (shape: 'flat' | 'ramp' | 'spike') =>
    hoursOf(generated({ ...many, shape })).map(count => count / 3600)
  for (const rate of hours('flat')) isAbout(t, 'flat', rate, 1, 0.07)
  for (const [hour, rate] of hours('ramp').entries())
    isAbout(t, `ramp, hour ${hour}`, rate, (hour + 0.5) / 12, 0.09)
  const even = generated({ arrivals: 'even', shape: 'flat', rate: 5, durationMs: hourMs }).map(({ at }) => at)
  t.ok(even.every((at, i) => i === 0 || at - (even[i - 1] as number) === 200))
  const spike = hours('spike')
  isAbout(t, 'the spike over the level', (spike[12] as number) / (spike[3] as number), 10, 1.2)
})

t.test('places are requested by population: Zipf, with Dhaka first', async t => {
  // One after the other, so that none of the hundred thousands is kept.
  const idsOf = function* (alpha: number) {
    for (const { path } of generate({ ...usualSettings, rate: 2, alpha, bad: 0 }, productWorld)) {
      const [, id] = weatherPath.exec(path) ?? []
      if (id !== undefined) yield id
    }
  }
  const byPopulation = productCatalogue.all().toSorted((a, b) => b.population - a.population)
  for (const alpha of [0.6, 1, 1.4]) {
    const found = countsOf(idsOf(alpha))
    if (alpha === 1) t.equal(found[0]?.[0], '30', 'the division Dhaka')
    const counts = new Map(found)
    const ranked = byPopulation.slice(0, 30).map(({ id }) => counts.get(id) ?? 0)
    isAbout(t, 'the slope', slopeOf(ranked), -alpha, 0.07)
  }
  const [most] = countsOf(idsOf(0))
  t.ok((most?.[1] as number) < 60, `all alike with 0: ${most}`)
})

t.test('every share is as it was set', async t => {
  const requests = generated(many)
  const good = requests.filter(({ key, path }) => key !== undefined && !/undefined|null/.test(path))
  const share = (what: string, expected: number, holds: (request: TrafficRequest) => boolean) =>
    isAbout(t, what, shareOf(good, holds), expected, 0.006)
  share('weather', 0.7, ({ path }) => /^\/api\/v1\/weather\/(?!coords)/.test(path))
  share('forecast', 0.2, ({ path }) => path.startsWith('/api/v1/forecast/'))
  share('points', 0.06, ({ path }) => path.startsWith('/api/v1/weather/coords/'))
  share('lists', 0.02, ({ path }) => path.startsWith('/api/v1/locations?'))
  share('details', 0.02, ({ path }) => path.startsWith('/api/v1/locations/'))
  share('in English', 0.3 * 0.76, ({ path }) => path.endsWith('?lang=en'))
  share('conditional', 0.1, ({ conditional }) => conditional === true)
  share('gzip alone', 0.375, ({ accepts }) => accepts === 'gzip')
  share('br too', 0.375, ({ accepts }) => accepts === 'gzip, deflate, br')
  share('neither', 0.25, ({ accepts }) => accepts === undefined)
  for (let days = 1; days <= 7; days++)
    share(`${days} days`, 0.2 / 7, ({ path }) => new RegExp(`/forecast/.*[?]days=${days}$`).test(path))
  const keyless = shareOf(requests, ({ key }) => key === undefined)
  isAbout(t, 'without a key, a quarter of the bad ones', keyless, 0.0025, 0.001)
  t.ok(requests.every(({ method }) => method === 'GET'))

  const mix = { ...noEndpoints, coords: 1 }
  const none = generated({ bad: 0, conditional: 0, compressed: 0, english: 0, mix })
  t.ok(none.every(request => request.key && !('accepts' in request) && !('conditional' in request)))
  t.ok(none.every(({ path }) => /^\/api\/v1\/weather\/coords\/2\d\.\d{4}\/\d\d\.\d{4}$/.test(path)))
})

t.test('another share leaves the rest of the requests as they were', async t => {
  const [few, more] = [generated({ bad: 0.01 }), generated({ bad: 0.2, conditional: 0.5 })]
  t.equal(few.length, more.length)
  const same = few.filter(({ path }, i) => path === more[i]?.path).length
  t.ok(same / few.length > 0.8, `${same} of ${few.length} paths are the same`)
  t.strictSame(
    few.map(({ at }) => at),
    more.map(({ at }) => at),
  )
})

t.test('requests are drawn as they are read, so that a long file takes no more memory', async t => {
  const year = generate({ ...usualSettings, rate: 1000, durationMs: 366 * 24 * hourMs }, productWorld)
  t.hasStrict(year.next(), { done: false, value: { method: 'GET' } })
  year.return(undefined)
})
