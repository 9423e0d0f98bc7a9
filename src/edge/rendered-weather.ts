// The weather of a cell as bytes, made once for each slice of its timeline and kept for as long as that slice is right:
// every place of the cell, in either language, is answered with the same bytes behind its own. What is kept lies beside
// the timeline, is accounted for with it and goes with it.

import type { Answers, Known, Slice } from '../answer.ts'
import type { Timeline } from '../weather/timeline.ts'
import { forecastPiece, weatherPiece } from './bodies.ts'
import type { PlacePiece } from './places.ts'
import { type Encodings, type Representation, tagOf } from './representation.ts'
import { cacheWords, freshnessHeaders } from './response-headers.ts'

/** The part of a body that all places of a cell share, and what was made of it. */
type Rendered = Slice<{
  readonly bytes: Buffer
  readonly tag: string
  /** Whole bodies compressed, by the identity of the place in them; oldest first. */
  readonly encodings: Map<PlacePiece['identity'], Encodings>
  /** What `encodings` take. */
  encodedBytes: number
  told: Told | undefined
}>

/** What is said of a reading, the same for a second. */
type Told = {
  readonly known: Known
  readonly second: number
  readonly words: string
  readonly headers: string
}

export type RenderedWeather = {
  /** The slice of /weather that is right at the instant of `known`. @throws AbohawaError as the answers do */
  weather(known: Known): Rendered
  /** The slice of /forecast of so many days. */
  forecast(known: Known, days: number): Rendered
  /** A whole body: a place and its weather. `headers` go with the place. */
  represent(known: Known, rendered: Rendered, place: PlacePiece, headers?: string): Representation
}

type Slot = {
  place: PlacePiece | undefined
  told: Told | undefined
  body: Representation | undefined
}

/** Slices by what they are of: 0 is /weather, 1 to 7 /forecast of so many days. */
type Kept = { readonly slices: (Rendered | undefined)[] }

// What a kept slice or encoding takes beside its bytes, roughly.
const objectBytes = 400
// Places of one cell in all their encodings; raw points are without number.
const maxEncodings = 300
const slotCount = 128

export const createRenderedWeather = (answers: Answers, timezone: string): RenderedWeather => {
  const keptOf = new WeakMap<Timeline, Kept>()
  // What was said last, in slots by the places' numbers: who is asked for a second time in a second is likely to be asked
  // for again, and then has its whole body kept. Others leave nothing: most bodies are to die young.
  const slots: Slot[] = Array.from({ length: slotCount }, () => ({
    place: undefined,
    told: undefined,
    body: undefined,
  }))

  const account = (known: Known, { slices }: Kept): void => {
    let bytes = 0
    for (const slice of slices) if (slice) bytes += slice.bytes.length + slice.encodedBytes + objectBytes
    known.setExtraBytes(bytes)
  }

  const sliceOf = (known: Known, which: number, render: () => Slice<{ bytes: Buffer }>): Rendered => {
    let kept = keptOf.get(known.value)
    const found = kept?.slices[which]
    if (found && found.beginsAt <= known.readAt && known.readAt < found.endsAt) return found
    const { bytes, beginsAt, endsAt } = render()
    const rendered: Rendered = {
      beginsAt,
      endsAt,
      bytes,
      tag: tagOf(bytes),
      encodings: new Map(),
      encodedBytes: 0,
      told: undefined,
    }
    if (!kept) {
      kept = { slices: [] }
      keptOf.set(known.value, kept)
    }
    kept.slices[which] = rendered
    account(known, kept)
    return rendered
  }

  const encodingsFor = (rendered: Rendered, { identity }: PlacePiece): Encodings => {
    const known = rendered.encodings.get(identity)
    if (known) return known
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

  const tell = (known: Known, rendered: Rendered): Told => {
    const { told } = rendered
    const second = Math.floor(known.readAt / 1000)
    if (told && told.second === second && isToldAlike(told.known, known)) return told
    const rightUntil = Math.max(known.readAt, Math.min(rendered.endsAt, known.freshUntil))
    const news = {
      known,
      second,
      words: cacheWords(known),
      headers: freshnessHeaders(known, rightUntil),
    }
    rendered.told = news
    return news
  }

  return {
    weather: known =>
      sliceOf(known, 0, () => {
        const weather = answers.weather(known)
        return { ...weather, bytes: weatherPiece(weather, timezone) }
      }),
    forecast: (known, days) =>
      sliceOf(known, days, () => {
        const forecast = answers.forecast(known, days)
        return { ...forecast, bytes: forecastPiece(forecast, timezone) }
      }),
    represent: (known, rendered, place, headers = '') => {
      const told = tell(known, rendered)
      // Raw points are without number: each is new.
      const slot = typeof place.identity === 'number' ? slots[place.identity % slotCount] : undefined
      const isSecond = slot?.place === place && slot.told === told
      if (isSecond && slot.body) return slot.body
      const body: Representation = {
        tag: place.tag + rendered.tag,
        headers: told.headers + headers,
        pieces: [place.bytes, rendered.bytes],
        cache: told.words,
        heads: {},
        encodings: () => encodingsFor(rendered, place),
        onEncoded: encoded => {
          // While it was compressed, others may have taken its place.
          if (!rendered.encodings.has(place.identity)) return
          rendered.encodedBytes += encoded.length + objectBytes
          const kept = keptOf.get(known.value)
          // The slice may have ended meanwhile.
          if (kept?.slices.includes(rendered)) account(known, kept)
        },
      }
      if (slot) {
        slot.place = place
        slot.told = told
        slot.body = isSecond ? body : undefined
      }
      return body
    },
  }
}

const isToldAlike = (one: Known, other: Known): boolean =>
  one.freshUntil === other.freshUntil &&
  one.outcome === other.outcome &&
  one.source === other.source &&
  one.forwarded === other.forwarded &&
  one.collapsed === other.collapsed
