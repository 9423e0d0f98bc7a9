// Reads traffic files for commands, and reports it: faulty lines, progress, what was left out, gaps.

import { stat } from 'node:fs/promises'
import { stoppedBySignal } from 'abohawa/command-line/interruption.ts'
import { counted, numbered, type Terminal } from 'abohawa/command-line/terminal.ts'
import { isoOf } from 'abohawa/common/calendar.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { nameOfFile, standardInput } from 'abohawa/common/file-bytes.ts'
import { printDuration } from 'abohawa/config/units.ts'
import { type GapsFound, reportedGapMs } from '../traffic/gaps.ts'
import { readTraffic, type TrafficSummary } from '../traffic/read-traffic.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'
import { createProgress } from './progress.ts'

export type ReadOptions = {
  readonly format?: string
  readonly host?: string
  readonly window?: number
  readonly strict?: boolean
}

/** Reads files until the command is interrupted, and shows faulty lines and progress. */
export const readFiles = async (
  terminal: Terminal,
  files: readonly string[],
  { format, host, window, strict }: ReadOptions,
  signal: AbortSignal = stoppedBySignal().signal,
) => {
  const faults = createFaults(terminal, strict)
  const traffic = readTraffic(files, { format, host, window, onFault: faults.add })
  const size = await sizeOfFiles(files)
  const show = createProgress(terminal)
  /** Ends the reading. @throws InputError where all files were read and have no request */
  const end = (): TrafficSummary => {
    terminal.progress('')
    faults.end()
    const summary = traffic.summary()
    if (summary.requests === 0 && !signal.aborted)
      throw new InputError(`there are no requests in ${files.map(nameOfFile).join(', ')}`)
    return summary
  }
  return {
    isInterrupted: () => signal.aborted,
    async *batches(): AsyncGenerator<TrafficRequest[], void, undefined> {
      let requests = 0
      for await (const batch of traffic.batches()) {
        if (signal.aborted) return
        requests += batch.length
        const share = size ? Math.min(1, traffic.bytesRead() / size) : undefined
        const how = share === undefined ? '' : `, ${Math.floor(share * 100)} % read`
        show(share, () => `${counted(requests)} requests${how}`)
        yield batch
      }
    },
    end,
    /** The same for a command that needs all of them. @throws InputError where it was interrupted, too */
    endWhole: (): TrafficSummary => {
      const summary = end()
      if (signal.aborted) throw new InputError('interrupted while the traffic was read')
      remarkLeftOut(terminal, summary)
      return summary
    },
  }
}

/** Of all files as they are on disk; undefined where one has no size. */
const sizeOfFiles = async (files: readonly string[]): Promise<number | undefined> => {
  let size = 0
  for (const file of files) {
    const found = file === standardInput ? undefined : await stat(file).catch(() => undefined)
    if (!found?.isFile()) return undefined
    size += found.size
  }
  return size
}

const shownFaults = 10

/** Shows the first faulty lines in full, and counts the others. */
const createFaults = (terminal: Terminal, isStrict = false) => {
  let count = 0
  return {
    add: ({ file, line, reason }: { file: string; line: number; reason: string }): void => {
      const sentence = `${file}:${line}: ${reason}`
      if (isStrict) throw new InputError(sentence)
      count += 1
      if (count > shownFaults) return
      terminal.progress('')
      terminal.remark(sentence)
    },
    end: (): void => {
      if (count > shownFaults) terminal.remark(`and ${counted(count - shownFaults)} more faulty lines.`)
    },
  }
}

/** Requests of a HAR that no server received, or that went to other hosts; undefined without any. */
const leftOutText = ({ leftOut, files }: TrafficSummary): string | undefined => {
  const { cached, blocked, otherHosts } = leftOut
  const hosts = files.flatMap(({ host }) => host ?? []).join(' and ')
  const parts = [
    cached > 0 ? `${counted(cached)} from the browser's cache` : '',
    blocked > 0 ? `${counted(blocked)} without a response` : '',
    otherHosts > 0
      ? `${counted(otherHosts)} to other hosts${hosts === '' ? '' : ` than ${hosts}`} (--host chooses)`
      : '',
  ]
  return parts.filter(part => part !== '').join(', ') || undefined
}

export const remarkLeftOut = (terminal: Pick<Terminal, 'remark'>, summary: TrafficSummary): void => {
  const text = leftOutText(summary)
  if (text !== undefined) terminal.remark(`Left out: ${text}.`)
}

/** Facts about the files besides their requests. @param longestGap the maximum to which gaps were shortened, in ms */
export const factsOfReading = (
  summary: TrafficSummary,
  { count, cutMs, longest: [longest] }: GapsFound,
  longestGap?: number,
): Readonly<Record<string, string | undefined>> => {
  const { faultyLines, skippedLines, late, share } = summary
  const lines = (count: number, what: string) =>
    count > 0 ? `${numbered(count, 'line', 'lines')}${what}` : undefined
  return {
    faulty: lines(faultyLines, ', left out'),
    skipped: lines(skippedLines, ' without a request'),
    'left out': leftOutText(summary),
    order:
      late > 0
        ? `${counted(late)} requests were too far apart for --window and are out of order; \`LC_ALL=C sort\` sorts the lines`
        : undefined,
    gaps:
      longest &&
      `${counted(count)} longer than ${printDuration(longestGap ?? reportedGapMs)}, the longest ${spanText(longest.ms)} from ${isoOf(longest.from)}; ${longestGap === undefined ? 'import --longest-gap shortens gaps' : `shortened by ${spanText(cutMs)}`}`,
    share:
      share === null
        ? undefined
        : `the log has only ${share} of the requests (log.access), so a cache hits less often than it did`,
  }
}

export const formatsOf = ({ files }: TrafficSummary): string =>
  [...new Set(files.map(({ format }) => format ?? 'empty'))].join(', ')

export const jsonOfGaps = ({ count, longest }: GapsFound) => ({
  count,
  longest: longest.map(({ from, ms }) => ({ from: isoOf(from), seconds: ms / 1_000 })),
})

/** A span in up to two units, such as `23 h 12 m`. */
export const spanText = (ms: number): string => {
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return ms < 10_000 ? `${ms / 1_000} s` : `${seconds} s`
  if (seconds < 3_600) return twoUnits(seconds, 60, 'm', 's')
  const minutes = Math.round(seconds / 60)
  return minutes < 48 * 60
    ? twoUnits(minutes, 60, 'h', 'm')
    : twoUnits(Math.round(minutes / 60), 24, 'd', 'h')
}

const twoUnits = (value: number, factor: number, large: string, small: string): string =>
  `${Math.floor(value / factor)} ${large}${value % factor === 0 ? '' : ` ${value % factor} ${small}`}`
