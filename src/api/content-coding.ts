// The content codings of bodies: what a consumer accepts; bodies that are compressed as a whole, once; and bodies with weather, whose
// gzip continues that of any place of a cell, with br for those that are often requested.

import { promisify } from 'node:util'
import { brotliCompress, constants, deflateRawSync, gzip } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import Negotiator from 'negotiator'
import { type Chunks, lengthOf } from './connection/connection.ts'
import { copyOutOfPool } from './copy-out-of-pool.ts'
import {
  type GzipEnd,
  type GzipPart,
  type GzipStart,
  gzipEnd,
  gzipOptions,
  joinedGzip,
  openPartOptions,
  partOptions,
} from './joined-gzip.ts'

export type Coding = 'br' | 'gzip'

/** The codings that a consumer accepts for a body that is worth compressing. */
export type Accepted = {
  /** The preferred coding; br where both are equal. */
  readonly preferred: Coding
  readonly gzip: boolean
}

export type Encoded = { readonly coding: Coding; readonly chunks: Chunks }

/** A body in a coding that is accepted; undefined where it is sent as it is. */
export type Encode = (accepted: Accepted) => Encoded | Promise<Encoded> | undefined

// Consumers send few different lines.
const known = new LRUCache<string, Choice>({ max: 500 })

type Choice = { readonly accepted: Accepted | undefined; readonly identity: boolean }

// RFC 9110, 8.4.1.3: x-gzip is gzip.
const formerGzip = /(?<![\w-])x-gzip(?![\w-])/gi

const read = (header: string): Choice => {
  const negotiator = new Negotiator({ headers: { 'accept-encoding': header.replace(formerGzip, 'gzip') } })
  const allowed = negotiator.encodings(['br', 'gzip', 'identity'], { preferred: ['br', 'gzip'] })
  const [first] = allowed
  return {
    accepted:
      first === 'br' || first === 'gzip' ? { preferred: first, gzip: allowed.includes('gzip') } : undefined,
    identity: allowed.includes('identity'),
  }
}

// No client's own is longer, and reading one of 16 KiB takes milliseconds.
export const longestPreference = 256

// Below this a compressed body saves no packet.
const worthCompressingBytes = 1024

/** The codings of this `accept-encoding`; undefined for identity. */
export const acceptedOf = (header: string, bytes: number): Accepted | undefined => {
  if (header.length > longestPreference) return undefined
  let choice = known.get(header)
  if (!choice) {
    choice = read(header)
    known.set(header, choice)
  }
  const { accepted, identity } = choice
  return identity && bytes < worthCompressingBytes ? undefined : accepted
}

/** The quality of br: 4 gives most of what 11 would give on this JSON, in a fraction of the time. */
export const brotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }

const brotli = promisify(brotliCompress)
const zip = promisify(gzip)
const encoders: Readonly<Record<Coding, (bytes: Buffer) => Promise<Buffer>>> = {
  br: bytes => brotli(bytes, brotliOptions),
  gzip: bytes => zip(bytes, gzipOptions),
}

/** A body in a coding, made off the event loop. */
export const compressed = async (bytes: Buffer, coding: Coding): Promise<Buffer> =>
  copyOutOfPool(await encoders[coding](bytes))

/**
 * Compresses a body as a whole, once for all who ask, and keeps the encodings for as long as it is kept itself.
 * @param onEncoded is called with each encoding that is kept
 */
export const encodeWhole = (bytes: Buffer, onEncoded?: (encoded: Buffer) => void): Encode => {
  const kept: { [coding in Coding]?: Encoded | Promise<Encoded> } = {}
  const make = async (coding: Coding): Promise<Encoded> => {
    try {
      const encoded = await compressed(bytes, coding)
      kept[coding] = { coding, chunks: [encoded] }
      onEncoded?.(encoded)
      return kept[coding]
    } catch (error) {
      delete kept[coding]
      throw error
    }
  }
  return ({ preferred }) => {
    kept[preferred] ??= make(preferred)
    return kept[preferred]
  }
}

/** The part of a body before its weather: the place. */
export type BodyStart = {
  readonly bytes: Buffer
  /** Cached bodies are found by it, never by a hash. */
  readonly identity: number | string
  gzipStart(): GzipStart
}

