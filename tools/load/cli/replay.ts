// `abohawa replay FILE --target URL`: sends recorded or generated traffic and reports latency by cache outcome. Exit code 99
// when a threshold fails or a body does not match the API schema.

import { collect, numberIn } from 'abohawa/command-line/quantities.ts'
import { type AddTopCommand, counted, type Terminal } from 'abohawa/command-line/terminal.ts'
import { UsageError } from 'abohawa/command-line/usage-error.ts'
import { forceOption, outputsOf, writeOutput } from 'abohawa/command-line/writable.ts'
import { quotedPath } from 'abohawa/common/outside-text.ts'
import { printDuration } from 'abohawa/config/units.ts'
import type { Pace } from '../replay/pace.ts'
import { checkRun } from '../traffic/longest-span.ts'
import { createProgress } from './progress.ts'
import { rateIn } from './quantities.ts'
import { createOpsReader } from './replay-ops.ts'
import {
  addSendOptions,
  connectionsIn,
  lengthIn,
  prepareSending,
  type ReplayOptions,
} from './replay-options.ts'
import { prepareOutput, thresholdFailed } from './replay-output.ts'
import { replayRates, usualThresholds } from './replay-rates.ts'
import { addReportCommand } from './replay-report.ts'
import { createRunProgress, remarksOn, resultText } from './replay-text.ts'

const sampledBodies = 20_000

/** One rate or several, ascending. */
const ratesIn = (given: string): ReadonlySet<number> =>
  new Set(
    given
      .split(',')
      .map(rateIn)
      .toSorted((a, b) => a - b),
  )

export const addCommand: AddTopCommand = (program, add, summary) => {
  const command = add<ReplayOptions>(program, 'replay', {
    summary,
    example:
      "replay samples/weekday.ndjson.gz --target http://127.0.0.1:8080 --keys issued.csv --speed 600 --threshold 'p99<50ms' --out report.html\n  npm run -s abohawa -- replay samples/weekday.ndjson.gz --target http://127.0.0.1:8080 --keys issued.csv --rate 500 --duration 30s --loop",
    setUp: command =>
      void addSendOptions(command)
        .option('--speed <times>', 'replay this many times as fast', numberIn(0.001, 1_000_000, 'decimal'))
        .option(
          '--rate <requests>',
          'send evenly: 100 a second, 90/m, or a run for each of 100,200,400',
          ratesIn,
        )
        .option(
          '--until-slower',
          `find the highest rate that holds the thresholds (default: ${usualThresholds.join(', ')})`,
        )
        .option('--as-fast-as <connections>', 'closed loop with this many connections', connectionsIn)
        .option('--loop', 'start again after the last request, until --duration or Ctrl-C')
        .option(
          '--duration <duration>',
          'end after this time, such as 10m (several rates: 10s each)',
          lengthIn,
        )
        .option(
          '--warm-up <duration>',
          "don't count requests due in this time at the start, such as 2s (several rates: 2s)",
          lengthIn,
        )
        .option('--out <file>', 'write a .html page, .json result or .hgrm percentiles (repeatable)', collect)
        .option('--check-bodies', 'check one response per path against the API schema')
        .option('--bodies <file>', 'write a digest of one response per path, for diff')
        .option('--requests <file>', 'write a JSON line for each request; with gzip if it ends in .gz')
        .addOption(forceOption())
        .option('--ops <url>', 'ops listener of the gateway, to report CPU, memory, provider and settings')
        .option('--ops-token-file <file>', 'file with ops.token (default: from the configuration)'),
    run: (terminal, options, ...files) => replay(terminal, options, files),
  })
  // An option after `report` belongs to `report`.
  command.enablePositionalOptions()
  addReportCommand(command, add)
}

