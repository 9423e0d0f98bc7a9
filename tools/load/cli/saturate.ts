// `abohawa saturate FILE --target URL`: sends traffic evenly at rising rates until a threshold breaks, and says how far that is
// from the traffic's own rate. Each rate is one replay. How a rate is chosen is in load/replay/saturation.ts.

import { numberIn, rateIn } from 'abohawa/command-line/quantities.ts'
import { tableOf } from 'abohawa/command-line/tables.ts'
import { type AddTopCommand, counted, percentText, type Terminal } from 'abohawa/command-line/terminal.ts'
import { UsageError } from 'abohawa/command-line/usage-error.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { printDuration } from 'abohawa/config/units.ts'
import type { Busiest, RateVerdict, Saturation } from '../replay/saturation.ts'
import { type Threshold, thresholdOf } from '../replay/thresholds.ts'
import { latencyText } from '../report/metrics.ts'
import type { ReplayResult } from '../report/result.ts'
import { answeredRate, errorsOf } from '../report/run-figures.ts'
import { addSendOptions, lengthIn, optionWith, prepareSending, type SendOptions } from './replay-options.ts'
import { thresholdFailed } from './replay-output.ts'
import { createProgress, figures, goodAnswers, rateText, remarksOn } from './replay-text.ts'

type SaturateOptions = SendOptions & {
  from: number
  most: number
  step: number
  warmUp: number
  atLeast?: number
}

const usualThresholds = ['p99<50ms', 'errors<0.1%']
const longestStepMs = 3_600_000
// So that a percentile of a step is of some requests.
const fewestRequests = 10

export const addCommand: AddTopCommand = (program, add, summary) =>
  add<SaturateOptions>(program, 'saturate', {
    summary,
    example:
      "saturate samples/weekday.ndjson.gz --target http://127.0.0.1:8080 --keys issued.csv --threshold 'p99<50ms'",
    setUp: command =>
      void addSendOptions(command, `hits>90%; usually ${usualThresholds.join(' and ')}`)
        .addOption(
          optionWith('--from <rate>', 'the first rate, in requests a second or such as 90/m', rateIn, 100),
        )
        .addOption(optionWith('--most <rate>', 'the highest rate that is tried', rateIn, 100_000))
        .addOption(
          optionWith('--step <duration>', 'how long each rate is sent, up to 1h', lengthIn, 10_000, '10s'),
        )
        .addOption(
          optionWith(
            '--warm-up <duration>',
            'requests due in this first time of a step are not counted',
            lengthIn,
            2_000,
            '2s',
          ),
        )
        .option(
          '--at-least <times>',
          "end with 99 where less than this multiple of the traffic's busiest minute was held",
          numberIn(0.001, 999_999, 'decimal', 'a number above 0, such as 2.5'),
        ),
    run: (terminal, options, ...files) => saturate(terminal, options, files),
  })

