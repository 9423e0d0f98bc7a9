// `abohawa replay FILE --target URL`: sends recorded or generated traffic again, at its own pace, faster, or evenly, and
// reports latency by what the cache did. Exit code 99 when a threshold fails or a body breaks the contract, after the report.

import { printDuration } from '../../config/units.ts'
import type { KeptBody } from '../../load/replay/sender.ts'
import type { ReplayResult } from '../../load/report/result.ts'
import { checkRun } from '../../load/traffic/longest-span.ts'
import { interruption } from '../interruption.ts'
import { collect, numberIn, rateIn } from '../quantities.ts'
import { type AddTopCommand, counted, createProgressLine, type Terminal, zoneOf } from '../terminal.ts'
import { UsageError } from '../usage-error.ts'
import { checkWritable, writeOutput } from '../writable.ts'
import { createOpsReader } from './replay-ops.ts'
import {
  addSendOptions,
  checkRequestLog,
  connectionsIn,
  lengthIn,
  type Output,
  outputsOf,
  paceOf,
  type ReplayOptions,
} from './replay-options.ts'
import { addReportCommand } from './replay-report.ts'
import { createProgress, logLacking, remarksOn, resultText } from './replay-text.ts'
import { prepareSending } from './replay-traffic.ts'

const thresholdFailed = 99
const sampledBodies = 20_000

export const addReplayCommands: AddTopCommand = (program, add, summary) => {
  const command = add<ReplayOptions>(program, 'replay', {
    summary,
    example:
      "replay samples/weekday.ndjson.gz --target http://127.0.0.1:8080 --keys issued.csv --speed 600 --threshold 'p99<50ms' --out report.html\n  npm run -s abohawa -- replay samples/weekday.ndjson.gz --target http://127.0.0.1:8080 --keys issued.csv --rate 500 --duration 30s --loop",
    setUp: command =>
      void addSendOptions(command, 'hits>90%, rate>490')
        .option(
          '--speed <times>',
          'how many times as fast as recorded',
          numberIn(0.001, 1_000_000, 'decimal'),
        )
        .option(
          '--rate <requests>',
          'evenly at this rate, a second or such as 90/m, instead of the recorded arrivals',
          rateIn,
        )
        .option(
          '--as-fast-as <connections>',
          'a closed loop: each connection sends its next request after the response',
          connectionsIn,
        )
        .option('--loop', 'begin again after the last request, until --duration or Ctrl-C')
        .option('--duration <duration>', 'end after this time, such as 10m', lengthIn)
        .option(
          '--warm-up <duration>',
          'requests due in this first time are sent and not counted, such as 2s',
          lengthIn,
        )
        .option(
          '--out <file>',
          'write a page (.html), the result (.json) or percentiles (.hgrm); may be given again',
          collect,
        )
        .option('--check-bodies', 'check a response of each path against the contract')
        .option('--bodies <file>', 'write a digest of a response of each path, for diff')
        .option(
          '--requests <file>',
          'write a line of JSON for each request: due, sent, end, status; with gzip where it ends in .gz',
        )
        .option(
          '--ops <url>',
          'the ops address of the gateway, to report its CPU, memory, provider and settings',
        )
        .option('--ops-token-file <file>', 'a file with ops.token; that of the configuration if not given'),
    run: (terminal, options, ...files) => replay(terminal, options, files),
  })
  // So that an option behind `report` is one of it and not of `replay`.
  command.enablePositionalOptions()
  addReportCommand(command, add)
}

