// Rendered weather: the JSON bytes of a timeline's slices, rendered and compressed once per slice and shared by all places of
// the cell. They are kept as long as the timeline is in memory and count towards its size. Nothing is kept of a place or a
// URL but the br of bodies that are often requested. JSON texts come from response-bodies.ts. Longer than 300 lines,
// because all encodings of a slice are kept together, with the header lines that say how long it is right.

import { deflateRawSync } from 'node:zlib'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import type { Answers, CellResult, Slice } from './answer.ts'
import { lengthOf } from './connection/ready-response.ts'
import { type Accepted, compressed, type Encoded, partOptions } from './content-coding.ts'
import { type GzipEnd, gzipEnd, joinedGzip } from './joined-gzip.ts'
import type { PlacePart } from './places.ts'
import { type Representation, tagOf } from './representation.ts'
import { forecastPart, weatherPart } from './response-bodies.ts'
import { unpooledCopy } from './unpooled.ts'

/** The part of a body that all places of a cell share, with what is derived from it. */
type Rendered = Slice<{
  readonly bytes: Buffer
  readonly tag: string
  /** A header line. */
  readonly lastModified: string
  /** The gzip that continues the start of any place of the cell; made for the first client that accepts gzip. */
  gzip: GzipEnd | undefined
  /** Whole bodies by the identity of their place, once somebody preferred br. */
  brotli: Map<PlacePart['identity'], Brotli> | undefined
  /** The size of both. */
  compressedBytes: number
}>

/** A body that is compressed with br once it was requested often. */
type Brotli = { requests: number; body: Encoded | Promise<Encoded> | undefined }

export type RenderedWeather = {
  /**
   * A place and the current weather of its cell, at once when memory holds it. `headers` are those of the place, `consumer` is for whom it is
   * loaded.
   * @throws AbohawaError as `answers` does
   */
  current(
    cell: Cell,
    place: PlacePart,
    headers: string,
    consumer?: string | undefined,
  ): Representation | Promise<Representation>
  /** A place and the forecast of its cell for a number of days. */
  forecast(
    cell: Cell,
    days: number,
    place: PlacePart,
    consumer?: string | undefined,
  ): Representation | Promise<Representation>
}

/** How bytes are compressed. */
export type Compression = {
  /** A whole raw deflate stream, at once. */
  deflate(bytes: Buffer): Buffer
  /** A whole body. */
  brotli(bytes: Buffer): Promise<Buffer>
}

const compression: Compression = {
  deflate: bytes => deflateRawSync(bytes, partOptions),
  brotli: bytes => compressed(bytes, 'br'),
}

/** Slices by endpoint: 0 is /weather, 1 to 7 is /forecast for that many days. */
type Kept = { readonly slices: (Rendered | undefined)[] }

// The rough overhead of a kept slice or encoding beside its bytes.
const objectBytes = 400
// A body is a sixteenth shorter with br than with gzip, and br has to be made for each: it is worth it for one that is
// requested about once a second. Counting them all would cost more than that saves, so one request in a few is counted.
const oftenRequested = 1_024
const countedOneIn = 16
// Bodies per slice whose requests are counted.
const maxCounted = 64