const saturate = async (
  terminal: Terminal,
  options: SaturateOptions,
  files: readonly string[],
): Promise<number> => {
  const { from, most, step, warmUp, atLeast, threshold = usualThresholds.map(thresholdOf) } = options
  const least = leastRate(options, threshold)
  const { order, signal, checkTarget } = await prepareSending(terminal, files, options)
  const { busiestMinute, searchRate } = await import('../replay/saturation.ts')
  const busiest = busiestMinute(order.schedule.at)
  if (atLeast !== undefined && !busiest)
    throw new InputError(
      'the traffic is of one instant and has no rate; allowed: --at-least with one of longer',
    )
  await checkTarget()
  const { startReplay } = await import('../replay/run.ts')

  const steps: RateStep[] = []
  let lastHeld: ReplayResult | undefined
  let stop = (): void => {}
  signal.addEventListener('abort', () => stop())
  const tryRate = async (rate: number): Promise<RateVerdict> => {
    if (signal.aborted) return 'interrupted'
    const progress = createProgress({ endsAt: step, total: undefined })
    const run = await startReplay(
      {
        ...order,
        thresholds: threshold,
        pace: { mode: 'rate', speed: 1, rate, loop: true, durationMs: step, warmUpMs: warmUp },
        keepBodies: 0,
        settings: null,
      },
      terminal.clock,
      (live, seconds) => terminal.progress(`${rateText(rate)}: ${progress(live, seconds)}`),
    )
    stop = run.stop
    // It may have come while the run was started.
    if (signal.aborted) stop()
    const { result } = await run.ended
    const verdict = verdictOn(result)
    steps.push({ rate, verdict, result })
    terminal.progress('')
    terminal.remark(sentenceOf(steps.at(-1) as RateStep))
    if (verdict !== 'held') return verdict
    checkAnswers(result)
    lastHeld = result
    return verdict
  }
  const found = await searchRate({ first: from, least, most }, tryRate)
  const report = {
    found,
    steps,
    busiest,
    target: order.target.name,
    thresholds: threshold.map(({ text }) => text),
  }
  const { value, text } = saturationText(report, order.traffic)
  terminal.show(value, text)
  for (const remark of lastHeld ? remarksOn(lastHeld) : []) terminal.remark(remark)
  if (found.ended === 'interrupted') return 1
  if (found.ended === 'least') return thresholdFailed
  const isEnough = atLeast === undefined || (value.times ?? 0) >= atLeast
  if (isEnough && found.held !== undefined) return 0
  if (found.ended === 'threshold') return thresholdFailed
  terminal.remark('Not decided: the search ended before the target did.')
  return 1
}

/** The lowest rate with enough requests in a step. @throws UsageError for options that make no sense together */
const leastRate = (
  { from, most, step, warmUp }: SaturateOptions,
  thresholds: readonly Threshold[],
): number => {
  const ofRate = thresholds.find(({ isOfRate }) => isOfRate)
  if (ofRate)
    throw new UsageError(
      `--threshold is ${ofRate.text}; allowed: those of latencies, shares and counts, since the rate is what is looked for`,
    )
  if (step > longestStepMs) throw new UsageError(`--step is ${printDuration(step)}; allowed: at most 1h`)
  if (warmUp >= step)
    throw new UsageError(
      `--warm-up is ${printDuration(warmUp)} of a --step of ${printDuration(step)}; allowed: less than that`,
    )
  const least = fewestRequests / ((step - warmUp) / 1000)
  if (from < least)
    throw new UsageError(
      `--from is ${rateText(from)}, less than ${fewestRequests} requests a step; allowed: from ${rateText(least)}, or a longer --step`,
    )
  if (most < from)
    throw new UsageError(`--most is ${rateText(most)}, less than --from; allowed: from ${rateText(from)}`)
  return least
}

const verdictOn = ({ interrupted, thresholds, generator }: ReplayResult): RateVerdict => {
  if (interrupted) return 'interrupted'
  if (generator.limited) return 'generator'
  if (thresholds.every(({ passed }) => passed)) return 'held'
  return generator.saturated ? 'generator' : 'broken'
}

/** A target that refuses a request does little for it. @throws InputError */
const checkAnswers = (result: ReplayResult): void => {
  const { totals, statuses } = result
  const good = goodAnswers(result)
  if (totals.answered > 0 && good * 2 >= totals.answered) return
  const others = Object.entries(statuses).map(([status, count]) => `${status}: ${counted(count)}`)
  throw new InputError(
    `${counted(good)} of ${counted(totals.answered)} answers were 2xx or 304 (${others.join(', ')}); allowed: a target, keys and quotas for this traffic`,
  )
}

type RateStep = { readonly rate: number; readonly verdict: RateVerdict; readonly result: ReplayResult }

type Report = {
  readonly found: Saturation
  readonly steps: readonly RateStep[]
  readonly busiest: Busiest | undefined
  readonly target: string
  readonly thresholds: readonly string[]
}

