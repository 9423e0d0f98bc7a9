// Joins the weather of several places into one JSON array: the bodies that the endpoints of one place have, byte for byte, from
// the parts that are kept for those. The gzip is joined from their compressed parts, so that nothing is compressed per request. A
// place without weather has its error in its position. place-list.ts says which places, rendered-weather.ts renders.

import { AbohawaError } from '../common/errors.ts'
import type { Cell } from '../weather/cell.ts'
import type { Answers, CellResult } from './answer.ts'
import type { Chunks } from './connection/ready-response.ts'
import { type Accepted, compressed, type Encoded } from './content-coding.ts'
import { createJoinedGzip, storedPart } from './joined-gzip.ts'
import type { PlacePart } from './places.ts'
import { type DocUrl, Problem, problemOf, problemResponse } from './problem.ts'
import type { RenderedWeather, WeatherPart } from './rendered-weather.ts'
import { type Representation, tagOf } from './representation.ts'

/** A place of the list, with the cell that answers for it. */
export type ListedPlace = { readonly cell: Cell; readonly place: PlacePart }

type ReadPlace = { readonly place: PlacePart; readonly result: CellResult }
type Failed = { readonly error: AbohawaError | Problem }
/** The error of a place as JSON. */
type Refused = { readonly body: Buffer; readonly code: string; readonly isFailure: boolean }
type Item = WeatherPart | Refused

export type JoinedWeatherParts = {
  readonly read: Answers['read']
  readonly part: RenderedWeather['part']
  readonly docUrl: DocUrl
}

const [open, comma, close] = [Buffer.from('['), Buffer.from(','), Buffer.from(']')]
const zipped = { open: storedPart(open), comma: storedPart(comma), close: storedPart(close, true) }

// How long it may be unknown that a place exists by now, as of the endpoints with places.
const refusedForSeconds = 60

export const createJoinedWeather = ({ read, part, docUrl }: JoinedWeatherParts) => {
  const itemOf = (found: ReadPlace | Failed, readAt: number, days: number | undefined): Item => {
    try {
      if ('error' in found) throw found.error
      // What was read before others had to be loaded is cut for the same instant.
      const { result, place } = found
      return part(result.readAt === readAt ? result : { ...result, readAt }, place, days)
    } catch (error) {
      return refusedOf(expected(error), docUrl)
    }
  }
  const join = (
    all: readonly (ReadPlace | Failed)[],
    headers: string,
    days: number | undefined,
  ): Representation => {
    let readAt = Number.NEGATIVE_INFINITY
    for (const found of all) if ('result' in found) readAt = Math.max(readAt, found.result.readAt)
    const items = all.map(found => itemOf(found, readAt, days))
    // The gateway or the provider fails, and not a place: that is no answer.
    if (items.every(item => 'isFailure' in item && item.isFailure)) throw (all[0] as Failed).error
    const { fresh, cache } = freshnessOf(items)
    return {
      tag: tagOf(Buffer.from(items.map(tagIn).join())),
      headers,
      fresh,
      cache,
      chunks: chunksOf(items),
      encode: accepted => encode(items, accepted),
    }
  }

  /**
   * The weather of places now, or with `days` their forecast, at once when memory holds all of it. Places that have to be loaded
   * are requested in the same turn, so that they share requests to the provider. @throws the failure of all places
   */
  return (
    places: readonly string[],
    find: (text: string) => ListedPlace,
    { headers = '', days, consumer }: { headers?: string; days?: number; consumer: string | undefined },
  ): Representation | Promise<Representation> => {
    const all: (ReadPlace | Failed)[] = []
    const loads: Promise<void>[] = []
    const keep = (i: number, found: ReadPlace | Failed): void => {
      all[i] = found
    }
    for (const [i, text] of places.entries())
      try {
        const { cell, place } = find(text)
        const result = read(cell, consumer)
        if (result instanceof Promise)
          loads.push(
            result.then(
              late => keep(i, { place, result: late }),
              error => keep(i, { error: expected(error) }),
            ),
          )
        else keep(i, { place, result })
      } catch (error) {
        keep(i, { error: expected(error) })
      }
    return loads.length > 0
      ? Promise.all(loads).then(() => join(all, headers, days))
      : join(all, headers, days)
  }
}

/** What may happen to a place of the list. @throws whatever else it is */
const expected = (error: unknown): AbohawaError | Problem => {
  if (error instanceof Problem || error instanceof AbohawaError) return error
  throw error
}

const refusedOf = (error: AbohawaError | Problem, docUrl: DocUrl): Refused => {
  const problem = problemOf(error, 0)
  return {
    body: problemResponse(problem, docUrl).body,
    code: problem.code,
    isFailure: problem.status >= 500,
  }
}

const tagIn = (item: Item): string => ('body' in item ? String(item.body) : item.place.tag + item.slice.tag)

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

/** br is made for those alone who take no gzip. */
const encode = (items: readonly Item[], { preferred, gzip }: Accepted): Encoded | Promise<Encoded> => {
  if (preferred === 'br' && !gzip)
    return compressed(Buffer.concat(chunksOf(items)), 'br').then(body => ({ coding: 'br', chunks: [body] }))
  const joined = createJoinedGzip()
  joined.add(zipped.open)
  for (const [i, item] of items.entries()) {
    if (i > 0) joined.add(zipped.comma)
    if ('body' in item) joined.add(storedPart(item.body))
    else {
      joined.addStart(item.place.gzipStart())
      joined.add(item.deflated())
    }
  }
  return { coding: 'gzip', chunks: joined.end(zipped.close) }
}

/** How long all of it is right, since when, and what the cache did: how many places were a hit, and so on. */
const freshnessOf = (items: readonly Item[]): { fresh: string; cache: string } => {
  const counts = new Map<string, number>()
  let maxAge = Number.POSITIVE_INFINITY
  let ttl = Number.POSITIVE_INFINITY
  let oldest = Number.POSITIVE_INFINITY
  let forwarded = ''
  for (const item of items) {
    if ('body' in item) {
      maxAge = Math.min(maxAge, item.isFailure ? 0 : refusedForSeconds)
      countIn(counts, item.code)
      continue
    }
    const { outcome, fetchedAt, readAt } = item.result
    maxAge = Math.min(maxAge, item.maxAge)
    ttl = Math.min(ttl, item.ttl)
    oldest = Math.min(oldest, fetchedAt, readAt)
    if (item.result.forwarded && forwarded !== 'miss') forwarded = outcome
    countIn(counts, outcome)
  }
  const detail = `detail="${[...counts].map(([name, count]) => `${count} ${name}`).join(', ')}"`
  const hasWeather = oldest < Number.POSITIVE_INFINITY
  const cache = hasWeather ? `${forwarded ? `fwd=${forwarded}` : 'hit'}; ttl=${ttl}; ${detail}` : detail
  const since = hasWeather ? `last-modified: ${new Date(oldest).toUTCString()}\r\n` : ''
  return {
    cache,
    fresh: `cache-control: private, max-age=${maxAge}\r\n${since}cache-status: abohawa; ${cache}\r\n`,
  }
}

const countIn = (counts: Map<string, number>, name: string): void =>
  void counts.set(name, (counts.get(name) ?? 0) + 1)
