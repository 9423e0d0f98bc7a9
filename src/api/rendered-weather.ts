// Rendered weather: the JSON bytes of a timeline's slices, rendered once per slice and shared by all places of the cell, with their
// encodings and the header lines that say how long they are right. They are kept with the timeline and count towards its size.

import { flatText } from '../common/flat-text.ts'
import type { Cell } from '../weather/cell.ts'
import type { Answers, CellResult, Slice } from './answer.ts'
import { type Compression, createEncodings, type Encodings } from './content-coding.ts'
import type { Representation } from './endpoint.ts'
import type { GzipPart } from './joined-gzip.ts'
import type { Language } from './parameters.ts'
import type { PlacePart } from './places.ts'
import { tagOf } from './representation.ts'
import { forecastPart, weatherPart } from './response-bodies.ts'

/** The part of a body that all places of a cell share, with what is derived from it. */
type Rendered = Slice<{
  readonly bytes: Buffer
  readonly tag: string
  readonly lastModified: string
  /** The bodies that end with it, of places that are kept themselves. */
  readonly joined: Map<PlacePart, Joined>
  /** Of the last response from memory. */
  freshness: Freshness | undefined
  /** Made for the first client that accepts one. */
  encodings: Encodings | undefined
}>

/** A place with the weather of its cell: one record for all responses with these bytes. */
type Joined = Omit<Representation, 'fresh' | 'cache'> & {
  /** Those of the response that is sent at the moment. */
  fresh: string
  cache: string
}

/** Slices by endpoint: 0 is /weather, 1 to 7 is /forecast for that many days; then the same with words in each language. */
type Kept = (Rendered | undefined)[]
const slotOf = (days = 0, words: Language | undefined): number =>
  words === undefined ? days : days + (words === 'bn' ? 8 : 16)

// The rough overhead of a kept slice beside its bytes, and of a body that ends with it, with its heads.
const objectBytes = 400
const joinedBytes = 1_200

/** What is kept of a cell's timeline, beside its entry in memory. */
const keptOf = ({ derived }: CellResult): Kept => {
  derived.data ??= []
  return derived.data as Kept
}

/** A place with a slice of its cell's weather, as a part of a larger body. */
export type WeatherPart = Pick<Freshness, 'maxAge' | 'ttl'> & {
  readonly place: PlacePart
  readonly slice: Rendered
  readonly result: CellResult
}

/** Takes what is kept into account where the memory of the entry is. */
const account = (result: CellResult, kept: Kept): void => {
  let bytes = 0
  for (const slice of kept)
    if (slice) {
      const own = slice.bytes.length + (slice.encodings?.bytes() ?? 0) + objectBytes
      bytes += own + slice.joined.size * joinedBytes
    }
  result.derived.setBytes(bytes)
}

const grown = (result: CellResult, rendered: Rendered): void => {
  const kept = keptOf(result)
  // The slice may have ended meanwhile.
  if (kept.includes(rendered)) account(result, kept)
}

export type RenderedWeather = ReturnType<typeof createRenderedWeather>

/** `days` is the length of a forecast, or undefined for the current weather; `words` the language of what the codes mean. */
export const createRenderedWeather = (answers: Answers, timezone: string, compression?: Compression) => {
  const bytesOf = (result: CellResult, days: number | undefined, words?: Language) => {
    if (days === undefined) {
      const weather = answers.weather(result)
      return { ...weather, bytes: weatherPart(weather, timezone, words) }
    }
    const forecast = answers.forecast(result, days)
    return { ...forecast, bytes: forecastPart(forecast, timezone, words) }
  }
  const render = (result: CellResult, days: number | undefined, words?: Language): Rendered => {
    const { beginsAt, endsAt, bytes } = bytesOf(result, days, words)
    return {
      beginsAt,
      endsAt,
      bytes,
      tag: tagOf(bytes),
      lastModified: lastModifiedOf(result),
      joined: new Map(),
      freshness: undefined,
      encodings: undefined,
    }
  }
  /** The slice that is right now, rendered where it is not kept. */
  const sliceOf = (result: CellResult, days: number | undefined, words?: Language): Rendered => {
    const kept = keptOf(result)
    const slot = slotOf(days, words)
    const found = kept[slot]
    if (found && found.beginsAt <= result.readAt && result.readAt < found.endsAt) return found
    const rendered = render(result, days, words)
    kept[slot] = rendered
    account(result, kept)
    return rendered
  }
  const encodingsOf = (rendered: Rendered): Encodings => {
    rendered.encodings ??= createEncodings(rendered.bytes, compression)
    return rendered.encodings
  }
  const join = (result: CellResult, rendered: Rendered, place: PlacePart, headers: string): Joined => ({
    tag: place.tag + rendered.tag,
    headers,
    fresh: '',
    cache: '',
    cell: result.subject.id,
    chunks: [place.bytes, rendered.bytes],
    heads: {},
    encode: accepted => encodingsOf(rendered).encode(place, accepted, () => grown(result, rendered)),
  })
  const represent = (
    result: CellResult,
    days: number | undefined,
    place: PlacePart,
    headers: string,
    words?: Language,
  ): Representation => {
    const rendered = sliceOf(result, days, words)
    let joined = rendered.joined.get(place)
    if (!joined) {
      joined = join(result, rendered, place, headers)
      // There is no end of raw points.
      if (place.isKept) {
        rendered.joined.set(place, joined)
        account(result, keptOf(result))
      }
    }
    const { fresh, status } = freshnessOf(result, rendered)
    joined.fresh = fresh
    joined.cache = status
    return joined
  }

  return {
    /**
     * A place with the weather of its cell; not a promise where memory holds it, and then to be sent in the same turn. A promise gives a
     * copy, because other responses with the same bytes may be sent before it is used.
     * @param headers of the place @param consumer for whom it is loaded @throws AbohawaError as `answers` does
     */
    represent: (
      cell: Cell,
      days: number | undefined,
      place: PlacePart,
      headers: string,
      consumer?: string,
      words?: Language,
    ): Representation | Promise<Representation> => {
      const result = answers.read(cell, consumer)
      return result instanceof Promise
        ? result.then(late => ({ ...represent(late, days, place, headers, words) }), failedFor(cell))
        : represent(result, days, place, headers, words)
    },
    /** A place with what was read of its cell, as a part of a list. @throws AbohawaError as `answers` does */
    part: (result: CellResult, place: PlacePart, days: number | undefined): WeatherPart => {
      const slice = sliceOf(result, days)
      const { maxAge, ttl } = timesOf(result, slice)
      return { maxAge, ttl, place, slice, result }
    },
    /** The weather of such a part, compressed once, for a gzip that goes on after it. */
    deflated: ({ slice, result }: WeatherPart): GzipPart =>
      encodingsOf(slice).part(() => grown(result, slice)),
  }
}

