// Generated traffic: equal seeds, the skew of places and keys, the hours of a day, shapes, storms, and every share. The seeds
// are fixed, so that each figure is always the same; the tolerances are those of chance.

import t, { type Test } from 'tap'
import type { LocationType } from '../../../../src/catalogue/location-schema.ts'
import { hourMs, minuteMs } from '../../../../src/common/calendar.ts'
import { generate } from '../../../../tools/load/traffic/generate/generate.ts'
import { createRandom, naturalLog, power } from '../../../../tools/load/traffic/generate/random.ts'
import { lineOf, requestOf, type TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'
import {
  generated,
  noEndpoints,
  productCatalogue,
  productWorld,
  start,
  usualSettings,
} from '../../../support/generated-traffic.ts'

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

t.test('own arithmetic agrees with that of the runtime', async t => {
  for (const value of [1e-9, 0.1, 0.5, 0.75, 1, 1.5, 2, 3, 1000, 5104, 4e9])
    isAbout(t, `ln ${value}`, naturalLog(value) / (Math.log(value) || 1), value === 1 ? 0 : 1, 4e-15)
  for (const exponent of [-5, -1, -0.8, 0, 0.5, 2])
    for (const base of [1, 2, 7, 5104])
      isAbout(t, `${base} to the power of ${exponent}`, power(base, exponent) / base ** exponent, 1, 2e-13)
})

t.test('a seed gives these numbers on every machine, each stream its own', async t => {
  const random = createRandom(7, 'places')
  const first = [random(), random(), random()].map(number => number * 2 ** 32)
  t.strictSame(first, [2_803_050_179, 1_323_991_630, 1_801_876_346])
  t.not(createRandom(7, 'keys')() * 2 ** 32, first[0])
  t.not(createRandom(8, 'places')() * 2 ** 32, first[0])
  const drawn = Array.from({ length: 100_000 }, random)
  t.ok(drawn.every(number => number >= 0 && number < 1))
  isAbout(t, 'the mean', drawn.reduce((sum, number) => sum + number, 0) / drawn.length, 0.5, 0.003)
})

t.test('equal settings give equal lines, another seed others, each one of a traffic file', async t => {
  const lines = (seed: number) => generated({ seed, durationMs: hourMs }).map(lineOf)
  t.strictSame(lines(7), lines(7))
  t.not(lines(7)[0], lines(8)[0])
  t.strictSame(
    lines(7).map(line => lineOf(requestOf(line))),
    lines(7),
  )
})

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

t.test('arrivals are a Poisson process, or even', async t => {
  const gapsOf = (kind: 'poisson' | 'even') => {
    const settings = { arrivals: kind, shape: 'flat', rate: 5, durationMs: 2 * hourMs } as const
    const instants = generated(settings).map(({ at }) => at)
    return instants.slice(1).map((at, i) => at - (instants[i] as number))
  }
  const gaps = gapsOf('poisson')
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
  const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length)
  isAbout(t, 'the mean gap in ms', mean, 200, 4)
  isAbout(t, 'its deviation, which is that of an exponential distribution', deviation / mean, 1, 0.03)
  const long = gaps.filter(gap => gap > 400).length / gaps.length
  isAbout(t, 'gaps above twice the mean', long, Math.exp(-2), 0.01)
  t.ok(gapsOf('even').every(gap => gap === 200))
})

