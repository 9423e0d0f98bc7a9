// The words of `abohawa saturate`: a line for each rate, and the sentence on how far the target is from the traffic's own rate.

import type { Busiest, RateVerdict, Saturation } from '../../load/replay/saturation.ts'
import type { ReplayResult } from '../../load/report/result.ts'
import { errorsOf } from '../../load/report/run-figures.ts'
import { counted, percentText, tableOf } from '../terminal.ts'
import { msText, rateText } from './replay-text.ts'

/** One rate that was tried. */
export type RateStep = { readonly rate: number; readonly verdict: RateVerdict; readonly result: ReplayResult }

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

/** The outcome of one rate. */
export const sentenceOf = ({ rate, verdict, result }: RateStep): string => {
  if (verdict === 'interrupted') return `${rateText(rate)}: interrupted`
  if (result.generator.limited) return `${rateText(rate)}: not decided, ${result.generator.reason}`
  if (verdict === 'held') return `${rateText(rate)}: held, p99 ${msText(result.latency.p99)}`
  return `${rateText(rate)}: not held, ${brokenIn(result)}${verdict === 'generator' ? `; ${result.generator.reason}` : ''}`
}

/** The result as JSON and as text, with the same sentence. */
export const saturationText = (report: Report, traffic: ReplayResult['traffic']) => {
  const { found, steps, busiest, target, thresholds } = report
  const times = found.held === undefined || !busiest ? null : found.held / busiest.rate
  const sentence = `${limitOf(report)}; ${ownRateOf(busiest, times, found.ended)}.`
  const table = tableOf(
    ['rate', 'answered', 'p50', 'p99', 'errors', ''],
    steps.map(({ rate, verdict, result }) => [
      rateText(rate),
      rateText(result.totals.answered / result.totals.seconds),
      ...(result.latency.count === 0 ? ['-', '-'] : [msText(result.latency.p50), msText(result.latency.p99)]),
      percentText(errorsOf(result) / Math.max(1, result.totals.due)),
      result.generator.limited
        ? 'not decided'
        : verdict === 'broken' || verdict === 'generator'
          ? brokenIn(result)
          : verdict,
    ]),
    [0, 1, 2, 3, 4],
  )
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
    steps: steps.map(({ rate, verdict, result }) => ({
      rate,
      verdict,
      totals: result.totals,
      statuses: result.statuses,
      outcomes: result.outcomes,
      latency: result.latency,
      thresholds: result.thresholds,
      generator: result.generator,
    })),
  }
  return { value, text: `${table}\n\n${sentence}` }
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