const replay = async (
  terminal: Terminal,
  options: ReplayOptions,
  files: readonly string[],
): Promise<number> => {
  const { http, checkBodies, bodies, requests } = options
  const pace = paceOf(options)
  const outputs = outputsOf(options)
  const timeZone = outputs.some(({ form }) => form === 'html') ? zoneOf(terminal) : 'UTC'
  checkRequestLog(requests, files)
  const written = [...outputs.map(({ path }) => path), bodies, requests]
  await checkWritable(written.filter(path => path !== undefined))
  const ops = createOpsReader(terminal, options)
  const stopped = interruption('SIGHUP')
  let isStopped = false
  void stopped.then(() => {
    isStopped = true
  })
  const prepared = await prepareSending(terminal, files, options, () => isStopped)
  const { schedule, target } = prepared
  const { arrivalsOf, firstArrival } = await import('../../load/replay/pace.ts')
  const arrivals = arrivalsOf(schedule, pace)
  const dueBefore = (ms: number): number =>
    firstArrival(arrival => arrivals.due(arrival) >= ms, arrivals.total)
  const lastsMs = arrivals.endsAt ?? pace.durationMs
  checkRun(lastsMs ?? 0)
  if (lastsMs !== undefined && pace.warmUpMs > 0 && pace.warmUpMs >= lastsMs)
    throw new UsageError(
      `--warm-up is ${printDuration(pace.warmUpMs)}, but the last request is due after ${printDuration(Math.floor(lastsMs))}; allowed: less than that`,
    )
  const { checkReachable } = await import('../../load/replay/target.ts')
  await checkReachable(target, http)

  const { startReplay } = await import('../../load/replay/run.ts')
  const progress = createProgress({
    endsAtSeconds: arrivals.endsAt === undefined ? undefined : arrivals.endsAt / 1000,
    total:
      arrivals.total === undefined || pace.mode === 'closed'
        ? arrivals.total
        : arrivals.total - dueBefore(pace.warmUpMs),
    dueBefore: seconds => (pace.mode === 'closed' ? undefined : dueBefore(seconds * 1000)),
  })
  const show = createProgressLine(terminal)
  const { ended, stop } = await startReplay(
    {
      ...prepared,
      pace,
      keepBodies: checkBodies || bodies !== undefined ? sampledBodies : 0,
      command: commandText(files, options),
      settings: (await ops?.settings()) ?? null,
      metrics: ops?.metrics,
      requests,
    },
    terminal.clock,
    (figures, seconds) => show(progress(figures, seconds)),
  )
  void stopped.then(stop)
  const { result: measured, kept, logged } = await ended
  terminal.progress('')
  const result = checkBodies ? { ...measured, bodies: await checked(kept) } : measured
  terminal.show(result, resultText(result))
  for (const remark of remarksOn(result)) terminal.remark(remark)
  const ranMs = Date.parse(result.endedAt) - Date.parse(result.startedAt)
  if (pace.durationMs !== undefined && !pace.loop && !result.interrupted && ranMs < 0.9 * pace.durationMs)
    terminal.remark(
      `The files have no more than ${counted(schedule.count)} requests, which were sent in ${printDuration(ranMs)} of ${printDuration(pace.durationMs)}; --loop begins again after the last.`,
    )
  for (const { path, form } of outputs) await writeOutput(path, await textOf(result, form, timeZone))
  if (bodies !== undefined) {
    const { digestLines } = await import('../../load/replay/body-check.ts')
    await writeOutput(bodies, digestLines(kept))
  }
  const lacking = logLacking(logged, requests)
  if (lacking !== undefined) terminal.remark(lacking)
  const isFailed = result.thresholds.some(({ passed }) => !passed) || (result.bodies?.faults.length ?? 0) > 0
  if (isFailed) return thresholdFailed
  return result.interrupted || result.generator.limited || lacking !== undefined ? 1 : 0
}

/** The command line again, without what is only of this machine: for the report. */
const commandText = (files: readonly string[], options: ReplayOptions): string => {
  const { target, speed, rate, asFastAs, loop, duration, warmUp, http, workers, threshold = [] } = options
  return [
    'abohawa replay',
    ...files,
    `--target ${target}`,
    ...(speed === undefined ? [] : [`--speed ${speed}`]),
    ...(rate === undefined ? [] : [`--rate ${rate}`]),
    ...(asFastAs === undefined ? [] : [`--as-fast-as ${asFastAs}`]),
    ...(loop ? ['--loop'] : []),
    ...(duration === undefined ? [] : [`--duration ${printDuration(duration)}`]),
    ...(warmUp === undefined ? [] : [`--warm-up ${printDuration(warmUp)}`]),
    ...(http === '2' ? ['--http 2'] : []),
    ...(workers > 1 ? [`--workers ${workers}`] : []),
    ...threshold.map(({ text }) => `--threshold '${text}'`),
  ].join(' ')
}

const checked = async (kept: readonly KeptBody[]): Promise<ReplayResult['bodies']> => {
  const { checkBodies } = await import('../../load/replay/body-check.ts')
  return checkBodies(kept)
}

const textOf = async (result: ReplayResult, form: Output['form'], timeZone: string): Promise<string> => {
  if (form === 'json') return `${JSON.stringify(result)}\n`
  if (form === 'html') return (await import('../../load/report/run-page.ts')).reportPage([result], timeZone)
  return (await import('../../load/report/histogram.ts')).percentileDistribution(result.histogram)
}
