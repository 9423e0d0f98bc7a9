// Joins the weather of several places into one JSON array: the same bytes as the endpoints of one place, from the same kept parts. The
// gzip is joined from compressed parts too. A place without weather has its error in its position.

import { AbohawaError } from '../common/errors.ts'
import type { Cell } from '../weather/cell.ts'
import type { Answers, CellResult } from './answer.ts'
import type { Chunks } from './connection/connection.ts'
import { type Accepted, compressed, type Encoded } from './content-coding.ts'
import type { Representation } from './endpoint.ts'
import { type GzipPart, gzipOfParts, partBehind, storedPart, trailerOfParts } from './joined-gzip.ts'
import type { PlacePart } from './places.ts'
import { type DocUrl, Problem, problemOf, problemResponse } from './problem.ts'
import type { RenderedWeather, WeatherPart } from './rendered-weather.ts'
import { tagOf } from './representation.ts'

/** A place of a list, with the cell that answers for it. */
export type ListedPlace = { readonly cell: Cell; readonly place: PlacePart }
export type Failed = { readonly error: AbohawaError | Problem }

/** The places of a request, and the beginnings of their gzips: kept from the second time on, as those of each place are. */
export type PlaceList = {
  readonly places: readonly (ListedPlace | Failed)[]
  wasZipped: boolean
  zipped: readonly (GzipPart | undefined)[] | undefined
  /** What the last body has of all its parts; most requests of a list have the same body. */
  last: Last | undefined
}
/** @param tags of each item, which say whether a body is the same */
type Last = { readonly tags: readonly string[]; readonly tag: string; trailer: Buffer | undefined }

type ReadPlace = { readonly place: PlacePart; readonly result: CellResult }
/** The error of a place as JSON; `failure` is set where the gateway or provider failed. */
type Refused = { readonly body: Buffer; readonly code: string; readonly failure: Failed['error'] | undefined }
type Item = WeatherPart | Refused

const [open, comma, close] = [Buffer.from('['), Buffer.from(','), Buffer.from(']')]
const closed = storedPart(close, true)

// How long a refusal may be kept, because the place may exist by then; as for the endpoints with places.
const refusedForSeconds = 60

/** An error that a place of a list may have. @throws any other error */
export const expectedError = (error: unknown): Failed => {
  if (error instanceof Problem || error instanceof AbohawaError) return { error }
  throw error
}

/** The encodings of lists. br is made only for clients that take no gzip. */
const createEncode = (deflated: RenderedWeather['deflated']) => {
  // One after the other: each takes a copy of the body and megabytes beside it.
  let lastBrotli: Promise<unknown> = Promise.resolve()
  const brotliOf = (items: readonly Item[]): Promise<Encoded> => {
    const made = lastBrotli.then(() => compressed(Buffer.concat(chunksOf(items)), 'br'))
    lastBrotli = made.catch(() => {})
    return made.then(body => ({ coding: 'br', chunks: [body] }))
  }

  return (
    list: PlaceList,
    items: readonly Item[],
    last: Last,
    { preferred, gzip }: Accepted,
  ): Encoded | Promise<Encoded> => {
    if (preferred === 'br' && !gzip) return brotliOf(items)
    const starts = startsOf(list)
    const parts: GzipPart[] = []
    for (let i = 0; i < items.length; i++) {
      const item = items[i] as Item
      // Instead of both parts.
      if ('body' in item) parts.push(storedPart(Buffer.concat([i === 0 ? open : comma, item.body])))
      else parts.push(starts[i] as GzipPart, deflated(item))
    }
    parts.push(closed)
    last.trailer ??= trailerOfParts(parts)
    return { coding: 'gzip', chunks: gzipOfParts(parts, last.trailer) }
  }
}

