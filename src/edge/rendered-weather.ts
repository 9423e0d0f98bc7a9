// Rendered weather: the JSON bytes of a timeline's slices, rendered once per slice and shared by all places of the cell, with
// their compressed bodies. They are kept as long as the timeline is in memory and count towards its size. JSON texts come from
// bodies.ts, headers from cache-headers.ts.

import type { Answers, CellResult, Slice } from '../answer.ts'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import { forecastPiece, weatherPiece } from './bodies.ts'
import { cacheStatus, freshnessHeaders } from './cache-headers.ts'
import type { PlacePiece } from './places.ts'
import { type Encodings, type Representation, tagOf } from './representation.ts'

/** The part of a body that all places of a cell share, with what is derived from it. */
type Rendered = Slice<{
  readonly bytes: Buffer
  readonly tag: string
  /** Compressed whole bodies by the identity of their place; oldest first. */
  readonly encodings: Map<PlacePiece['identity'], Encodings>
  /** The size of `encodings`. */
  encodedBytes: number
  resultHeaders: ResultHeaders | undefined
}>

/** The headers of a cache result; the same for one second. */
type ResultHeaders = {
  readonly result: CellResult
  readonly second: number
  readonly cacheStatus: string
  readonly headers: string
}

export type RenderedWeather = {
  /**
   * A place and the current weather of its cell, at once when memory holds it. `headers` are those of the place.
   * @throws AbohawaError as `answers` does
   */
  current(cell: Cell, place: PlacePiece, headers: string): Representation | Promise<Representation>
  /** A place and the forecast of its cell for a number of days. */
  forecast(cell: Cell, days: number, place: PlacePiece): Representation | Promise<Representation>
}

type Slot = {
  place: PlacePiece | undefined
  resultHeaders: ResultHeaders | undefined
  body: Representation | undefined
}

/** Slices by endpoint: 0 is /weather, 1 to 7 is /forecast for that many days. */
type Kept = { readonly slices: (Rendered | undefined)[] }

// The rough overhead of a kept slice or encoding beside its bytes.
const objectBytes = 400
// Encoded bodies per slice; bounded, because there is no end of raw points.
const maxEncodings = 300
const slotCount = 128

export const createRenderedWeather = (answers: Answers, timezone: string): RenderedWeather => {
  const keptOf = new WeakMap<Timeline, Kept>()
  // Direct-mapped cache of whole bodies. Filled on the second request within a second, so that one-off requests allocate
  // nothing long-lived.
  const slots: Slot[] = Array.from({ length: slotCount }, () => ({
    place: undefined,
    resultHeaders: undefined,
    body: undefined,
  }))

  const account = (result: CellResult, { slices }: Kept): void => {
    let bytes = 0
    for (const slice of slices) if (slice) bytes += slice.bytes.length + slice.encodedBytes + objectBytes
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
      encodings: new Map(),
      encodedBytes: 0,
      resultHeaders: undefined,
    }
    if (!kept) {
      kept = { slices: [] }
      keptOf.set(result.value, kept)
    }
    kept.slices[which] = rendered
    account(result, kept)
    return rendered
  }

  const encodingsFor = (rendered: Rendered, { identity }: PlacePiece): Encodings => {
    const kept = rendered.encodings.get(identity)
    if (kept) return kept
    const [oldest] = rendered.encodings.keys()
    if (rendered.encodings.size >= maxEncodings && oldest !== undefined) {
      for (const encoded of Object.values(rendered.encodings.get(oldest) ?? {}))
        if (encoded instanceof Buffer) rendered.encodedBytes -= encoded.length + objectBytes
      rendered.encodings.delete(oldest)
    }
    const encodings: Encodings = {}
    rendered.encodings.set(identity, encodings)
    return encodings
  }

  const headersFor = (result: CellResult, rendered: Rendered): ResultHeaders => {
    const last = rendered.resultHeaders
    const second = Math.floor(result.readAt / 1000)
    if (last && last.second === second && haveSameHeaders(last.result, result)) return last
    const rightUntil = Math.max(result.readAt, Math.min(rendered.endsAt, result.freshUntil))
    const headers = {
      result,
      second,
      cacheStatus: cacheStatus(result),
      headers: freshnessHeaders(result, rightUntil),
    }
    rendered.resultHeaders = headers
    return headers
  }

  const represent = (
    result: CellResult,
    rendered: Rendered,
    place: PlacePiece,
    headers: string,
  ): Representation => {
    const resultHeaders = headersFor(result, rendered)
    // A raw point is new each time and gets no slot.
    const slot = typeof place.identity === 'number' ? slots[place.identity % slotCount] : undefined
    const isSecond = slot?.place === place && slot.resultHeaders === resultHeaders
    if (isSecond && slot.body) return slot.body
    const body: Representation = {
      tag: place.tag + rendered.tag,
      headers: resultHeaders.headers + headers,
      pieces: [place.bytes, rendered.bytes],
      cache: resultHeaders.cacheStatus,
      cell: result.subject.id,
      heads: {},
      encodings: () => encodingsFor(rendered, place),
      onEncoded: encoded => {
        // Other places may have evicted it while it was compressed.
        if (!rendered.encodings.has(place.identity)) return
        rendered.encodedBytes += encoded.length + objectBytes
        const kept = keptOf.get(result.value)
        // The slice may have ended meanwhile.
        if (kept?.slices.includes(rendered)) account(result, kept)
      },
    }
    if (slot) {
      slot.place = place
      slot.resultHeaders = resultHeaders
      slot.body = isSecond ? body : undefined
    }
    return body
  }

  const representCurrent = (result: CellResult, place: PlacePiece, headers: string): Representation =>
    represent(
      result,
      sliceOf(result, 0, () => {
        const weather = answers.weather(result)
        return { ...weather, bytes: weatherPiece(weather, timezone) }
      }),
      place,
      headers,
    )
  const representForecast = (result: CellResult, days: number, place: PlacePiece): Representation =>
    represent(
      result,
      sliceOf(result, days, () => {
        const forecast = answers.forecast(result, days)
        return { ...forecast, bytes: forecastPiece(forecast, timezone) }
      }),
      place,
      '',
    )

  return {
    current: (cell, place, headers) => {
      const result = answers.read(cell)
      return result instanceof Promise
        ? result.then(late => representCurrent(late, place, headers), failedFor(cell))
        : representCurrent(result, place, headers)
    },
    forecast: (cell, days, place) => {
      const result = answers.read(cell)
      return result instanceof Promise
        ? result.then(late => representForecast(late, days, place), failedFor(cell))
        : representForecast(result, days, place)
    },
  }
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

const haveSameHeaders = (one: CellResult, other: CellResult): boolean =>
  one.freshUntil === other.freshUntil &&
  one.outcome === other.outcome &&
  one.source === other.source &&
  one.forwarded === other.forwarded &&
  one.collapsed === other.collapsed
