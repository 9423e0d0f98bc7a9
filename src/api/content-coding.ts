// The content codings of bodies: what a consumer accepts, and bodies that are compressed as a whole, once. Bodies with weather
// are joined from compressed parts by joined-gzip.ts.

import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import Negotiator from 'negotiator'
import type { Chunks } from './connection/connection.ts'
import { copyOutOfPool } from './copy-out-of-pool.ts'

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

// Consumers send the same few lines over and over.
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

/** The level of every gzip, joined or whole. */
export const gzipOptions = { level: constants.Z_DEFAULT_COMPRESSION }
/**
 * For a part of a body, which is joined with others. V8 keeps the piece of memory that it is written to until it collects old
 * objects, so that piece is hardly larger than what is written.
 */
export const partOptions = { ...gzipOptions, chunkSize: 4 * 1024 }
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
