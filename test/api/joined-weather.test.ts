// Without it a list whose weather has ended for every place could be answered with 200, or one that has changed with its former tag.

import { brotliDecompressSync, deflateRawSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import type { CellResult } from '../../src/api/answer.ts'
import { gzipEnd, openPartOptions, storedStart } from '../../src/api/joined-gzip.ts'
import {
  createJoinedWeather,
  type Failed,
  type ListedPlace,
  type PlaceList,
} from '../../src/api/joined-weather.ts'
import { type PlacePart, pointPart } from '../../src/api/places.ts'
import { createDocUrl, notFound } from '../../src/api/problem.ts'
import type { RenderedWeather, WeatherPart } from '../../src/api/rendered-weather.ts'
import { tagOf } from '../../src/api/representation.ts'
import { sentences } from '../../src/api/sentences.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import { createGrid } from '../../src/weather/cell.ts'

const exhausted = new AbohawaError('timeline_exhausted', 'the timeline does not reach so far')
const rendered = {
  part: () => {
    throw exhausted
  },
} as unknown as RenderedWeather
const read = () => ({ readAt: 0 }) as CellResult
const join = createJoinedWeather(read, rendered, createDocUrl(null))
const point: ListedPlace = { cell: createGrid(0.1).cellOf(23.7, 90.4), place: pointPart(23.7, 90.4) }
const nowhere: Failed = { error: notFound(sentences.path.place('district', '9999')) }
const placesOf = (...places: (ListedPlace | Failed)[]): PlaceList => ({
  ...{ places, wasZipped: false },
  ...{ zipped: undefined, last: undefined },
})
const joined = (places: readonly (ListedPlace | Failed)[]) =>
  join(placesOf(...places), { consumer: undefined })

t.test('weather that has ended for all places is a failure, as for one place', async t => {
  t.throws(() => joined([point, point]), exhausted)
})

t.test('beside the error of a place it is a failure too: no place has weather', async t => {
  t.throws(() => joined([nowhere, point]), exhausted)
  const { chunks } = await joined([nowhere])
  t.hasStrict(JSON.parse(Buffer.concat([...chunks]).toString()), [{ code: 'place_not_found' }])
})

t.test('the clock is read with the first place, and its instant is that of the others', async t => {
  const given: (number | undefined)[] = []
  const readLate = (_cell: unknown, _consumer: unknown, now?: number) => {
    given.push(now)
    return { readAt: now ?? 7 } as CellResult
  }
  const list = createJoinedWeather(readLate, rendered, createDocUrl(null))
  t.throws(() => list(placesOf(point, point, point), { consumer: undefined }))
  t.strictSame(given, [undefined, 7, 7])
})

const steady = { outcome: 'hit', readAt: 1_000, fetchedAt: 500 } as CellResult
/** Lists whose places all have this weather. */
const listOf = (weather: () => string) => {
  const changing = {
    part: (result: CellResult, place: PlacePart) => {
      const bytes = Buffer.from(`"weather":"${weather()}"}`)
      return { maxAge: 60, ttl: 60, place, slice: { bytes, tag: tagOf(bytes) }, result }
    },
    deflated: ({ slice: { bytes } }: WeatherPart) => gzipEnd(bytes, deflateRawSync(bytes, openPartOptions)),
  } as unknown as RenderedWeather
  return createJoinedWeather(() => steady, changing, createDocUrl(null))
}

t.test('a list whose weather has changed has another tag, and the gzip of its own body', async t => {
  let weather = 'one'
  const list = listOf(() => weather.repeat(50))
  const places = placesOf(point, nowhere, point)
  const tags: string[] = []
  for (const next of ['one', 'one', 'two', 'two', 'one']) {
    weather = next
    const { tag, chunks, encode } = await list(places, { consumer: undefined })
    const encoded = await encode?.({ preferred: 'gzip', gzip: true })
    const body = Buffer.concat(chunks).toString()
    t.match(body, `"${next.repeat(50)}"`)
    t.equal(gunzipSync(Buffer.concat(encoded?.chunks ?? [])).toString(), body)
    tags.push(tag)
  }
  const first = tags.map(tag => tags.indexOf(tag))
  t.strictSame(first, [0, 0, 2, 2, 0])
})

type Part = Pick<WeatherPart, 'maxAge' | 'ttl'> & { readonly result: Partial<CellResult> }
/** A list of these parts, after a place that is nowhere; one without a part fails. */
const listed = (...parts: readonly (Part | undefined)[]) => {
  let reads = 0
  const read = () => ({ readAt: 2_000, part: parts[reads++] }) as unknown as CellResult
  const weather = {
    part: (given: CellResult & { part?: Part }, place: PlacePart) => {
      if (!given.part) throw exhausted
      const { maxAge, ttl, result } = given.part
      return { maxAge, ttl, place, slice: { bytes: Buffer.alloc(0), tag: '' }, result }
    },
  } as unknown as RenderedWeather
  const places = placesOf(nowhere, ...parts.map(() => point))
  return createJoinedWeather(read, weather, createDocUrl(null))(places, { consumer: undefined })
}
const hit = { outcome: 'hit', fetchedAt: 1_000, readAt: 2_000, forwarded: false } as const

t.test('a list is right as long as each of its places, and says what came from where', async t => {
  const stale = { ...hit, outcome: 'stale', fetchedAt: 0, forwarded: true } as const
  const ofHit = { maxAge: 50, ttl: 70, result: hit }
  const ofMiss = { maxAge: 55, ttl: 60, result: { ...hit, outcome: 'miss', forwarded: true } } as const
  const refused = '1 place_not_found'
  const since = (second: number) => `last-modified: Thu, 01 Jan 1970 00:00:0${second} GMT\r\n`
  for (const [parts, maxAge, from, cache] of [
    [[ofHit, ofHit], 50, since(1), `hit; ttl=70; detail="2 hit, ${refused}"`],
    [[{ ...ofHit, maxAge: 90 }], 60, since(1), `hit; ttl=70; detail="1 hit, ${refused}"`],
    [
      ...[[ofHit, { maxAge: 0, ttl: -5, result: stale }], 0, since(0)],
      `fwd=stale; ttl=-5; detail="1 hit, 1 stale, ${refused}"`,
    ],
    [
      ...[[ofMiss, { maxAge: 50, ttl: 70, result: stale }], 50, since(0)],
      `fwd=miss; ttl=60; detail="1 stale, 1 miss, ${refused}"`,
    ],
    [
      ...[[{ ...ofHit, result: { ...hit, fetchedAt: 9_000 } }], 50, since(2)],
      `hit; ttl=70; detail="1 hit, ${refused}"`,
    ],
    [
      ...[[ofHit, undefined, undefined], 0, since(1)],
      `hit; ttl=70; detail="1 hit, ${refused}, 2 timeline_exhausted"`,
    ],
    [[], 60, '', `detail="${refused}"`],
  ] as [(Part | undefined)[], number, string, string][]) {
    const { fresh, cache: said } = await listed(...parts)
    t.equal(said, cache)
    const control = `cache-control: private, max-age=${maxAge}\r\n`
    t.equal(fresh, `${control}${from}cache-status: abohawa; ${cache}\r\n`)
  }
})

t.test('all places are cut for the latest instant, also those that were read before others came', async t => {
  const cut: number[] = []
  const weather = {
    part: ({ readAt }: CellResult) => {
      cut.push(readAt)
      throw exhausted
    },
  } as unknown as RenderedWeather
  const reads = [{ readAt: 10 }, Promise.resolve({ readAt: 30 }), Promise.resolve({ readAt: 20 })]
  const list = createJoinedWeather(() => reads.shift() as CellResult, weather, createDocUrl(null))
  await t.rejects(async () => list(placesOf(point, point, point), { consumer: undefined }), exhausted)
  t.strictSame(cut, [30, 30, 30])
})

t.test('a fault of the program is no error of a place', async t => {
  const fault = new TypeError('not a function')
  const places = placesOf(point, point)
  const part = {
    maxAge: 1,
    ttl: 1,
    place: point.place,
    slice: { bytes: Buffer.alloc(0), tag: '' },
    result: hit,
  }
  /** Fails at the first call. */
  const once = <Given>(fail: () => Given, other: () => Given) => {
    let calls = 0
    return () => (calls++ === 0 ? fail() : other())
  }
  const later = once<Promise<CellResult>>(
    () => Promise.reject(fault),
    async () => steady,
  )
  const broken = once<object>(
    () => {
      throw fault
    },
    () => part,
  )
  for (const [reads, cut] of [
    [later, () => part],
    [read, broken],
  ] as const) {
    const list = createJoinedWeather(reads, { part: cut } as unknown as RenderedWeather, createDocUrl(null))
    await t.rejects(async () => list(places, { consumer: undefined }), fault)
  }
  const away = createJoinedWeather(() => Promise.reject(exhausted), rendered, createDocUrl(null))
  await t.rejects(async () => away(placesOf(nowhere, point), { consumer: undefined }), exhausted)
})

t.test('the beginnings of a list are compressed anew at its first two requests, and then kept', async t => {
  let begun = 0
  const gzipStart = () => {
    begun += 1
    return storedStart(point.place.bytes)
  }
  const places = placesOf(nowhere, { ...point, place: { ...point.place, gzipStart } })
  const list = listOf(() => 'sunny')
  const counts: number[] = []
  for (let i = 0; i < 4; i++) {
    const { chunks, encode } = await list(places, { consumer: undefined })
    const encoded = await encode({ preferred: i % 2 === 0 ? 'gzip' : 'br', gzip: true })
    t.equal(encoded?.coding, 'gzip', 'br only for those who take no gzip')
    t.ok(gunzipSync(Buffer.concat(encoded?.chunks ?? [])).equals(Buffer.concat(chunks)))
    counts.push(begun)
  }
  t.strictSame(counts, [1, 2, 2, 2])
})

t.test('br alone is made in another thread: the event loop goes on meanwhile', async t => {
  const list = listOf(() => 'sunny '.repeat(1_000))
  const places = placesOf(...Array<ListedPlace>(100).fill(point))
  const { encode, chunks } = await list(places, { consumer: undefined })
  let turns = 0
  const count = () => {
    turns += 1
    next = setImmediate(count)
  }
  let next = setImmediate(count)
  const encoded = await encode?.({ preferred: 'br', gzip: false })
  clearImmediate(next)
  t.ok(turns > 0)
  t.equal(encoded?.coding, 'br')
  t.ok(brotliDecompressSync(Buffer.concat(encoded?.chunks ?? [])).equals(Buffer.concat(chunks)))
})
