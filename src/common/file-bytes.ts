// The bytes of a file or of standard input, unpacked where they begin as gzip does. Bounded: a little compressed input at a time, and none
// that expands as no log does.

import { createHash } from 'node:crypto'
import { createGunzip, type Gunzip } from 'node:zlib'
import { InputError } from './errors.ts'
import { printable } from './outside-text.ts'
import { FileError, openStream } from './regular-file.ts'

/** The name of standard input where a file is expected. */
export const standardInput = '-'
/** The same where one is to be written. */
export const standardOutput = '-'

export type FileBytes = {
  /** The bytes of the file, unpacked. @throws InputError when it can't be read; UnpackingError when it ends too early */
  readonly chunks: Chunks
  /** Of the unpacked bytes so far, in hexadecimal: the same for a file and its gzip. */
  sha256(): string
  /** How many bytes of the file, packed as they are, were read. */
  read(): number
}

/** A compressed file that is cut off or damaged; what came before was given. */
export class UnpackingError extends InputError {
  override name = 'UnpackingError'
}

const readBytes = 256 * 1024
// At most 1,032 times as many bytes come of it before the next ones; where data are damaged, what came of these is lost.
const compressedBytes = 1 * 1024
const unpackedBytes = 128 * 1024
// Logs shrink to a tenth or a thirtieth, the dullest to a hundredth.
const maxExpansion = 400
const freeExpansion = 64 * 1024 * 1024

export const openBytes = (path: string): FileBytes => {
  const hash = createHash('sha256')
  let read = 0
  const packed = async function* (): Chunks {
    try {
      const stream =
        path === standardInput
          ? process.stdin
          : (await openStream(path)).createReadStream({ highWaterMark: readBytes })
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        read += chunk.length
        yield chunk
      }
    } catch (cause) {
      throw new InputError(`${nameOfFile(path)} can't be read: ${reasonOf(cause as NodeJS.ErrnoException)}`, {
        cause,
      })
    }
  }
  const unpacked = async function* (): Chunks {
    const source = packed()
    try {
      const { begin, chunks } = await beginOf(source, longestSign)
      const other = otherSigns.find(({ sign }) => begin.subarray(0, sign.length).equals(sign))
      if (other)
        throw new InputError(
          `${nameOfFile(path)} is compressed by ${other.name}: unpack it first, with \`${other.name} -d\`, or compress it by gzip`,
        )
      const isGzip = begin.subarray(0, gzipSign.length).equals(gzipSign)
      for await (const chunk of isGzip ? gunzipped(chunks) : chunks) {
        hash.update(chunk)
        yield chunk
      }
    } finally {
      // A reader that ends at the first chunk has not begun the rest, and the file would stay open.
      await source.return()
    }
  }
  return { chunks: unpacked(), sha256: () => hash.copy().digest('hex'), read: () => read }
}

type Chunks = AsyncGenerator<Buffer, void, undefined>

const gzipSign = Buffer.from([0x1f, 0x8b, 0x08])
const otherSigns = [
  { name: 'zstd', sign: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]) },
  { name: 'xz', sign: Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]) },
  { name: 'bzip2', sign: Buffer.from('BZh') },
]
const longestSign = 6

/** At least so many of the first bytes, and all chunks. Standard input may come byte by byte. */
export const beginOf = async (
  chunks: AsyncIterator<Buffer, void> & AsyncIterable<Buffer>,
  least: number,
): Promise<{ readonly begin: Buffer; readonly chunks: Chunks }> => {
  const first: Buffer[] = []
  for (let length = 0; length < least; ) {
    const { value, done } = await chunks.next()
    if (done) break
    first.push(value)
    length += value.length
  }
  const all = async function* (): Chunks {
    yield* first
    yield* chunks
  }
  return { begin: Buffer.concat(first), chunks: all() }
}

const reasonOf = (cause: NodeJS.ErrnoException): string =>
  reasons[cause.code ?? ''] ?? (cause instanceof FileError ? cause.message : (cause.code ?? String(cause)))

const reasons: Record<string, string> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'permission is denied',
}

export const nameOfFile = (path: string): string =>
  path === standardInput ? 'standard input' : printable(path, longestName)
const longestName = 1_000

// Written chunk by chunk, not piped: a failed pipe forgets what was unpacked and not yet read. Node ends at zeros after a member, but
// they may be padding before another one.
async function* gunzipped(chunks: AsyncIterable<Buffer>): Chunks {
  const ready: Buffer[] = []
  let failure: Error | undefined
  let isOver = false
  let wake = () => {}
  const open = (): Gunzip => {
    isOver = false
    return createGunzip({ chunkSize: unpackedBytes })
      .on('data', (chunk: Buffer) => ready.push(chunk))
      .on('error', error => {
        failure = error
        wake()
      })
      .on('end', () => {
        isOver = true
        wake()
      })
  }
  let gunzip = open()
  let taken = 0
  let given = 0
  const step = async function* (act: (done: () => void) => void): Chunks {
    await new Promise<void>(done => {
      wake = done
      act(done)
    })
    for (const chunk of ready.splice(0)) {
      given += chunk.length
      yield chunk
    }
    if (failure) throw new UnpackingError(`the gzip data end too early or are damaged (${failure.message})`)
    if (given > freeExpansion && given > taken * maxExpansion)
      throw new UnpackingError(`the gzip data expand to more than ${maxExpansion} times their size`)
  }
  try {
    for await (const chunk of chunks)
      for (let at = 0; at < chunk.length; ) {
        if (isOver && chunk[at] === 0) {
          at += 1
          continue
        }
        if (isOver) {
          gunzip.destroy()
          gunzip = open()
        }
        const part = chunk.subarray(at, at + compressedBytes)
        taken += part.length
        const before = gunzip.bytesWritten
        yield* step(done => gunzip.write(part, () => done()))
        at += isOver ? gunzip.bytesWritten - before : part.length
      }
    // Whether data are missing shows when they should have come to their end.
    if (!isOver) yield* step(() => gunzip.end())
  } finally {
    gunzip.destroy()
  }
}
