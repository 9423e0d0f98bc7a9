// Reads traffic files as one stream of requests in the order of arrival:
//
//   const traffic = readTraffic(['monday.ndjson.gz', 'gateway-2.log'], { onFault })
//   for await (const request of traffic) …          // or, faster: for await (const requests of traffic.batches()) …
//   traffic.summary()                               // sha256, counts; of what was read so far
//
// Files are in any of the formats, plain or gzip, `-` is standard input; memory is bounded, faulty lines are reported and the
// rest goes on. No API key comes out. What is further out of place than the window stays out of order. May be read once.

import { createHash } from 'node:crypto'
import { InputError } from '../../common/errors.ts'
import { defaultWindow, inOrder, merged } from './arrival-order.ts'
import { nameOfFile, openBytes, standardInput, UnpackingError } from './file-bytes.ts'
import { type Format, type LeftOut, leftOut } from './format.ts'
import { formatNamed, formatOf, ownFormat } from './formats.ts'
import { createPseudonyms, type Pseudonyms, withoutSecrets, withPseudonyms } from './pseudonyms.ts'
import type { TrafficRequest } from './traffic-request.ts'

export type TrafficFault = { readonly file: string; readonly line: number; readonly reason: string }

export type ReadOptions = {
  /** For each faulty line; the others go on. */
  readonly onFault?: (fault: TrafficFault) => void
  /** Of all files; detected from their content if not given. */
  readonly format?: string | undefined
  /** How many requests are held back to be sorted, of all files. */
  readonly window?: number | undefined
  /** The host whose requests are wanted, of files that name hosts. */
  readonly host?: string | undefined
}

type FileSummary = {
  readonly file: string
  /** Null while its beginning has not been read. */
  readonly format: string | null
  /** Of its text, unpacked, as far as it was read. */
  readonly sha256: string
  readonly requests: number
  readonly faultyLines: number
  /** Right lines without a request. */
  readonly skippedLines: number
  /** Requests of a file of a browser that no server has received, or another than `host`. */
  readonly leftOut: Readonly<Record<LeftOut, number>>
  /** Null where files of its format name no host. */
  readonly host: string | null
  /** Requests that were further out of place than the window. */
  readonly late: number
  /** The share of requests that the log was set to hold, where it was below 1 (`log.accessShare`). */
  readonly share: number | null
}

export type TrafficSummary = Omit<FileSummary, 'file' | 'format' | 'host'> & {
  readonly files: readonly FileSummary[]
}

export type Traffic = AsyncIterable<TrafficRequest> & {
  /** The same requests, many at a time. */
  batches(): AsyncGenerator<TrafficRequest[], void, undefined>
  summary(): TrafficSummary
  /** How many bytes of the files, packed as they are, were read. */
  bytesRead(): number
}

/** @throws InputError, also while it is read: a file that can't be read or whose format is unknown */
export const readTraffic = (paths: readonly string[], options: ReadOptions = {}): Traffic => {
  if (paths.filter(path => path === standardInput).length > 1)
    throw new InputError('standard input (-) is given twice; allowed: once')
  const given = options.format === undefined ? undefined : formatNamed(options.format)
  const pseudonyms = createPseudonyms()
  const window = Math.ceil((options.window ?? defaultWindow) / Math.max(1, paths.length))
  const files = paths.map(path => readFile(path, given, { ...options, window, pseudonyms }))
  const batches = () => merged(files.map(file => file.batches))
  return {
    batches,
    async *[Symbol.asyncIterator]() {
      for await (const batch of batches()) yield* batch
    },
    summary: () => {
      const each = files.map(file => file.summary())
      const sum = (of: (file: FileSummary) => number) => each.reduce((total, file) => total + of(file), 0)
      return {
        sha256: sha256Of(each.map(({ sha256 }) => sha256)),
        requests: sum(({ requests }) => requests),
        faultyLines: sum(({ faultyLines }) => faultyLines),
        skippedLines: sum(({ skippedLines }) => skippedLines),
        leftOut: countsOf(why => sum(file => file.leftOut[why])),
        late: sum(({ late }) => late),
        share: each.reduce<number | null>((least, { share }) => smaller(least, share), null),
        files: each,
      }
    },
    bytesRead: () => files.reduce((total, file) => total + file.bytesRead(), 0),
  }
}