export type Compression = {
  /** A raw deflate stream, synchronously; `isLast` ends it. */
  deflate(bytes: Buffer, isLast: boolean): Buffer
  brotli(bytes: Buffer): Promise<Buffer>
}

const zlib: Compression = {
  deflate: (bytes, isLast) => deflateRawSync(bytes, isLast ? partOptions : openPartOptions),
  brotli: bytes => compressed(bytes, 'br'),
}

export type Encodings = ReturnType<typeof createEncodings>

/** A body that is compressed with br once it was requested often. */
type Brotli = { requests: number; body: Encoded | Promise<Encoded> | undefined }

// The rough overhead of a kept encoding beside its bytes.
const objectBytes = 400
// A body is a sixteenth shorter with br than with gzip, and br has to be made for each: it is worth it for one that is
// requested about once a second. Counting them all would cost more than that saves, so one request in a few is counted.
const oftenRequested = 1_024
const countedOneIn = 16
// Bodies per slice whose requests are counted, because raw points are endless.
const maxCounted = 64

/** The encodings of a slice, which all places of a cell share, with what they take in memory. */
export const createEncodings = (slice: Buffer, { deflate, brotli }: Compression = zlib) => {
  let bytes = 0
  let end: GzipEnd | undefined
  let middle: GzipPart | undefined
  let preferring = 0
  // Whole bodies by the identity of their place, once somebody preferred br.
  let counted: LRUCache<BodyStart['identity'], Brotli> | undefined

  const deflated = (isLast: boolean, onGrown: () => void): GzipEnd => {
    const made = gzipEnd(slice, copyOutOfPool(deflate(slice, isLast)))
    bytes += made.bytes.length + objectBytes
    onGrown()
    return made
  }
  const makeBrotli = async (place: BodyStart, entry: Brotli, onGrown: () => void): Promise<Encoded> => {
    try {
      const body = await brotli(Buffer.concat([place.bytes, slice]))
      entry.body = { coding: 'br', chunks: [body] }
      if (counted?.peek(place.identity) === entry) {
        bytes += body.length + objectBytes
        onGrown()
      }
      return entry.body
    } catch (error) {
      entry.body = undefined
      throw error
    }
  }
  const countedOf = ({ identity }: BodyStart): Brotli => {
    const entry = { requests: 0, body: undefined }
    counted ??= new LRUCache({
      max: maxCounted,
      dispose: ({ body }) => {
        if (body && !(body instanceof Promise)) bytes -= lengthOf(body.chunks) + objectBytes
      },
    })
    counted.set(identity, entry)
    return entry
  }
  /** The br of a body that is often requested, or for a consumer who takes no gzip. */
  const brotliOf = (
    place: BodyStart,
    isNeeded: boolean,
    onGrown: () => void,
  ): Encoded | Promise<Encoded> | undefined => {
    preferring += 1
    const isCounted = preferring % countedOneIn === 0
    let entry = counted?.get(place.identity)
    if (!entry) {
      if (!isCounted && !isNeeded) return undefined
      entry = countedOf(place)
    }
    if (isCounted) entry.requests += countedOneIn
    if (!entry.body && (isNeeded || entry.requests >= oftenRequested)) {
      entry.body = makeBrotli(place, entry, onGrown)
      // A client that also takes gzip does not wait for br.
      if (!isNeeded) entry.body.catch(() => {})
    }
    return isNeeded || !(entry.body instanceof Promise) ? entry.body : undefined
  }

  return {
    encode: (
      place: BodyStart,
      { preferred, gzip }: Accepted,
      onGrown: () => void,
    ): Encoded | Promise<Encoded> => {
      const inBrotli = preferred === 'br' ? brotliOf(place, !gzip, onGrown) : undefined
      if (inBrotli) return inBrotli
      end ??= deflated(true, onGrown)
      return { coding: 'gzip', chunks: joinedGzip(place.gzipStart(), end) }
    },
    /** The slice as a part of a longer gzip. */
    part: (onGrown: () => void): GzipPart => {
      middle ??= deflated(false, onGrown)
      return middle
    },
    bytes: () => bytes,
  }
}
