// `abohawa whatif`: what other settings would do to recorded or generated traffic, without a gateway or a provider.

import { availableParallelism } from 'node:os'
import { interruption } from 'abohawa/command-line/interruption.ts'
import { durationIn, numberIn } from 'abohawa/command-line/quantities.ts'
import {
  type AddTopCommand,
  counted,
  numbered,
  type Terminal,
  zoneOf,
} from 'abohawa/command-line/terminal.ts'
import { UsageError } from 'abohawa/command-line/usage-error.ts'
import { checkOutputs, forceOption, outputsOf, writeOutput } from 'abohawa/command-line/writable.ts'
import { isoOf } from 'abohawa/common/calendar.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { quotedPath } from 'abohawa/common/outside-text.ts'
import { version } from 'abohawa/common/version.ts'
import { printDuration } from 'abohawa/config/units.ts'
import type { GivenSettings, SettingCase } from '../setting-grid.ts'
import { checkSpan } from '../traffic/longest-span.ts'
import { leftOutText } from '../traffic/recorded-admission.ts'
import type { CaseFigures } from '../what-if/counters.ts'
import { runCases } from '../what-if/run-cases.ts'
import type { SimulateOptions } from '../what-if/simulate.ts'
import { readSimulatedTraffic, type SimulatedTraffic } from '../what-if/simulated-traffic.ts'
import { whatIfResultOf } from '../what-if/what-if.ts'
import { whatIfPage } from '../what-if/what-if-page.ts'
import { createProgress } from './progress.ts'
import { addSettingOptions, casesIn } from './setting-cases.ts'
import { whatIfText } from './settings-text.ts'
import { type ReadOptions, readFiles } from './traffic-reading.ts'

type Options = GivenSettings &
  Pick<ReadOptions, 'format' | 'host'> & {
    instances: number
    warmUp: number
    warm?: boolean
    latency: number
    threads?: number
    out?: string
    force?: boolean
  }

// The help shows the default as 0.
const duration = (text: string): number => (text === '0' ? 0 : durationIn(text))

export const addCommand: AddTopCommand = (program, add, summary) =>
  add<Options>(program, 'whatif', {
    summary,
    example:
      'whatif samples/weekday.ndjson.gz --set cache.freshness=age,run --set cache.cellDegrees=0.05,0.1,0.2',
    setUp: command =>
      void addSettingOptions(command)
        .option('--instances <number>', 'number of gateways that share store and traffic', numberIn(1, 64), 1)
        .option(
          '--warm-up <duration>',
          "don't count requests in this time at the start, such as 1h; the cache starts empty",
          duration,
          0,
        )
        .option('--warm', 'run all of the traffic once before counting')
        .option('--latency <duration>', 'response time of the provider, such as 300ms', duration, 0)
        .option('--threads <number>', 'settings at the same time (default: one per core)', numberIn(1, 256))
        .option('--out <page.html>', 'write a page with charts')
        .addOption(forceOption()),
    run: async (terminal, given, ...files) => {
      const { out, force = false } = given
      if (out !== undefined && !out.endsWith('.html'))
        throw new UsageError(`--out must end in .html, got ${quotedPath(out)}`)
      const cases = await casesIn(given, terminal)
      const [page] = outputsOf('--out', out)
      await checkOutputs(terminal, outputsOf('--out', out), { inputs: files, force })
      const options: SimulateOptions = {
        instances: given.instances,
        warmUpMs: given.warmUp,
        warm: given.warm === true,
        latencyMs: given.latency,
      }
      const { trace, traffic } = await readAll(terminal, files, given)
      if (options.warmUpMs >= traffic.spanSeconds * 1000 && options.warmUpMs > 0)
        throw new UsageError(
          `--warm-up must be shorter than the traffic (${printDuration(Math.round(traffic.spanSeconds) * 1000)}), got ${printDuration(given.warmUp)}`,
        )
      const figures = await tryAll(terminal, cases, trace, options, given.threads)
      checkWeather(figures, trace)
      const { sources } = terminal
      const result = whatIfResultOf(cases, figures, { version, traffic, sources, options })
      terminal.show(result, whatIfText(result))
      if (page && result.cases.length > 0) {
        await writeOutput(page, whatIfPage(result, zoneOf(terminal)), force)
        if (!terminal.json) terminal.remark(`The page is in ${out}.`)
      }
      return result.unfinished.length > 0 ? 1 : 0
    },
  })

const readAll = async (terminal: Terminal, paths: readonly string[], options: ReadOptions) => {
  const reading = await readFiles(terminal, paths, options)
  const trace = await readSimulatedTraffic(reading.batches())
  const { files, sha256, requests, faultyLines } = reading.endWhole()
  const [from = 0, to = 0] = [trace.at[0], trace.at.at(-1)]
  checkSpan(from, to)
  return {
    trace,
    traffic: {
      files: files.map(({ file }) => file),
      sha256,
      requests,
      faultyLines,
      leftOut: trace.leftOut,
      from: isoOf(from),
      spanSeconds: (to - from) / 1000,
    },
  }
}

/** @throws InputError where no request was for weather, so that the figures say nothing about settings */
const checkWeather = (
  figures: readonly (CaseFigures | undefined)[],
  { at, leftOut }: Pick<SimulatedTraffic, 'at' | 'leftOut'>,
): void => {
  const finished = figures.filter(each => each !== undefined)
  if (finished.length === 0 || finished.some(({ weather }) => weather > 0)) return
  const reasons = leftOutText(leftOut, counted)
  throw new InputError(
    `none of the ${counted(at.length)} requests is for weather that a cache could hold${reasons === undefined ? '' : `: ${reasons}`}`,
  )
}

const progressEveryMs = 300

const tryAll = async (
  terminal: Terminal,
  cases: readonly SettingCase[],
  trace: SimulatedTraffic,
  options: SimulateOptions,
  threads = availableParallelism(),
): ReturnType<typeof runCases>['figures'] => {
  // Before the first thread starts, because a signal may come at any time.
  const interrupted = interruption()
  const run = runCases(
    cases.map(({ config }) => config),
    trace,
    options,
    threads,
  )
  void interrupted.then(run.stop)
  const show = createProgress(terminal)
  const settings = numbered(cases.length, 'setting', 'settings')
  const timer = setInterval(() => {
    const share = run.progress()
    show(share, () => `${settings}: ${(100 * share).toFixed(0)} %`)
  }, progressEveryMs)
  try {
    return await run.figures
  } finally {
    clearInterval(timer)
    terminal.progress('')
  }
}
