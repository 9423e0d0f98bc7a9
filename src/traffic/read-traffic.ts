// Reads traffic files as one stream of requests in the order of arrival:
//
//   const traffic = readTraffic(['monday.ndjson.gz', 'gateway-2.log'], { onFault })
//   for await (const request of traffic) …          // or, faster: for await (const requests of traffic.batches()) …
//   traffic.summary()                               // sha256, counts; of what was read so far
//
// Files are in any of the formats, plain or gzip, `-` is standard input; memory is bounded, faulty lines are reported and the
// rest goes on. No API key comes out. What is late stands out of order unless `onLate` takes it. May be read once.

import { createHash } from 'node:crypto'
import { InputError } from '../errors.ts'
import { defaultWindow, inOrder, merged } from './arrival-order.ts'
import { nameOfFile, openBytes, standardInput } from './file-bytes.ts'
import { type Format, formatNamed, formatOf } from './formats.ts'
import { createPseudonyms, type Pseudonyms, withPseudonyms } from './pseudonyms.ts'
import type { TrafficRequest } from './traffic-request.ts'

export type TrafficFault = { readonly file: string; readonly line: number; readonly reason: string }

export type ReadOptions = {
  /** For each faulty line; the others go on. */
  readonly onFault?: (fault: TrafficFault) => void
  /** Of all files; found by their content if not given. */
  readonly format?: string
  /** How many requests are held back to be sorted. */
  readonly window?: number
  /** Takes requests further out of place than the window; without it they come where they stand. */
  readonly onLate?: (request: TrafficRequest) => void
  readonly pseudonyms?: Pseudonyms
}

export type FileSummary = {
  readonly file: string
  /** Null while its beginning has not been read. */
  readonly format: string | null
  /** Of its text, unpacked, as far as it was read. */
  readonly sha256: string
  readonly requests: number
  readonly faultyLines: number
  /** Right lines without a request. */
  readonly skippedLines: number
  /** Requests that were further out of place than the window. */
  readonly late: number
}

export type TrafficSummary = Omit<FileSummary, 'file' | 'format'> & { readonly files: readonly FileSummary[] }

export type Traffic = AsyncIterable<TrafficRequest> & {
  /** The same requests, many at a time. */
  batches(): AsyncGenerator<TrafficRequest[], void, undefined>
  summary(): TrafficSummary
}

/** @throws InputError, also while it is read: a file that can't be read or whose format is unknown */
export const readTraffic = (paths: readonly string[], options: ReadOptions = {}): Traffic => {
  if (paths.filter(path => path === standardInput).length > 1)
    throw new InputError('standard input (-) is given twice; allowed: once')
  const given = options.format === undefined ? undefined : formatNamed(options.format)
  const pseudonyms = options.pseudonyms ?? createPseudonyms()
  const files = paths.map(path => readFile(path, given, { ...options, pseudonyms }))
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
        late: sum(({ late }) => late),
        files: each,
      }
    },
  }
}

/** Of one file its own; of several that of theirs, one a line. */
const sha256Of = (all: readonly string[]): string =>
  all.length === 1 ? (all[0] as string) : createHash('sha256').update(all.join('\n')).digest('hex')

type ReadFile = {
  readonly batches: AsyncGenerator<TrafficRequest[], void, undefined>
  summary(): FileSummary
}

const readFile = (
  path: string,
  given: Format | undefined,
  { onFault, onLate, window = defaultWindow, pseudonyms }: ReadOptions & { pseudonyms: Pseudonyms },
): ReadFile => {
  const file = nameOfFile(path)
  const bytes = openBytes(path)
  const counts = { requests: 0, faultyLines: 0, skippedLines: 0, late: 0 }
  let format = given

  const parsed = async function* (): AsyncGenerator<TrafficRequest[], void, undefined> {
    const { begin, pieces } = await beginOf(bytes.pieces)
    if (begin.length === 0) return
    try {
      format ??= formatOf(begin.toString().replace(/^\ufeff/, ''))
    } catch (thrown) {
      throw thrown instanceof InputError ? new InputError(`${file}: ${thrown.message}`) : thrown
    }
    const observer = {
      onFault: (line: number, reason: string) => {
        counts.faultyLines += 1
        onFault?.({ file, line, reason })
      },
      onSkipped: (lines: number) => {
        counts.skippedLines += lines
      },
    }
    for await (const batch of format.read(pieces, observer)) {
      counts.requests += batch.length
      yield batch.map(request => withPseudonyms(request, pseudonyms))
    }
  }

  // What is late and taken by nobody goes out with the next batch.
  let waiting: TrafficRequest[] = []
  const late = (request: TrafficRequest): void => {
    counts.late += 1
    if (onLate) onLate(request)
    else waiting.push(request)
  }
  const ordered = async function* (): AsyncGenerator<TrafficRequest[], void, undefined> {
    for await (const batch of inOrder(parsed(), late, window)) {
      const all = waiting.length === 0 ? batch : [...waiting, ...batch]
      waiting = []
      yield all
    }
    if (waiting.length > 0) yield waiting
  }

  return {
    batches: ordered(),
    summary: () => ({ file, format: format?.name ?? null, sha256: bytes.sha256(), ...counts }),
  }
}

const beginBytes = 64 * 1024

/** The first bytes of a file, and all of its pieces. */
const beginOf = async (
  pieces: AsyncGenerator<Buffer, void, undefined>,
): Promise<{ begin: Buffer; pieces: AsyncGenerator<Buffer, void, undefined> }> => {
  const first: Buffer[] = []
  let length = 0
  let failure: unknown
  while (length < beginBytes) {
    try {
      const { value, done } = await pieces.next()
      if (done) break
      first.push(value)
      length += value.length
    } catch (thrown) {
      if (length === 0) throw thrown
      failure = thrown
      break
    }
  }
  const all = async function* () {
    yield* first
    if (failure !== undefined) throw failure
    yield* pieces
  }
  return { begin: Buffer.concat(first).subarray(0, beginBytes), pieces: all() }
}
