// The body of a provider's response: decodes it in chunks, and bounds its bytes and its chunks.

import { pipeline, type Readable } from 'node:stream'
import { createGunzip, type Gunzip } from 'node:zlib'
import { excerptOf, garbled, type ProviderError } from './errors.ts'

const unzipAtOnce = 64 * 1024
// A chunk of a few bytes costs as much time as one of thousands; below this number of chunks that does not matter.
const minChunkBytes = 16
const fewChunks = 4_096

/** The decoded body. Both the compressed and the decompressed size are bounded. @throws ProviderError */
export async function* unzipped(
  body: Readable,
  encoding: string | string[] | undefined,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  const compressed = bounded(body, maxBytes)
  const name = String(encoding ?? 'identity').toLowerCase()
  if (name === 'identity') yield* compressed
  else if (name !== 'gzip' && name !== 'x-gzip') throw wrongEncoding(name)
  // Errors of either stream reach the reader of the pipeline's end.
  else
    yield* bounded(
      pipeline(compressed, shortLived(createGunzip({ chunkSize: unzipAtOnce })), () => {}),
      maxBytes,
    )
}

/**
 * A stream of zlib belongs to something outside of V8, which therefore takes it for alive until old objects are collected, and with it
 * the memory that it writes to. So that is released at the end, after which zlib writes no more. Node has no name for it that it
 * promises to keep; without it, more is collected.
 */
const shortLived = (gunzip: Gunzip): Gunzip =>
  gunzip.once('end', () => {
    ;(gunzip as { _outBuffer?: unknown })._outBuffer = undefined
  })

async function* bounded(body: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let length = 0
  let chunks = 0
  for await (const chunk of body) {
    length += chunk.length
    chunks += 1
    if (length > maxBytes) throw garbled('too_large', `the provider's body is longer than ${maxBytes} bytes`)
    if (chunks > fewChunks && length < chunks * minChunkBytes)
      throw garbled(
        'too_many_chunks',
        `the provider's body comes in ${chunks} chunks for ${length} bytes, expected ${minChunkBytes} bytes in each on average`,
      )
    yield chunk
  }
}

/** The text of an error response; empty if it can't be read, because the status is enough. */
export const errorTextOf = async (chunks: AsyncIterable<Uint8Array>): Promise<string> => {
  const read: Uint8Array[] = []
  try {
    for await (const chunk of chunks) read.push(chunk)
  } catch {
    // The status is enough.
  }
  return Buffer.concat(read).toString()
}

const wrongEncoding = (encoding: string): ProviderError =>
  garbled(
    'wrong_encoding',
    `the provider's body has the content-encoding ${excerptOf(encoding)}, expected gzip or none`,
  )