/** @throws UsageError for options that contradict each other */
const paceOf = (options: ReplayOptions): Pace => {
  const { speed, rate: rates = [], untilSlower, asFastAs, loop = false, duration, warmUp = 0 } = options
  const [rate] = rates
  const given = {
    '--speed': speed,
    '--rate': rate,
    ...(rate === undefined && { '--until-slower': untilSlower }),
    '--as-fast-as': asFastAs,
  }
  const names = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : name))
  if (names.length > 1) throw new UsageError(`${names.join(' and ')} can't be combined`)
  return {
    mode: rate !== undefined ? 'rate' : asFastAs !== undefined ? 'closed' : 'recorded',
    speed: speed ?? 1,
    rate: rate ?? 0,
    loop,
    durationMs: duration,
    warmUpMs: warmUp,
  }
}

const replay = async (
  terminal: Terminal,
  options: ReplayOptions,
  files: readonly string[],
): Promise<number> => {
  const { out = [], checkBodies = false, bodies, requests, force = false } = options
  const isKept = checkBodies || bodies !== undefined
  const pace = paceOf(options)
  const rates = [...(options.rate ?? [100])]
  if (options.untilSlower || rates.length > 1) {
    return replayRates(terminal, options, files, rates)
  }
  if (requests === '-')
    throw new UsageError('--requests must be a file, because standard output has the report')
  const [digests] = outputsOf('--bodies', bodies)
  const write = await prepareOutput(terminal, {
    paths: out,
    forms: ['.html', '.json', '.hgrm'],
    others: [...outputsOf('--bodies', bodies), ...outputsOf('--requests', requests)],
    inputs: [...files, options.keys, options.key, options.ca, options.opsTokenFile],
    force,
  })
  const ops = createOpsReader(terminal, options)
  const { order, signal, checkTarget } = await prepareSending(terminal, files, options)
  const { arrivalsOf } = await import('../replay/pace.ts')
  const arrivals = arrivalsOf(order.schedule, pace)
  const lastsMs = arrivals.endsAt ?? pace.durationMs
  checkRun(lastsMs ?? 0)
  if (lastsMs !== undefined && pace.warmUpMs > 0 && pace.warmUpMs >= lastsMs)
    throw new UsageError(
      `--warm-up must be shorter than the run of ${printDuration(Math.floor(lastsMs))}, got ${printDuration(pace.warmUpMs)}`,
    )
  await checkTarget()

  const { runReplay } = await import('../replay/run.ts')
  const progress = createRunProgress(arrivals)
  const show = createProgress(terminal)
  const {
    result: measured,
    kept,
    logged,
  } = await runReplay(
    {
      ...order,
      pace,
      thresholds: options.threshold ?? [],
      keepBodies: isKept ? sampledBodies : 0,
      settings: (await ops?.settings()) ?? null,
      metrics: ops?.metrics,
      requests: requests === undefined ? undefined : { path: requests, force },
    },
    terminal.clock,
    (figures, seconds) => show(undefined, () => progress(figures, seconds)),
    signal,
  )
  terminal.progress('')
  const check = isKept ? await import('../replay/body-check.ts') : undefined
  const result = check && checkBodies ? { ...measured, bodies: check.checkBodies(kept) } : measured
  terminal.show(result, resultText(result))
  for (const remark of remarksOn(result)) terminal.remark(remark)
  const ranMs = Date.parse(result.endedAt) - Date.parse(result.startedAt)
  if (pace.durationMs !== undefined && !pace.loop && !result.interrupted && ranMs < 0.9 * pace.durationMs)
    terminal.remark(
      `All ${counted(order.schedule.count)} requests were sent in ${printDuration(ranMs)} of ${printDuration(pace.durationMs)}; --loop starts again after the last.`,
    )
  await write([result])
  if (check && digests) await writeOutput(digests, check.digestLines(kept), force)
  const { lost, fault } = logged
  if (fault !== undefined) terminal.remark(`--requests: ${fault}`)
  else if (lost > 0)
    terminal.remark(
      `${counted(lost)} requests are missing in ${quotedPath(requests ?? '')}, because the file was too slow: use another disk, or no .gz.`,
    )
  const isFailed = result.thresholds.some(({ passed }) => !passed) || (result.bodies?.faults.length ?? 0) > 0
  if (isFailed) return thresholdFailed
  const isWhole = !result.interrupted && !result.generator.limited && fault === undefined && lost === 0
  return isWhole ? 0 : 1
}