export const createJoinedWeather = (
  read: Answers['read'],
  { part, deflated }: RenderedWeather,
  docUrl: DocUrl,
) => {
  const encode = createEncode(deflated)
  const itemOf = (found: ReadPlace | Failed, readAt: number, days: number | undefined): Item => {
    if ('error' in found) return refusedOf(found, docUrl)
    const { result, place } = found
    try {
      // All places are cut for the same instant, also those read before others were loaded.
      return part(result.readAt === readAt ? result : { ...result, readAt }, place, days)
    } catch (error) {
      return refusedOf(expectedError(error), docUrl)
    }
  }

  const join = (
    list: PlaceList,
    all: readonly (ReadPlace | Failed)[],
    headers: string,
    days: number | undefined,
  ): Representation => {
    let readAt = Number.NEGATIVE_INFINITY
    for (const found of all) if ('result' in found) readAt = Math.max(readAt, found.result.readAt)
    const items = all.map(found => itemOf(found, readAt, days))
    // The gateway or the provider fails for every place: the list fails too.
    const failure = items.every(item => 'body' in item) && items.find(item => item.failure)?.failure
    if (failure) throw failure
    const { fresh, cache } = freshnessOf(items)
    const last = lastOf(list, items)
    return {
      tag: last.tag,
      headers,
      fresh,
      cache,
      chunks: chunksOf(items),
      encode: accepted => encode(list, items, last, accepted),
    }
  }

  /**
   * The weather of places now, or with `days` their forecast; a promise where memory lacks some. Those are loaded in the same turn, so
   * that they share requests to the provider. @throws the failure of all places
   */
  return (
    list: PlaceList,
    { headers = '', days, consumer }: { headers?: string; days?: number; consumer: string | undefined },
  ): Representation | Promise<Representation> => {
    const all: (ReadPlace | Failed)[] = []
    let now: number | undefined
    const loads: Promise<void>[] = []
    const keep = (i: number, found: ReadPlace | Failed): void => {
      all[i] = found
    }
    for (let i = 0; i < list.places.length; i++) {
      const listed = list.places[i] as ListedPlace | Failed
      if ('error' in listed) {
        keep(i, listed)
        continue
      }
      const { cell, place } = listed
      const result = read(cell, consumer, now)
      if (result instanceof Promise)
        loads.push(
          result.then(
            late => keep(i, { place, result: late }),
            error => keep(i, expectedError(error)),
          ),
        )
      else {
        keep(i, { place, result })
        now ??= result.readAt
      }
    }
    return loads.length > 0
      ? Promise.all(loads).then(() => join(list, all, headers, days))
      : join(list, all, headers, days)
  }
}

/** The parts of a gzip that begin each place, with what separates it from the one before. */
const startsOf = (list: PlaceList): readonly (GzipPart | undefined)[] => {
  if (list.zipped) return list.zipped
  const made = list.places.map((listed, i) =>
    'error' in listed ? undefined : partBehind(i === 0 ? open : comma, listed.place.gzipStart()),
  )
  if (list.wasZipped) list.zipped = made
  list.wasZipped = true
  return made
}

const refusedOf = ({ error }: Failed, docUrl: DocUrl): Refused => {
  const problem = problemOf(error, 0)
  return {
    body: problemResponse(problem, docUrl).body,
    code: problem.code,
    failure: problem.status >= 500 ? error : undefined,
  }
}

/** What the last body has, where it had the same parts, or what this one has. */
const lastOf = (list: PlaceList, items: readonly Item[]): Last => {
  const { last } = list
  if (last && items.every((item, i) => tagIn(item) === last.tags[i])) return last
  const tags = items.map(tagIn)
  const whole = items.map((item, i) => ('body' in item ? tags[i] : item.place.tag + tags[i]))
  list.last = { tags, tag: tagOf(Buffer.from(whole.join())), trailer: undefined }
  return list.last
}

/** Differs where the part of this place in the list does. */
const tagIn = (item: Item): string => ('body' in item ? String(item.body) : item.slice.tag)

const chunksOf = (items: readonly Item[]): Chunks => {
  const chunks: [Buffer, ...Buffer[]] = [open]
  for (const item of items) {
    if (chunks.length > 1) chunks.push(comma)
    if ('body' in item) chunks.push(item.body)
    else chunks.push(item.place.bytes, item.slice.bytes)
  }
  chunks.push(close)
  return chunks
}

/** How long the list is right, since when, and the cache results: how many places were a hit, and so on. */
const freshnessOf = (items: readonly Item[]): { fresh: string; cache: string } => {
  const counts = { hit: 0, stale: 0, miss: 0 }
  const codes = new Map<string, number>()
  let [maxAge, ttl, oldest] = Array<number>(3).fill(Number.POSITIVE_INFINITY) as [number, number, number]
  let forwarded = ''
  for (const item of items) {
    if ('body' in item) {
      maxAge = Math.min(maxAge, item.failure ? 0 : refusedForSeconds)
      codes.set(item.code, (codes.get(item.code) ?? 0) + 1)
      continue
    }
    const { outcome, fetchedAt, readAt, forwarded: isForwarded } = item.result
    maxAge = Math.min(maxAge, item.maxAge)
    ttl = Math.min(ttl, item.ttl)
    oldest = Math.min(oldest, fetchedAt, readAt)
    if (isForwarded && forwarded !== 'miss') forwarded = outcome
    counts[outcome] += 1
  }
  const all = [...Object.entries(counts), ...codes].filter(([, count]) => count > 0)
  const detail = `detail="${all.map(([name, count]) => `${count} ${name}`).join(', ')}"`
  const hasWeather = oldest < Number.POSITIVE_INFINITY
  const cache = hasWeather ? `${forwarded ? `fwd=${forwarded}` : 'hit'}; ttl=${ttl}; ${detail}` : detail
  const since = hasWeather ? `last-modified: ${new Date(oldest).toUTCString()}\r\n` : ''
  return {
    cache,
    fresh: `cache-control: private, max-age=${maxAge}\r\n${since}cache-status: abohawa; ${cache}\r\n`,
  }
}