/** The header line of a body with names or words in a language. */
export const languageHeaders = { bn: 'content-language: bn\r\n', en: 'content-language: en\r\n' } as const

const failedCells = new WeakMap<object, Cell['id']>()

/** The cell whose weather could not be read, for the log; undefined for other errors. */
export const failedCellOf = (error: unknown): Cell['id'] | undefined =>
  error instanceof Error ? failedCells.get(error) : undefined

const failedFor =
  ({ id }: Cell) =>
  (error: unknown): never => {
    if (error instanceof Error) failedCells.set(error, id)
    throw error
  }

// Each header line ends in CRLF, so that a head is their concatenation. Values are numbers, dates and fixed words, never text of
// a consumer.

/** What a response says of how long it is right; the same for a second, unless it was loaded. Both figures are in seconds. */
type Freshness = {
  readonly maxAge: number
  readonly ttl: number
  readonly status: string
  readonly fresh: string
}

const freshnessOf = (result: CellResult, rendered: Rendered): Freshness => {
  const { readAt, fetchedAt, outcome, source } = result
  const { maxAge, ttl } = timesOf(result, rendered)
  const isUsual = outcome === 'hit' && source === 'memory' && fetchedAt <= readAt
  const last = rendered.freshness
  if (isUsual && last?.maxAge === maxAge && last.ttl === ttl) return last
  const status = cacheStatus(result, ttl)
  // The clock may have been set back since the slice was rendered.
  const lastModified = fetchedAt > readAt ? lastModifiedOf(result) : rendered.lastModified
  const freshness = { maxAge, ttl, status, fresh: freshnessHeaders(result, maxAge, lastModified, status) }
  if (isUsual) rendered.freshness = freshness
  return freshness
}

/** In seconds: until the slice ends or the timeline turns stale, and until the latter. */
const timesOf = (
  { readAt, freshUntil }: CellResult,
  { endsAt }: Rendered,
): Pick<Freshness, 'maxAge' | 'ttl'> => ({
  maxAge: secondsBetween(readAt, Math.min(endsAt, freshUntil)),
  ttl: Math.floor((freshUntil - readAt) / 1000),
})

/** Without `age`: every response is rendered for its instant, and caches would subtract it from `max-age`. */
const freshnessHeaders = (
  { subject }: CellResult,
  maxAge: number,
  lastModified: string,
  status: string,
): string =>
  flatText(
    `cache-control: private, max-age=${maxAge}\r\n${lastModified}cache-status: abohawa; ${status}; key="${subject.id}"\r\n`,
  )

/** Never later than `date`, as RFC 9110 has it, also where the clock was set back after the load. */
const lastModifiedOf = ({ fetchedAt, readAt }: Pick<CellResult, 'fetchedAt' | 'readAt'>): string =>
  `last-modified: ${new Date(Math.min(fetchedAt, readAt)).toUTCString()}\r\n`

/**
 * The parameters of `cache-status` (RFC 9211); the access log has the same text. The upstream, a name that the operator chose, is an
 * extension: it is there where there are several.
 */
const cacheStatus = (
  { outcome, source, forwarded, collapsed, upstream }: CellResult,
  // Negative for a stale response.
  ttlSeconds: number,
): string => {
  const ttl = `ttl=${ttlSeconds}`
  const shared = collapsed ? '; collapsed' : ''
  const from = upstream === undefined ? '' : `; upstream=${upstream}`
  if (outcome === 'miss') return `fwd=miss${shared}; stored; ${ttl}${from}`
  // A stale response that starts a refresh counts as forwarded; during backoff it is a hit with a negative ttl.
  return `${forwarded ? `fwd=stale${shared}` : 'hit'}; ${ttl}; detail=${source}${from}`
}

const secondsBetween = (from: number, to: number): number => Math.max(0, Math.floor((to - from) / 1000))