t.test('a day has a morning peak, an evening above noon, and a trough at night, in local time', async t => {
  const hours = hoursOf(generated({ ...many, bad: 0 }))
  const most = (from: number, to: number) => Math.max(...hours.slice(from, to))
  const hourOf = (count: number) => hours.indexOf(count)
  t.ok([7, 8].includes(hourOf(most(0, 12))), `the morning peak is at ${hourOf(most(0, 12))}`)
  t.ok([18, 19, 20].includes(hourOf(most(12, 24))), `the evening peak is at ${hourOf(most(12, 24))}`)
  t.ok([1, 2, 3].includes(hourOf(Math.min(...hours))), `the trough is at ${hourOf(Math.min(...hours))}`)
  t.ok(most(0, 12) > 6 * Math.min(...hours) && most(12, 24) > 1.4 * (hours[14] as number))
  // They are those of the clock, wherever the traffic begins.
  const later = hoursOf(generated({ ...many, start: start + 18 * hourMs, durationMs: 12 * hourMs }))
  t.ok((later[19] as number) > 6 * (later[3] as number) && later[12] === 0, `${later}`)
})

t.test('other shapes: flat, ramp, spike', async t => {
  const hours = (shape: 'flat' | 'ramp' | 'spike') =>
    hoursOf(generated({ ...many, shape })).map(count => count / 3600)
  for (const rate of hours('flat')) isAbout(t, 'flat', rate, 1, 0.07)
  for (const [hour, rate] of hours('ramp').entries())
    isAbout(t, `ramp, hour ${hour}`, rate, (hour + 0.5) / 12, 0.09)
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

t.test('keys are used by Zipf', async t => {
  const counts = countsOf(generated({ ...many, keys: 100, bad: 0 }).map(({ key }) => key))
  t.equal(counts.length, 100)
  const first = counts.slice(0, 3).map(([key]) => key)
  t.strictSame(first, ['key-0001', 'key-0002', 'key-0003'])
  isAbout(t, 'the slope', slopeOf(counts.slice(0, 50).map(([, count]) => count)), -0.8, 0.05)
  t.equal(generated({ keys: 1 }).find(({ key }) => key)?.key, 'key-0001')
  t.ok(generated({ keys: 100_000, rate: 0.01 }).some(({ key }) => key?.length === 'key-000001'.length))
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

t.test('a storm raises the requests for its place and those below, by its factor, in its time', async t => {
  const place = productCatalogue.find('district' satisfies LocationType, '2015')
  if (!place) throw new Error('there is no district 2015')
  const [from, to] = [start + 18 * hourMs, start + 22 * hourMs]
  const settings = { rate: 2, shape: 'flat', bad: 0 } as const
  const storm = generated({ ...settings, storms: [{ place, from, to, factor: 10 }] })
  const usual = generated(settings)
  // The codes of places begin with those of their parents.
  const isThere = ({ path }: TrafficRequest) => /\/(?:district|upazila|union)\/2015/.test(path)
  const isElsewhere = ({ path }: TrafficRequest) =>
    /\/(?:division|district|upazila|union)\/(?!2015)/.test(path)
  const ratio = (requests: TrafficRequest[], begin: number, end: number) => {
    const within = requests.filter(({ at }) => at >= begin && at < end)
    return shareOf(within, isThere) / shareOf(within, isElsewhere)
  }
  const always = ratio(usual, start, start + 24 * hourMs)
  isAbout(t, 'at its height', ratio(storm, from + hourMs, from + 2 * hourMs) / always, 10, 1)
  isAbout(t, 'before it', ratio(storm, start, from) / always, 1, 0.1)
  isAbout(t, 'after it', ratio(storm, to, start + 24 * hourMs) / always, 1, 0.2)
  isAbout(t, 'the requests of the file', storm.length, usual.length, 5 * Math.sqrt(usual.length))
  const ids = new Set(storm.filter(isThere).flatMap(({ path }) => weatherPath.exec(path)?.[1] ?? []))
  t.ok(ids.has('2015') && [...ids].some(id => id.length === 6) && [...ids].some(id => id.length === 8))
})

t.test('requests are drawn as they are read, so that a long file takes no more memory', async t => {
  const year = generate({ ...usualSettings, rate: 1000, durationMs: 366 * 24 * hourMs }, productWorld)
  t.match(year.next(), { done: false, value: { method: 'GET' } })
  year.return(undefined)
})
