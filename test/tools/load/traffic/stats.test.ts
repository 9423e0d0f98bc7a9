// Without it reuse, miss ratios and skew in `traffic stats` could be wrong.

import fc from 'fast-check'
import t from 'tap'
import { createPopularity } from '../../../../tools/load/traffic/stats/popularity.ts'
import { createRateOverTime } from '../../../../tools/load/traffic/stats/rate-over-time.ts'
import { createReuse } from '../../../../tools/load/traffic/stats/reuse.ts'
import { createTrafficStats } from '../../../../tools/load/traffic/stats/traffic-stats.ts'

/** How often an LRU cache of a size misses, by keeping one. */
const missesOf = (objects: readonly number[], size: number): number => {
  const cache: number[] = []
  let misses = 0
  for (const object of objects) {
    const at = cache.indexOf(object)
    if (at >= 0) cache.splice(at, 1)
    else misses += 1
    cache.unshift(object)
    cache.splice(size)
  }
  return misses
}

t.test('the miss-ratio curve is that of an LRU cache, whatever is requested', async t => {
  fc.assert(
    fc.property(fc.array(fc.nat(30), { minLength: 1, maxLength: 200 }), objects => {
      const reuse = createReuse()
      for (const [i, object] of objects.entries()) reuse.add(String(object), i)
      const { missRatios, first, requests } = reuse.report()
      t.equal(requests, objects.length)
      t.equal(first, new Set(objects).size)
      for (const { objects: size, missRatio } of missRatios)
        if (Math.abs(missRatio - missesOf(objects, size) / objects.length) > 1e-9)
          t.fail(`${missRatio} for ${size} of ${objects}`)
    }),
    { numRuns: 200 },
  )
})

t.test('places in the tree are given out anew when they run out', async t => {
  const reuse = createReuse()
  const objects = Array.from({ length: 20_000 }, (_, i) => (i * i) % 700)
  for (const [i, object] of objects.entries()) reuse.add(String(object), i * 1_000)
  const { missRatios, seconds, distance, within } = reuse.report()
  for (const { objects: size, missRatio } of missRatios.filter(each => each.objects <= 50))
    t.equal(missRatio.toFixed(9), (missesOf(objects, size) / objects.length).toFixed(9))
  t.ok((distance?.max ?? 0) < 700)
  t.ok((seconds?.p50 ?? 0) > 0 && (seconds?.max ?? 0) <= 20_000 * 1.02)
  t.ok(within.every((each, i) => each.share >= (within[i - 1]?.share ?? 0)))
})

t.test('the exponent of Zipf’s law is found again', async t => {
  for (const exponent of [0, 0.6, 1, 1.4]) {
    const popularity = createPopularity()
    for (let rank = 1; rank <= 300; rank++) {
      // Where all are alike, few of each are enough; the last of a steep order must not be rounded away.
      const requests = Math.round((exponent === 0 ? 1_000 : 20_000) * rank ** -exponent)
      for (let i = 0; i < requests; i++) popularity.add(`place ${rank}`)
    }
    const { zipf, topShares, top, distinct } = popularity.report(3)
    t.ok(Math.abs((zipf ?? 9) - exponent) < 0.02, `${zipf} for ${exponent}`)
    t.equal(distinct, 300)
    t.equal(top[0]?.name, 'place 1')
    t.ok(topShares[1] <= topShares[10] && topShares[10] <= topShares[100])
  }
  t.equal(createPopularity().report(3).zipf, null)
})

t.test('the rate is exact whatever the span, and its steps stay few', async t => {
  fc.assert(
    fc.property(fc.array(fc.nat(1e10), { minLength: 1, maxLength: 300 }), instants => {
      const rate = createRateOverTime()
      for (const at of instants.sort((one, other) => one - other)) rate.add(at)
      const { counts, stepSeconds } = rate.series()
      t.ok(counts.length <= 240)
      t.equal(
        counts.reduce((sum, count) => sum + count, 0),
        instants.length,
      )
      const begin = Math.floor((instants[0] ?? 0) / 1_000) * 1_000
      const inFirst = instants.filter(at => at < begin + stepSeconds * 1_000).length
      t.equal(counts[0], inFirst)
    }),
    { numRuns: 50 },
  )
})

t.test('traffic is counted by what it is for and how it was answered', async t => {
  const at = Date.parse('2026-11-21T06:00:00Z')
  const path = '/api/v1/weather/district/3026'
  const hit = { outcome: 'hit', tier: 'memory', cell: 'a', bytes: 10 } as const
  const answered = { method: 'GET', path, status: 200, ...hit }
  const batches = async function* () {
    yield [
      { ...answered, at, key: 'k', accepts: 'gzip' },
      { ...answered, at: at + 500, conditional: true },
      { at: at + 700, method: 'GET', path: '/api/v1/weather/district/9', status: 404 },
    ]
    yield [{ at: at + 900_000, method: 'HEAD', path: '/' }]
  }
  const counters = createTrafficStats('cell', 10)
  for await (const _ of counters.pass(batches()));
  t.hasStrict(counters.stats(), {
    ...{ requests: 4, from: at, to: at + 900_000, rate: { peak: { requests: 3, at } }, gaps: { count: 1 } },
    ...{ endpoints: { weather: 3, other: 1 }, methods: { GET: 3, HEAD: 1 }, statuses: { 200: 2, 404: 1 } },
    ...{ outcomes: { hit: 2 }, tiers: { memory: 2 }, conditional: 1, compressed: 1 },
    bytes: { requests: 2, sum: 20 },
    places: { distinct: 1, requests: 2, top: [{ name: 'district/3026', requests: 2 }] },
    keys: { distinct: 1 },
    reuse: { by: 'cell', requests: 2, objects: 1, first: 1 },
  })
})
