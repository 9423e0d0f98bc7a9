// Without it a list whose weather has ended for every place could be answered with 200, or one that has changed with its former tag.

import { brotliDecompressSync, deflateRawSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import type { CellResult } from '../../src/api/answer.ts'
import { gzipEnd, openPartOptions } from '../../src/api/joined-gzip.ts'
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
  t.match(JSON.parse(Buffer.concat([...chunks]).toString()), [{ code: 'place_not_found' }])
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