export const createRenderedWeather = (
  answers: Answers,
  timezone: string,
  { deflate, brotli } = compression,
): RenderedWeather => {
  const keptOf = new WeakMap<Timeline, Kept>()

  const account = (result: CellResult, { slices }: Kept): void => {
    let bytes = 0
    for (const slice of slices) if (slice) bytes += slice.bytes.length + slice.compressedBytes + objectBytes
    result.setExtraBytes(bytes)
  }

  const sliceOf = (result: CellResult, which: number, render: () => Slice<{ bytes: Buffer }>): Rendered => {
    let kept = keptOf.get(result.value)
    const found = kept?.slices[which]
    if (found && found.beginsAt <= result.readAt && result.readAt < found.endsAt) return found
    const { bytes, beginsAt, endsAt } = render()
    const rendered: Rendered = {
      beginsAt,
      endsAt,
      bytes,
      tag: tagOf(bytes),
      lastModified: lastModifiedOf(result),
      gzip: undefined,
      brotli: undefined,
      compressedBytes: 0,
    }
    if (!kept) {
      kept = { slices: [] }
      keptOf.set(result.value, kept)
    }
    kept.slices[which] = rendered
    account(result, kept)
    return rendered
  }

  const addCompressed = (result: CellResult, rendered: Rendered, bytes: Buffer): void => {
    rendered.compressedBytes += bytes.length + objectBytes
    const kept = keptOf.get(result.value)
    // The slice may have ended meanwhile.
    if (kept?.slices.includes(rendered)) account(result, kept)
  }

  const gzipOf = (result: CellResult, rendered: Rendered, place: PlacePart): Encoded => {
    let end = rendered.gzip
    if (!end) {
      const deflated = unpooledCopy(deflate(rendered.bytes))
      end = gzipEnd(rendered.bytes, deflated)
      rendered.gzip = end
      addCompressed(result, rendered, deflated)
    }
    return { coding: 'gzip', chunks: joinedGzip(place.gzipStart(), end) }
  }

  const makeBrotli = (
    result: CellResult,
    rendered: Rendered,
    place: PlacePart,
    entry: Brotli,
  ): Promise<Encoded> => {
    const making = brotli(Buffer.concat([place.bytes, rendered.bytes])).then(
      bytes => {
        entry.body = { coding: 'br', chunks: [bytes] }
        if (rendered.brotli?.get(place.identity) === entry) addCompressed(result, rendered, bytes)
        return entry.body
      },
      error => {
        entry.body = undefined
        throw error
      },
    )
    entry.body = making
    return making
  }

  let preferring = 0
  /** The br of a body that is often requested, or for a consumer who takes no gzip. */
  const brotliOf = (
    result: CellResult,
    rendered: Rendered,
    place: PlacePart,
    isNeeded: boolean,
  ): Encoded | Promise<Encoded> | undefined => {
    preferring += 1
    const isCounted = preferring % countedOneIn === 0
    let entry = rendered.brotli?.get(place.identity)
    if (!entry) {
      if (!isCounted && !isNeeded) return undefined
      entry = { requests: 0, body: undefined }
      rendered.brotli ??= new Map()
      // There is no end of raw points: the oldest without a body goes first.
      if (rendered.brotli.size >= maxCounted) displaceOne(rendered)
      rendered.brotli.set(place.identity, entry)
    }
    if (isCounted) entry.requests += countedOneIn
    const { body, requests } = entry
    if (isNeeded) return body ?? makeBrotli(result, rendered, place, entry)
    // A client with another coding does not wait for this one.
    if (!body && requests >= oftenRequested) void makeBrotli(result, rendered, place, entry).catch(() => {})
    return body instanceof Promise ? undefined : body
  }

  const encode = (
    result: CellResult,
    rendered: Rendered,
    place: PlacePart,
    { preferred, gzip }: Accepted,
  ): Encoded | Promise<Encoded> =>
    (preferred === 'br' ? brotliOf(result, rendered, place, !gzip) : undefined) ??
    gzipOf(result, rendered, place)

  const represent = (
    result: CellResult,
    rendered: Rendered,
    place: PlacePart,
    headers: string,
  ): Representation => {
    const rightUntil = Math.max(result.readAt, Math.min(rendered.endsAt, result.freshUntil))
    const status = cacheStatus(result)
    // The clock may have been set back since the slice was rendered.
    const lastModified = result.fetchedAt > result.readAt ? lastModifiedOf(result) : rendered.lastModified
    return {
      tag: place.tag + rendered.tag,
      headers: freshnessHeaders(result, rightUntil, lastModified, status) + headers,
      chunks: [place.bytes, rendered.bytes],
      cache: status,
      cell: result.subject.id,
      encode: accepted => encode(result, rendered, place, accepted),
    }
  }

  const representCurrent = (result: CellResult, place: PlacePart, headers: string): Representation =>
    represent(
      result,
      sliceOf(result, 0, () => {
        const weather = answers.weather(result)
        return { ...weather, bytes: weatherPart(weather, timezone) }
      }),
      place,
      headers,
    )
  const representForecast = (result: CellResult, days: number, place: PlacePart): Representation =>
    represent(
      result,
      sliceOf(result, days, () => {
        const forecast = answers.forecast(result, days)
        return { ...forecast, bytes: forecastPart(forecast, timezone) }
      }),
      place,
      '',
    )

  return {
    current: (cell, place, headers, consumer) => {
      const result = answers.read(cell, consumer)
      return result instanceof Promise
        ? result.then(late => representCurrent(late, place, headers), failedFor(cell))
        : representCurrent(result, place, headers)
    },
    forecast: (cell, days, place, consumer) => {
      const result = answers.read(cell, consumer)
      return result instanceof Promise
        ? result.then(late => representForecast(late, days, place), failedFor(cell))
        : representForecast(result, days, place)
    },
  }
}

const displaceOne = (rendered: Rendered): void => {
  const { brotli } = rendered
  let [displaced] = brotli?.keys() ?? []
  for (const [identity, { body }] of brotli ?? [])
    if (!body) {
      displaced = identity
      break
    }
  if (displaced === undefined) return
  const { body } = brotli?.get(displaced) ?? {}
  if (body && !(body instanceof Promise)) rendered.compressedBytes -= lengthOf(body.chunks) + objectBytes
  brotli?.delete(displaced)
}

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

/**
 * Without `age`: every response is rendered for its instant, and caches would subtract it from `max-age`.
 * @param rightUntil when the slice ends or the timeline turns stale, ms since the epoch
 * @param lastModified of the slice
 * @param status its `cacheStatus`
 */
const freshnessHeaders = (
  result: CellResult,
  rightUntil: number,
  lastModified: string,
  status: string,
): string =>
  `cache-control: private, max-age=${secondsBetween(result.readAt, rightUntil)}\r\n${lastModified}` +
  `cache-status: abohawa; ${status}; key="${result.subject.id}"\r\n`

/** Never later than `date`, as RFC 9110 has it, also where the clock was set back after the load. */
const lastModifiedOf = ({ fetchedAt, readAt }: Pick<CellResult, 'fetchedAt' | 'readAt'>): string =>
  `last-modified: ${new Date(Math.min(fetchedAt, readAt)).toUTCString()}\r\n`

/** The parameters of `cache-status` (RFC 9211); the access log has the same text. */
const cacheStatus = (
  result: Pick<CellResult, 'outcome' | 'source' | 'forwarded' | 'collapsed' | 'freshUntil' | 'readAt'>,
): string => {
  const { outcome, source, forwarded, collapsed, freshUntil, readAt } = result
  // Negative for a stale response.
  const ttl = `ttl=${Math.floor((freshUntil - readAt) / 1000)}`
  const shared = collapsed ? '; collapsed' : ''
  if (outcome === 'miss') return `fwd=miss${shared}; stored; ${ttl}`
  // A stale response with a refresh behind it counts as forwarded; during backoff there is no refresh, and it is a hit with
  // a negative ttl.
  return `${forwarded ? `fwd=stale${shared}` : 'hit'}; ${ttl}; detail=${source}`
}

const secondsBetween = (from: number, to: number): number => Math.max(0, Math.floor((to - from) / 1000))