const brokenIn = ({ thresholds }: ReplayResult): string =>
  thresholds
    .filter(({ passed }) => !passed)
    .map(({ threshold, measured }) => `${threshold}: ${measured}`)
    .join(', ')

const sentenceOf = ({ rate, verdict, result }: RateStep): string => {
  if (verdict === 'interrupted') return `${rateText(rate)}: interrupted`
  if (result.generator.limited) return `${rateText(rate)}: not decided, ${result.generator.reason}`
  if (verdict === 'held') return `${rateText(rate)}: held, p99 ${latencyText(result.latency.p99, figures)}`
  return `${rateText(rate)}: not held, ${brokenIn(result)}${verdict === 'generator' ? `; ${result.generator.reason}` : ''}`
}

const saturationText = (report: Report, traffic: ReplayResult['traffic']) => {
  const { found, steps, busiest, target, thresholds } = report
  const times = found.held === undefined || !busiest ? null : found.held / busiest.rate
  const sentence = `${limitOf(report)}; ${ownRateOf(busiest, times, found.ended)}.`
  const rows = steps.map(({ rate, verdict, result }) => [
    rateText(rate),
    rateText(answeredRate(result.totals)),
    ...[result.latency.p50, result.latency.p99].map(ms =>
      result.latency.count === 0 ? '-' : latencyText(ms, figures),
    ),
    percentText(errorsOf(result) / Math.max(1, result.totals.due)),
    result.generator.limited ? 'not decided' : (verdict !== 'interrupted' && brokenIn(result)) || verdict,
  ])
  const value = {
    format: 'abohawa-saturation/1',
    sentence,
    ended: found.ended,
    heldRate: found.held ?? null,
    brokenRate: found.broken ?? null,
    busiestMinute: busiest ?? null,
    times,
    target,
    thresholds,
    traffic,
    steps: steps.map(({ rate, verdict, result }) => {
      const { totals, statuses, outcomes, latency, thresholds: checked, generator } = result
      return { rate, verdict, totals, statuses, outcomes, latency, thresholds: checked, generator }
    }),
  }
  const heads = ['rate', 'answered', 'p50', 'p99', 'errors', '']
  return { value, text: `${tableOf(heads, rows, [0, 1, 2, 3, 4])}\n\n${sentence}` }
}

const limitOf = ({ found: { held, broken, ended }, steps, target, thresholds }: Report): string => {
  const bounds = thresholds.join(', ')
  const last = steps.at(-1)
  if (ended === 'least')
    return `${target} did not hold ${rateText(last?.rate ?? 0)} either (${last ? brokenIn(last.result) : bounds})`
  const known = held === undefined ? 'held no rate that was tried' : `held ${rateText(held)} (${bounds})`
  if (ended === 'interrupted') return `Interrupted: ${target} ${known} until then`
  if (ended === 'generator')
    return held === undefined
      ? `Of ${target} nothing is known, since ${last?.result.generator.reason}`
      : `${target} ${known}, and beyond it ${last?.result.generator.reason}`
  if (ended === 'most') return `${target} ${known}, the highest rate that was tried`
  const broke = steps.findLast(({ rate, verdict }) => rate === broken && verdict === 'broken')
  return `${target} ${known} and not ${rateText(broken ?? 0)} (${broke ? brokenIn(broke.result) : bounds})`
}

const ownRateOf = (
  busiest: Busiest | undefined,
  times: number | null,
  ended: Saturation['ended'],
): string => {
  if (!busiest) return 'the traffic is of one instant and has no rate'
  const own =
    busiest.seconds === 60
      ? `the traffic's busiest minute has ${rateText(busiest.rate)}`
      : `the traffic, of ${Number(busiest.seconds.toPrecision(3))} s, has ${rateText(busiest.rate)}`
  if (times === null) return own
  const text = times >= 100 ? counted(Math.round(times)) : String(Number(times.toPrecision(2)))
  return `${own}: ${text} times${ended === 'threshold' ? '' : ' or more'}`
}
