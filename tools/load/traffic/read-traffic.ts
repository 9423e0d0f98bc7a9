// Reads traffic files of any format, plain or gzip, as one stream of requests in the order of arrival. Memory is bounded, faulty
// lines are reported, and no API key comes out. Can be read once.

import { createHash } from 'node:crypto'
import { InputError } from 'abohawa/common/errors.ts'
import { beginOf, nameOfFile, openBytes, standardInput, UnpackingError } from 'abohawa/common/file-bytes.ts'
import { defaultWindow, inOrder, merged } from './arrival-order.ts'
import { type Found, formatsWithHosts, type LeftOut, leftOut } from './format.ts'
import { type Format, formatNamed, formatOf, ownFormat } from './formats.ts'
import { createPseudonyms, type Pseudonyms, withoutSecrets, withPseudonyms } from './pseudonyms.ts'
import type { TrafficRequest } from './traffic-request.ts'

export type TrafficFault = { readonly file: string; readonly line: number; readonly reason: string }

export type ReadOptions = {
  readonly onFault?: (fault: TrafficFault) => void
  /** Of all files; detected if not given. */
  readonly format?: string | undefined
  /** The number of requests that are sorted at a time, in all files. */
  readonly window?: number | undefined
  readonly host?: string | undefined
}

type Counts = Found & {
  requests: number
  faultyLines: number
  /** Requests that came too late for the window. */
  late: number
}

type FileSummary = Readonly<Counts> & {
  readonly file: string
  /** Null until the beginning was read. */
  readonly format: string | null
  /** Of the unpacked text, as far as it was read. */
  readonly sha256: string
}

export type TrafficSummary = Omit<FileSummary, 'file' | 'format' | 'host'> & {
  readonly files: readonly FileSummary[]
}

/** @throws InputError for a file that can't be read or has an unknown format, also while reading */
export const readTraffic = (paths: readonly string[], options: ReadOptions = {}) => {
  if (paths.filter(path => path === standardInput).length > 1)
    throw new InputError('standard input (-) can be given only once')
  const given = options.format === undefined ? undefined : formatNamed(options.format)
  const pseudonyms = createPseudonyms()
  const window = Math.ceil((options.window ?? defaultWindow) / Math.max(1, paths.length))
  const files = paths.map(path => readFile(path, given, { ...options, window, pseudonyms }))
  return {
    batches: () => merged(files.map(file => file.batches)),
    summary: (): TrafficSummary => {
      const each = files.map(file => file.summary())
      const sum = (of: (file: FileSummary) => number) => each.reduce((total, file) => total + of(file), 0)
      const shares = each.flatMap(({ share }) => share ?? [])
      return {
        sha256: sha256Of(each.map(({ sha256 }) => sha256)),
        requests: sum(({ requests }) => requests),
        faultyLines: sum(({ faultyLines }) => faultyLines),
        skippedLines: sum(({ skippedLines }) => skippedLines),
        leftOut: countsOf(why => sum(file => file.leftOut[why])),
        late: sum(({ late }) => late),
        share: shares.length === 0 ? null : Math.min(...shares),
        files: each,
      }
    },
    /** Bytes read from disk. */
    bytesRead: () => files.reduce((total, file) => total + file.bytesRead(), 0),
  }
}

const countsOf = (count: (why: LeftOut) => number) =>
  Object.fromEntries(leftOut.map(why => [why, count(why)])) as Record<LeftOut, number>

/** Of several files, the hash of their hashes. */
const sha256Of = (all: readonly string[]): string =>
  all.length === 1 ? (all[0] as string) : createHash('sha256').update(all.join('\n')).digest('hex')

const beginBytes = 64 * 1024

const readFile = (
  path: string,
  given: Format | undefined,
  { onFault, window, pseudonyms, host }: ReadOptions & { window: number; pseudonyms: Pseudonyms },
) => {
  const file = nameOfFile(path)
  const bytes = openBytes(path)
  const counts: Counts = {
    requests: 0,
    faultyLines: 0,
    skippedLines: 0,
    leftOut: countsOf(() => 0),
    late: 0,
    host: null,
    share: null,
  }
  let format = given
  const reading = {
    nameOf: pseudonyms,
    host,
    found: counts,
    failure: undefined as string | undefined,
    onFault: (line: number, fault: unknown, of = '') => {
      if (!(fault instanceof InputError)) throw fault
      counts.faultyLines += 1
      onFault?.({ file, line, reason: of + fault.message })
    },
  }

  const unpacked = async function* (): AsyncGenerator<Buffer, void, undefined> {
    try {
      yield* bytes.chunks
    } catch (thrown) {
      if (!(thrown instanceof UnpackingError)) throw thrown
      reading.failure = thrown.message
    }
  }
  const parsed = async function* (): AsyncGenerator<TrafficRequest[], void, undefined> {
    try {
      const { begin, chunks } = await beginOf(unpacked(), beginBytes)
      if (begin.length === 0 && reading.failure === undefined) return
      format ??= formatIn(begin)
      if (host !== undefined && !formatsWithHosts.includes(format.name))
        throw new InputError(
          `--host can't be used with ${file}, because the format ${format.name} has no hosts`,
        )
      // Our own files were cleaned before, and may have such parameters on purpose.
      const isOwn = format.name === ownFormat
      for await (const batch of format.read(chunks, reading)) {
        counts.requests += batch.length
        yield batch.map(request =>
          withPseudonyms(isOwn ? request : withoutSecrets(request, pseudonyms), pseudonyms),
        )
      }
    } finally {
      // Closes the file if it was not read to the end.
      await bytes.chunks.return()
    }
  }
  const formatIn = (begin: Buffer): Format => {
    try {
      return formatOf(begin.subarray(0, beginBytes).toString())
    } catch (thrown) {
      throw thrown instanceof InputError
        ? new InputError(`${file}: ${reading.failure ?? thrown.message}`)
        : thrown
    }
  }
  const onLate = (late: number): void => {
    counts.late += late
  }

  return {
    batches: inOrder(parsed(), onLate, window),
    summary: (): FileSummary => ({ file, format: format?.name ?? null, sha256: bytes.sha256(), ...counts }),
    bytesRead: bytes.read,
  }
}
