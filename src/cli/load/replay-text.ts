// The words of `abohawa replay`: the line of progress while it runs, and its report on a terminal.

import { quotedPath } from '../../common/outside-text.ts'
import type { Replay } from '../../load/replay/run.ts'
import type { LiveFigures } from '../../load/replay/senders.ts'
import type { ReplayResult } from '../../load/report/result.ts'
import { errorsIn } from '../../load/report/run-figures.ts'
import { counted, factsText, leftText, percentText, tableOf } from '../terminal.ts'

/** A duration in ms for people, with three digits. */
export const msText = (ms: number): string =>
  ms >= 10_000
    ? `${(ms / 1000).toFixed(1)} s`
    : ms >= 100
      ? `${Math.round(ms)} ms`
      : `${Number(ms.toPrecision(2))} ms`

const clockText = (seconds: number): string => {
  const whole = Math.max(0, Math.round(seconds))
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const two = (number: number): string => String(number).padStart(2, '0')
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`
}

export const rateText = (rate: number): string =>
  `${rate < 100 ? Number(rate.toPrecision(3)) : counted(Math.round(rate))}/s`

type Plan = {
  /** Undefined where only a signal ends the run. */
  readonly endsAtSeconds: number | undefined
  readonly total: number | undefined
  /** How many requests are due before so many seconds; undefined for a closed loop. */
  readonly dueBefore: (seconds: number) => number | undefined
}

/** Called with each figures in turn; remembers those before for the rates. */
export const createProgress = ({ endsAtSeconds, total, dueBefore }: Plan) => {
  let before = { seconds: 0, sent: 0, due: 0 }
  return ({ counts, p50, p99 }: LiveFigures, seconds: number): string => {
    const { hit = 0, stale = 0, miss = 0 } = counts.outcomes
    const weathers = hit + stale + miss
    const due = dueBefore(Math.min(seconds, endsAtSeconds ?? seconds))
    const since = Math.max(0.001, Math.min(seconds, endsAtSeconds ?? seconds) - before.seconds)
    const asked = due === undefined ? '' : `${rateText((due - before.due) / since)} asked, `
    const achieved = (counts.sent - before.sent) / Math.max(0.001, seconds - before.seconds)
    before = { seconds, sent: counts.sent, due: due ?? 0 }
    const left =
      endsAtSeconds !== undefined
        ? `, ${clockText(endsAtSeconds - seconds)} left`
        : total === undefined
          ? ''
          : leftText(counts.sent / total, seconds)
    return [
      `${clockText(seconds)}${left}`,
      `${asked}${rateText(achieved)} sent`,
      ...(p50 === undefined || p99 === undefined ? [] : [`p50 ${msText(p50)}, p99 ${msText(p99)}`]),
      ...(weathers === 0 ? [] : [`hits ${percentText(hit / weathers)}`]),
      `late ${counted(counts.late)}, dropped ${counted(counts.dropped)}, errors ${counted(errorsIn(counts, counts.statuses))}`,
    ].join(' · ')
  }
}

/** The result in some lines. */
export const resultText = (result: ReplayResult): string => {
  const { totals, latency, statuses, outcomes, latencies, thresholds, generator } = result
  const { age, gateway, provider, bodies } = result
  const { hit = 0, stale = 0, miss = 0 } = outcomes
  const weathers = hit + stale + miss
  const listed = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .map(([name, count]) => `${name}: ${counted(count)}`)
      .join(', ') || 'none'
  const lasted =
    totals.seconds < 60 ? `${Number(totals.seconds.toPrecision(2))} s` : clockText(totals.seconds)
  const facts = factsText([
    [
      'requests',
      `${counted(totals.due)} due, ${counted(totals.sent)} sent, ${counted(totals.answered)} answered`,
    ],
    [
      'rate',
      `${askedText(result.pace)}${rateText(totals.answered / totals.seconds)} answered, for ${lasted}`,
    ],
    [
      'latency',
      totals.answered === 0
        ? 'no answer'
        : `p50 ${msText(latency.p50)}, p90 ${msText(latency.p90)}, p99 ${msText(latency.p99)}, p99.9 ${msText(latency.p999)}, max ${msText(latency.max)}`,
    ],
    [
      'of these',
      totals.due === totals.answered
        ? undefined
        : `${counted(totals.due - totals.answered)} had no answer, at the time that they waited for it`,
    ],
    [
      'cache',
      weathers === 0
        ? 'no answer with weather'
        : `${percentText(hit / weathers)} hits, ${percentText(stale / weathers)} stale, ${percentText(miss / weathers)} misses`,
    ],
    [
      'age of weather',
      age ? `p50 ${clockText(age.p50)}, p95 ${clockText(age.p95)}, max ${clockText(age.max)}` : undefined,
    ],
    ['statuses', listed(statuses)],
    ['not answered', listed(totals.failed)],
    [
      'late, dropped',
      `${counted(totals.late)} sent more than 10 ms late, ${counted(totals.dropped)} never sent`,
    ],
    [
      'load generator',
      `${Math.round(generator.cpuShare * 100)} % of a core, event loop p99 ${msText(generator.loopDelayP99)}, late p99 ${msText(generator.lateP99)}`,
    ],
    [
      'gateway',
      gateway
        ? `${gateway.cpuSeconds.toFixed(1)} s of CPU, ${counted(Math.round(gateway.memoryBytes / 1_048_576))} MiB, event loop p99 ${gateway.loopDelayP99 === null ? 'not known' : msText(gateway.loopDelayP99)}`
        : undefined,
    ],
    [
      'provider',
      provider
        ? `${counted(provider.requests)} requests, weight ${counted(Math.round(provider.weight))}`
        : undefined,
    ],
    [
      'bodies',
      bodies
        ? `${counted(bodies.checked)} checked, ${counted(bodies.faults.length)} with a fault`
        : undefined,
    ],
  ])
  const latencyRows = latencies.map(each => [
    each.endpoint,
    each.outcome,
    counted(each.count),
    ...[each.p50, each.p90, each.p99, each.p999, each.max].map(msText),
  ])
  const thresholdRows = thresholds.map(({ threshold, measured, passed }) => [
    threshold,
    measured,
    passed ? 'passed' : 'FAILED',
  ])
  const headings = ['endpoint', 'outcome', 'requests', 'p50', 'p90', 'p99', 'p99.9', 'max']
  const sent = result.kind === 'replay' ? 'Replayed' : 'Rehearsed'
  return [
    `${result.interrupted ? 'Interrupted; this is what ran' : sent}: ${result.traffic.files.join(', ')} to ${result.pace.target}.`,
    facts,
    latencies.length === 0 ? '' : tableOf(headings, latencyRows, [2, 3, 4, 5, 6, 7]),
    thresholds.length === 0 ? '' : tableOf(['threshold', 'measured', ''], thresholdRows),
    (bodies?.faults ?? [])
      .slice(0, 10)
      .map(({ path, fault }) => `${path}: ${fault}`)
      .join('\n'),
    generator.reason === null
      ? ''
      : `Saturated: ${generator.reason}. These figures are of the load generator.`,
  ]
    .filter(part => part !== '')
    .join('\n\n')
}

const askedText = ({ mode, rate, speed }: ReplayResult['pace']): string =>
  mode === 'rate'
    ? `${rateText(rate ?? 0)} asked, `
    : mode === 'recorded'
      ? `${speed === 1 ? 'as recorded' : `${speed} times as fast as recorded`}, `
      : ''

/** Answers with what was asked for: 2xx and 304. */
export const goodAnswers = ({ statuses }: Pick<ReplayResult, 'statuses'>): number =>
  Object.entries(statuses).reduce((sum, [s, count]) => (/^2|^304$/.test(s) ? sum + count : sum), 0)

/** Sentences about a run that was probably not what was meant. */
export const remarksOn = ({ statuses, totals, generator }: ReplayResult): string[] => {
  if (generator.limited)
    return [
      'Not decided: the load generator met a limit of its own machine, which says nothing of the target.',
    ]
  const refused = statuses[401] ?? 0
  const limited = statuses[429] ?? 0
  const good = goodAnswers({ statuses })
  const remarks: readonly (readonly [isSo: boolean, remark: string])[] = [
    [
      totals.answered === 0 && totals.sent > 0,
      'No request had an answer: check whether --target is the API listener of the gateway, and --http.',
    ],
    [
      good === 0 && totals.answered > 0 && refused === 0 && limited === 0,
      `None of ${counted(totals.answered)} answers was 2xx or 304: check whether --target is the API listener of the gateway, and http or https.`,
    ],
    [
      refused * 2 > totals.answered,
      `${counted(refused)} of ${counted(totals.answered)} answers were 401: the target has not issued these keys.`,
    ],
    [
      limited * 10 > totals.answered,
      `${counted(limited)} answers were 429: the keys have used up their day; \`keys create --limit\` gives more.`,
    ],
    [
      totals.dropped > 0,
      `${counted(totals.dropped)} requests were never sent, because no connection was free: the target is too slow for them, or --connections too few.`,
    ],
  ]
  return remarks.flatMap(([isSo, remark]) => (isSo ? [remark] : []))
}

/** The fault of the log of each request; undefined where it is whole. */
export const logLacking = (
  { lost, fault }: Awaited<Replay['ended']>['logged'],
  path = '',
): string | undefined => {
  if (fault !== undefined) return `--requests: ${fault}`
  return lost > 0
    ? `${counted(lost)} requests are not in ${quotedPath(path)}, which took them too slowly: another disk, or a name without .gz.`
    : undefined
}
