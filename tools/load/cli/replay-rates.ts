// `abohawa replay --rate 100,200,400` and `--until-slower`: a run for each rate, and one report of all. `--until-slower` raises
// the rate until a threshold breaks, and compares the highest rate with the traffic's own.

import { tableOf } from 'abohawa/command-line/tables.ts'
import { counted, percentText, type Terminal } from 'abohawa/command-line/terminal.ts'
import { UsageError } from 'abohawa/command-line/usage-error.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { printDuration } from 'abohawa/config/units.ts'
import type { Busiest, FoundRate, RateVerdict } from '../replay/rate-search.ts'
import { thresholdOf } from '../replay/thresholds.ts'
import { latencyText } from '../report/metrics.ts'
import type { ReplayResult } from '../report/result.ts'
import { answeredRate, errorsOf } from '../report/run-figures.ts'
import { checkRun } from '../traffic/longest-span.ts'
import { createOpsReader } from './replay-ops.ts'
import { prepareSending, type ReplayOptions } from './replay-options.ts'
import { prepareOutput, thresholdFailed } from './replay-output.ts'
import { createRunProgress, figures, goodAnswers, rateText, remarksOn } from './replay-text.ts'

/** For --until-slower without --threshold. */
export const usualThresholds = ['p99<50ms', 'errors<0.1%']
// With fewer, a percentile says little.
const fewestRequests = 10

type RateRun = { readonly rate: number; readonly verdict: RateVerdict; readonly result: ReplayResult }

/** @param rates at least one, ascending */
export const replayRates = async (
  terminal: Terminal,
  options: ReplayOptions,
  files: readonly string[],
  rates: readonly number[],
): Promise<number> => {
  const { untilSlower = false, duration = 10_000, warmUp = 2_000, out = [], force } = options
  const thresholds = options.threshold ?? (untilSlower ? usualThresholds.map(thresholdOf) : [])
  for (const name of ['bodies', 'checkBodies', 'requests'] as const)
    if (options[name] !== undefined)
      throw new UsageError(
        `--${name === 'checkBodies' ? 'check-bodies' : name} can't be combined with several rates`,
      )
  const ofRate = thresholds.find(({ isOfRate }) => isOfRate)
  if (untilSlower && ofRate)
    throw new UsageError(
      `--threshold ${ofRate.text} can't be combined with --until-slower, which looks for the rate`,
    )
  if (warmUp >= duration)
    throw new UsageError(
      `--warm-up must be shorter than --duration (${printDuration(duration)}), got ${printDuration(warmUp)}`,
    )
  checkRun(duration)
  const write = await prepareOutput(terminal, {
    paths: out,
    forms: ['.html', '.json'],
    results: 'list',
    inputs: [...files, options.keys, options.key, options.ca, options.opsTokenFile],
    force,
  })
  const ops = createOpsReader(terminal, options)
  const { order, signal, checkTarget } = await prepareSending(terminal, files, options)
  await checkTarget()
  const settings = (await ops?.settings()) ?? null
  const { runReplay } = await import('../replay/run.ts')

  const runs: RateRun[] = []
  const tryRate = async (rate: number): Promise<RateVerdict> => {
    if (signal.aborted) return 'interrupted'
    const progress = createRunProgress({ endsAt: duration, total: undefined })
    const { result } = await runReplay(
      {
        ...{ ...order, thresholds, settings, metrics: ops?.metrics, keepBodies: 0 },
        pace: { mode: 'rate', speed: 1, rate, loop: true, durationMs: duration, warmUpMs: warmUp },
      },
      terminal.clock,
      (live, seconds) => terminal.progress(`${rateText(rate)}: ${progress(live, seconds)}`),
      signal,
    )
    const verdict = untilSlower && refusalsIn(result) !== undefined ? 'refused' : verdictOn(result)
    runs.push({ rate, verdict, result })
    terminal.progress('')
    terminal.remark(`${rateText(rate)}: ${outcomeOf({ rate, verdict, result })}, p99 ${p99Of(result)}`)
    return verdict
  }

  const { busiestMinute, searchRate } = await import('../replay/rate-search.ts')
  const least = Math.min(...rates, fewestRequests / ((duration - warmUp) / 1000))
  const found = untilSlower ? await searchRate(rates, least, tryRate) : undefined
  if (!found) for (const rate of rates) if ((await tryRate(rate)) === 'interrupted') break
  const results = runs.map(({ result }) => result)
  const busiest = busiestMinute(order.schedule.at)
  const times = found?.held === undefined || !busiest ? null : found.held / busiest.rate
  const sentence =
    found && `${limitOf(found, runs, order.target.name)}; ${ownRateOf(busiest, times, found.ended)}.`
  terminal.show(
    {
      ...(found && {
        sentence,
        ended: found.ended,
        heldRate: found.held ?? null,
        brokenRate: found.broken ?? null,
      }),
      ...(found && { busiestMinute: busiest ?? null, times }),
      results,
    },
    [ratesTable(runs), ...(sentence === undefined ? [] : ['', sentence])].join('\n'),
  )
  const last = found ? runs.findLast(({ verdict }) => verdict === 'held') : runs.at(-1)
  for (const remark of last ? remarksOn(last.result) : []) terminal.remark(remark)
  await write(results)
  const refused = runs.find(({ verdict }) => verdict === 'refused')
  if (refused)
    throw new InputError(`${refusalsIn(refused.result)}; check the target, the keys and their quotas`)
  if (runs.some(({ verdict }) => verdict === 'interrupted') || signal.aborted) return 1
  if (found) return found.held !== undefined ? 0 : found.ended === 'threshold' ? thresholdFailed : 1
  if (results.some(result => brokenIn(result) !== '')) return thresholdFailed
  return results.some(({ generator }) => generator.limited) ? 1 : 0
}

