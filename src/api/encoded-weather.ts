// The encodings of bodies with weather: the gzip of a slice, which continues that of any place of its cell, and br of the bodies
// that are often requested. They are kept with their slice (rendered-weather.ts); nothing else is kept of a place or a URL.

import { deflateRawSync } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import { lengthOf } from './connection/connection.ts'
import { type Accepted, compressed, type Encoded, partOptions } from './content-coding.ts'
import { copyOutOfPool } from './copy-out-of-pool.ts'
import { type GzipEnd, type GzipPart, gzipEnd, joinedGzip, openPartOptions } from './joined-gzip.ts'
import type { PlacePart } from './places.ts'

/** How bytes are compressed. */
export type Compression = {
  /** A raw deflate stream, at once: a whole one, or one that others follow. */
  deflate(bytes: Buffer, isLast: boolean): Buffer
  /** A whole body. */
  brotli(bytes: Buffer): Promise<Buffer>
}

const zlib: Compression = {
  deflate: (bytes, isLast) => deflateRawSync(bytes, isLast ? partOptions : openPartOptions),
  brotli: bytes => compressed(bytes, 'br'),
}

/** The encodings of a slice, with what they take in memory. */
export type Encodings = {
  encode(place: PlacePart, accepted: Accepted, onGrown: () => void): Encoded | Promise<Encoded>
  /** The slice as a part of a gzip that goes on after it. */
  part(onGrown: () => void): GzipPart
  bytes(): number
}

/** A body that is compressed with br once it was requested often. */
type Brotli = { requests: number; body: Encoded | Promise<Encoded> | undefined }

// The rough overhead of a kept encoding beside its bytes.
const objectBytes = 400
// A body is a sixteenth shorter with br than with gzip, and br has to be made for each: it is worth it for one that is
// requested about once a second. Counting them all would cost more than that saves, so one request in a few is counted.
const oftenRequested = 1_024
const countedOneIn = 16
// Bodies per slice whose requests are counted. There is no end of raw points.
const maxCounted = 64

/** @param slice the part of a body that all places of a cell share */
export const createEncodings = (slice: Buffer, { deflate, brotli }: Compression = zlib): Encodings => {
  let bytes = 0
  let end: GzipEnd | undefined
  let middle: GzipPart | undefined
  let preferring = 0
  // Whole bodies by the identity of their place, once somebody preferred br.
  let counted: LRUCache<PlacePart['identity'], Brotli> | undefined
  const createCounted = () =>
    new LRUCache<PlacePart['identity'], Brotli>({
      max: maxCounted,
      dispose: ({ body }) => {
        if (body && !(body instanceof Promise)) bytes -= lengthOf(body.chunks) + objectBytes
      },
    })

  const deflated = (isLast: boolean, onGrown: () => void): GzipEnd => {
    const made = gzipEnd(slice, copyOutOfPool(deflate(slice, isLast)))
    bytes += made.bytes.length + objectBytes
    onGrown()
    return made
  }
  const gzipOf = (place: PlacePart, onGrown: () => void): Encoded => {
    end ??= deflated(true, onGrown)
    return { coding: 'gzip', chunks: joinedGzip(place.gzipStart(), end) }
  }

  const makeBrotli = (place: PlacePart, entry: Brotli, onGrown: () => void): Promise<Encoded> => {
    const making = brotli(Buffer.concat([place.bytes, slice])).then(
      body => {
        entry.body = { coding: 'br', chunks: [body] }
        if (counted?.peek(place.identity) === entry) {
          bytes += body.length + objectBytes
          onGrown()
        }
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

  /** The br of a body that is often requested, or for a consumer who takes no gzip. */
  const brotliOf = (
    place: PlacePart,
    isNeeded: boolean,
    onGrown: () => void,
  ): Encoded | Promise<Encoded> | undefined => {
    preferring += 1
    const isCounted = preferring % countedOneIn === 0
    let entry = counted?.get(place.identity)
    if (!entry) {
      if (!isCounted && !isNeeded) return undefined
      entry = { requests: 0, body: undefined }
      counted ??= createCounted()
      counted.set(place.identity, entry)
    }
    if (isCounted) entry.requests += countedOneIn
    const { body, requests } = entry
    if (isNeeded) return body ?? makeBrotli(place, entry, onGrown)
    // A client with another coding does not wait for this one.
    if (!body && requests >= oftenRequested) void makeBrotli(place, entry, onGrown).catch(() => {})
    return body instanceof Promise ? undefined : body
  }

  return {
    encode: (place, { preferred, gzip }, onGrown) =>
      (preferred === 'br' ? brotliOf(place, !gzip, onGrown) : undefined) ?? gzipOf(place, onGrown),
    part: onGrown => {
      middle ??= deflated(false, onGrown)
      return middle
    },
    bytes: () => bytes,
  }
}
