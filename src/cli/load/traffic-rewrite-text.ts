// The summary of a command that wrote a traffic file, as facts and as JSON.

import { isoOf } from '../../common/calendar.ts'
import { jsonText, printable } from '../../common/outside-text.ts'
import { printDuration } from '../../config/units.ts'
import { standardOutput } from '../../load/traffic/file-bytes.ts'
import { type Gaps, reportedGapMs } from '../../load/traffic/gaps.ts'
import type { TrafficSummary } from '../../load/traffic/read-traffic.ts'
import { counted, factsText, type Terminal } from '../terminal.ts'
import { leftOutText } from './traffic-reading.ts'

type Report = {
  readonly out: string
  readonly summary: TrafficSummary
  readonly gaps: ReturnType<Gaps['found']>
  /** To which gaps were shortened. */
  readonly longestGap: number | undefined
  /** That were written. */
  readonly requests: number
  readonly first: number | undefined
  readonly last: number
}

/** Shows what was read and written; on standard error where standard output has the traffic. */
export const reportRewrite = (terminal: Terminal, given: Report): void => {
  const { out, summary, gaps, requests, first, last } = given
  const span = first === undefined ? 0 : last - first
  const { requests: read, faultyLines, skippedLines, leftOut, late, share, files } = summary
  const shown = {
    out,
    requests,
    from: first === undefined ? null : isoOf(first),
    spanSeconds: span / 1_000,
    ...{ read, faultyLines, skippedLines, leftOut, late, share },
    gaps: {
      count: gaps.count,
      cutSeconds: gaps.cutMs / 1_000,
      longest: gaps.longest.map(({ from, ms }) => ({ from: isoOf(from), seconds: ms / 1_000 })),
    },
    files,
  }
  const text = reportText(given, span)
  if (out !== standardOutput) terminal.show(shown, text)
  else if (terminal.json) process.stderr.write(`${jsonText(shown)}\n`)
  else for (const line of text.split('\n')) terminal.remark(line)
}

const reportText = ({ out, summary, gaps, longestGap, requests, first }: Report, span: number): string => {
  const { count, cutMs } = gaps
  const [longest] = gaps.longest
  const facts = factsText([
    ['read', readText(summary)],
    ['from', first === undefined ? undefined : `${isoOf(first)}, for ${spanText(span)}`],
    ['faulty', summary.faultyLines > 0 ? `${linesText(summary.faultyLines)}, left out` : undefined],
    [
      'skipped',
      summary.skippedLines > 0 ? `${linesText(summary.skippedLines)} without a request` : undefined,
    ],
    ['left out', leftOutText(summary)],
    [
      'order',
      summary.late > 0
        ? `${counted(summary.late)} requests were too far out of place for --window, and stand out of order: \`LC_ALL=C sort\` puts the lines in order`
        : undefined,
    ],
    [
      'gaps',
      longest &&
        `${counted(count)} longer than ${printDuration(longestGap ?? reportedGapMs)}, the longest ${spanText(longest.ms)} from ${isoOf(longest.from)}${longestGap === undefined ? '; --longest-gap shortens them' : `; ${spanText(cutMs)} cut`}`,
    ],
    [
      'share',
      summary.share === null
        ? undefined
        : `the log holds ${summary.share} of the requests (log.accessShare), chosen one by one: a cache hits less often than it did`,
    ],
  ])
  const where = out === standardOutput ? 'Standard output' : printable(out)
  return `${where} has ${counted(requests)} requests.\n${facts}`
}

const readText = ({ requests, files }: TrafficSummary): string => {
  const formats = [...new Set(files.map(({ format }) => format ?? 'empty'))].join(', ')
  return `${counted(requests)} requests of ${counted(files.length)} file${files.length === 1 ? '' : 's'} (${formats})`
}

const linesText = (count: number): string => `${counted(count)} line${count === 1 ? '' : 's'}`

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