const verdictOn = (result: ReplayResult): RateVerdict => {
  const { interrupted, generator } = result
  if (interrupted) return 'interrupted'
  if (generator.limited) return 'generator'
  if (brokenIn(result) === '') return 'held'
  return generator.saturated ? 'generator' : 'broken'
}

const brokenIn = ({ thresholds }: ReplayResult): string =>
  thresholds
    .flatMap(({ passed, threshold, measured }) => (passed ? [] : `${threshold}: ${measured}`))
    .join(', ')

/** A target that refuses a request does little for it: says so where no threshold broke and less than half was answered well. */
const refusalsIn = (result: ReplayResult): string | undefined => {
  const { totals, statuses } = result
  const good = goodAnswers(result)
  if (verdictOn(result) !== 'held' || (totals.answered > 0 && good * 2 >= totals.answered)) return undefined
  const others = Object.entries(statuses).map(([status, count]) => `${status}: ${counted(count)}`)
  return `only ${counted(good)} of ${counted(totals.answered)} responses were 2xx or 304 (${others.join(', ')})`
}

const p99Of = ({ latency }: ReplayResult): string =>
  latency.count === 0 ? '-' : latencyText(latency.p99, figures)

const outcomeOf = ({ verdict, result }: RateRun): string => {
  const { generator, thresholds } = result
  if (generator.limited) return `not decided: ${generator.reason}`
  if (verdict === 'interrupted') return verdict
  if (verdict === 'refused') return `not decided: ${refusalsIn(result)}`
  if (verdict === 'held') return thresholds.length === 0 ? 'sent' : 'held'
  return `not held, ${brokenIn(result)}${verdict === 'generator' ? `; ${generator.reason}` : ''}`
}

const ratesTable = (runs: readonly RateRun[]): string =>
  tableOf(
    ['rate', 'answered', 'p50', 'p99', 'errors', ''],
    runs.map(run => {
      const { totals, latency } = run.result
      return [
        rateText(run.rate),
        rateText(answeredRate(totals)),
        latency.count === 0 ? '-' : latencyText(latency.p50, figures),
        p99Of(run.result),
        percentText(errorsOf(run.result) / Math.max(1, totals.due)),
        outcomeOf(run),
      ]
    }),
    [0, 1, 2, 3, 4],
  )

const limitOf = ({ held, broken, ended }: FoundRate, runs: readonly RateRun[], target: string): string => {
  const last = runs.at(-1)?.result
  const broke = runs.findLast(({ rate, verdict }) => rate === broken && verdict === 'broken')?.result
  const why = broke ? ` (${brokenIn(broke)})` : ''
  const known = held === undefined ? 'held no rate that was tried' : `held ${rateText(held)}`
  if (ended === 'interrupted') return `Interrupted: ${target} ${known} until then`
  if (ended === 'generator')
    return held === undefined
      ? `Nothing is known of ${target}: ${last?.generator.reason}`
      : `${target} ${known}, and beyond it ${last?.generator.reason}`
  if (ended === 'refused')
    return held === undefined
      ? `Nothing is known of ${target}`
      : `${target} ${known}, and refused most requests beyond it`
  if (ended === 'highest') return `${target} ${known}, the highest rate that is tried`
  return held === undefined
    ? `${target} did not hold ${rateText(broken ?? 0)} either${why}`
    : `${target} ${known} and not ${rateText(broken ?? 0)}${why}`
}

const ownRateOf = (busiest: Busiest | undefined, times: number | null, ended: FoundRate['ended']): string => {
  if (!busiest) return 'the traffic is of one instant and has no rate'
  const own =
    busiest.seconds === 60
      ? `the traffic's busiest minute has ${rateText(busiest.rate)}`
      : `the traffic, of ${Number(busiest.seconds.toPrecision(3))} s, has ${rateText(busiest.rate)}`
  if (times === null) return own
  const text = times >= 100 ? counted(Math.round(times)) : String(Number(times.toPrecision(2)))
  return `${own}: ${text} times${ended === 'threshold' ? '' : ' or more'}`
}