const countsOf = (count: (why: LeftOut) => number) =>
  Object.fromEntries(leftOut.map(why => [why, count(why)])) as Record<LeftOut, number>

const smaller = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other)

/** Of one file its own; of several that of theirs, one a line. */
const sha256Of = (all: readonly string[]): string =>
  all.length === 1 ? (all[0] as string) : createHash('sha256').update(all.join('\n')).digest('hex')

type ReadFile = {
  readonly batches: AsyncGenerator<TrafficRequest[], void, undefined>
  summary(): FileSummary
  bytesRead(): number
}

const readFile = (
  path: string,
  given: Format | undefined,
  { onFault, window, pseudonyms, host: wanted }: ReadOptions & { window: number; pseudonyms: Pseudonyms },
): ReadFile => {
  const file = nameOfFile(path)
  const bytes = openBytes(path)
  const counts = { requests: 0, faultyLines: 0, skippedLines: 0, leftOut: countsOf(() => 0), late: 0 }
  let host: string | null = null
  let format = given
  let share: number | null = null

  const parsed = async function* (): AsyncGenerator<TrafficRequest[], void, undefined> {
    const { begin, chunks, failure } = await beginOf(bytes.chunks)
    if (begin.length === 0 && failure === undefined) return
    try {
      format ??= formatOf(begin.toString())
    } catch (thrown) {
      throw thrown instanceof InputError ? new InputError(`${file}: ${failure ?? thrown.message}`) : thrown
    }
    const observer = {
      nameOf: pseudonyms,
      onFault: (line: number, reason: string) => {
        counts.faultyLines += 1
        onFault?.({ file, line, reason })
      },
      onSkipped: (lines: number) => {
        counts.skippedLines += lines
      },
      host: wanted,
      onLeftOut: (why: LeftOut, requests: number) => {
        counts.leftOut[why] += requests
      },
      onHost: (found: string) => {
        host = found
      },
      onShare: (given: number) => {
        share = smaller(share, given)
      },
    }
    // Our own files went through this once, and may have such parameters on purpose.
    const isOwn = format.name === ownFormat
    const cleanedOf = (request: TrafficRequest) => (isOwn ? request : withoutSecrets(request, pseudonyms))
    for await (const batch of format.read(chunks, observer)) {
      counts.requests += batch.length
      yield batch.map(request => withPseudonyms(cleanedOf(request), pseudonyms))
    }
  }

  // However it ends: what does not read to the end would leave the file open.
  const closing = async function* (): AsyncGenerator<TrafficRequest[], void, undefined> {
    try {
      yield* parsed()
    } finally {
      await bytes.chunks.return()
    }
  }

  return {
    batches: inOrder(
      closing(),
      late => {
        counts.late += late
      },
      window,
    ),
    summary: () => ({ file, format: format?.name ?? null, sha256: bytes.sha256(), ...counts, host, share }),
    bytesRead: bytes.read,
  }
}

const beginBytes = 64 * 1024

type Begin = {
  readonly begin: Buffer
  readonly chunks: AsyncGenerator<Buffer, void, undefined>
  /** Why nothing more can be unpacked. */
  readonly failure: string | undefined
}

/** The first bytes of a file, and all of its chunks. */
const beginOf = async (chunks: AsyncGenerator<Buffer, void, undefined>): Promise<Begin> => {
  const first: Buffer[] = []
  let length = 0
  let failure: UnpackingError | undefined
  while (length < beginBytes) {
    try {
      const { value, done } = await chunks.next()
      if (done) break
      first.push(value)
      length += value.length
    } catch (thrown) {
      if (!(thrown instanceof UnpackingError)) throw thrown
      failure = thrown
      break
    }
  }
  const all = async function* () {
    yield* first
    if (failure !== undefined) throw failure
    yield* chunks
  }
  return {
    begin: Buffer.concat(first).subarray(0, beginBytes),
    chunks: all(),
    failure: failure?.message,
  }
}
