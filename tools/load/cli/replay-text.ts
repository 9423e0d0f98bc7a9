// The progress line of `abohawa replay`, and its report on a terminal.

import { factsText, tableOf } from 'abohawa/command-line/tables.ts'
import { counted, percentText } from 'abohawa/command-line/terminal.ts'
import { createFigures } from 'abohawa/common/page/figures.js'
import type { Arrivals } from '../replay/pace.ts'
import type { LiveFigures } from '../replay/senders.ts'
import { latencyText } from '../report/metrics.ts'
import type { ReplayResult } from '../report/result.ts'
import { answeredRate, errorsIn, paceText, sentFor, shareOf } from '../report/run-figures.ts'
import { leftText } from './progress.ts'

export const figures = createFigures('en', 'UTC')

/** A duration in ms for people, with three digits. */
const msText = (ms: number): string => figures.latency(ms / 1000)

export const rateText = (rate: number): string =>
  `${rate < 100 ? Number(rate.toPrecision(3)) : counted(Math.round(rate))}/s`

/** Writes the progress line; keeps the figures before for the rate. */
export const createRunProgress = ({ endsAt, total }: Pick<Arrivals, 'endsAt' | 'total'>) => {
  let before = { seconds: 0, sent: 0 }
  return ({ counts, p50, p99 }: LiveFigures, seconds: number): string => {
    const { hit = 0, stale = 0, miss = 0 } = counts.outcomes
    const weathers = hit + stale + miss
    const sent = (counts.sent - before.sent) / Math.max(0.001, seconds - before.seconds)
    before = { seconds, sent: counts.sent }
    const done = endsAt !== undefined ? (seconds * 1000) / endsAt : counts.sent / (total ?? Infinity)
    return [
      `${figures.duration(seconds)}${leftText(done, seconds)}`,
      `${rateText(sent)} sent`,
      ...(p50 === undefined || p99 === undefined ? [] : [`p50 ${msText(p50)}, p99 ${msText(p99)}`]),
      ...(weathers === 0 ? [] : [`hits ${percentText(hit / weathers)}`]),
      `late ${counted(counts.late)}, dropped ${counted(counts.dropped)}, errors ${counted(errorsIn(counts, counts.statuses))}`,
    ].join(' · ')
  }
}

export const resultText = (result: ReplayResult): string => {
  const { totals, latency, latencies, generator } = result
  const begin = result.interrupted
    ? 'Interrupted'
    : { replay: 'Replayed', rehearsal: 'Rehearsed' }[result.kind]
  const cells = ({ p50, p90, p99, p999, max }: ReplayResult['latency']): string[] =>
    [p50, p90, p99, p999, max].map(ms => latencyText(ms, figures))
  const rows = latencies.map(each => [each.endpoint, each.outcome, counted(each.count), ...cells(each)])
  const heads = ['endpoint', 'outcome', 'requests', 'p50', 'p90', 'p99', 'p99.9', 'max']
  return [
    `${begin}: ${result.traffic.files.join(', ')} to ${result.pace.target}.`,
    factsText(factsOf(result)),
    tableOf(heads, [...rows, ['all', '', counted(totals.due), ...cells(latency)]], [2, 3, 4, 5, 6, 7]),
    totals.due > totals.answered
      ? 'Requests without a response count as the slowest; their own rows show when they were given up.'
      : '',
    generator.reason === null
      ? ''
      : `Load generator saturated: ${generator.reason}. The figures are not the target's.`,
  ]
    .filter(part => part !== '')
    .join('\n\n')
}

const factsOf = (result: ReplayResult): (readonly [name: string, value: string | undefined])[] => {
  const { totals, thresholds, generator, age, gateway, provider, bodies } = result
  const share = (outcome: 'hit' | 'stale' | 'miss'): string => percentText(shareOf(result, outcome) ?? 0)
  const listed = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .map(([name, count]) => `${name}: ${counted(count)}`)
      .join(', ') || 'none'
  const lasted = (seconds: number): string =>
    seconds < 60 ? `${Number(seconds.toPrecision(2))} s` : figures.duration(seconds)
  const [sending, answering] = [sentFor(totals), totals.seconds].map(lasted)
  const ages = age ? `; age p50 ${figures.duration(age.p50)}, max ${figures.duration(age.max)}` : ''
  const { due, sent, answered, late, dropped } = totals
  const facts = {
    requests: `${counted(due)} due, ${counted(sent)} sent, ${counted(answered)} answered`,
    rate: `${paceText(result, figures)}, for ${sending}; ${rateText(answeredRate(totals))} answered${answering === sending ? '' : `, in ${answering}`}`,
    cache:
      shareOf(result, 'hit') === null
        ? 'no response with weather'
        : `${share('hit')} hits, ${share('stale')} stale, ${share('miss')} misses${ages}`,
    statuses: listed(result.statuses),
    'no response': listed(totals.failed),
    'late, dropped': `${counted(late)} sent more than 10 ms late, ${counted(dropped)} never sent`,
    'load generator': `${Math.round(generator.cpuShare * 100)} % of a core, event loop p99 ${msText(generator.loopDelayP99)}, late p99 ${msText(generator.lateP99)}`,
    gateway: gateway
      ? `${gateway.cpuSeconds.toFixed(1)} s of CPU, ${figures.bytes(gateway.memoryBytes)}`
      : undefined,
    provider: provider
      ? `${counted(provider.requests)} requests, weight ${figures.count(provider.weight)}`
      : undefined,
    bodies: bodies
      ? `${counted(bodies.checked)} checked, ${counted(bodies.faults.length)} with a fault`
      : undefined,
  }
  return [
    ...Object.entries(facts),
    ...(bodies?.faults ?? []).slice(0, 10).map(({ path, fault }) => [path, fault] as const),
    ...thresholds.map(
      each => [each.threshold, `${each.measured}, ${each.passed ? 'passed' : 'FAILED'}`] as const,
    ),
  ]
}

/** The number of 2xx and 304 responses. */
export const goodAnswers = ({ statuses }: Pick<ReplayResult, 'statuses'>): number =>
  Object.entries(statuses).reduce((sum, [s, count]) => (/^2|^304$/.test(s) ? sum + count : sum), 0)

/** Hints for a run that probably went wrong. */
export const remarksOn = ({ statuses, totals, generator, traffic }: ReplayResult): string[] => {
  if (generator.limited) return ['Not decided: the load generator reached a limit of its own machine.']
  const refused = statuses[401] ?? 0
  const limited = statuses[429] ?? 0
  const good = goodAnswers({ statuses })
  const remarks: readonly (readonly [isSo: boolean, remark: string])[] = [
    [
      totals.answered === 0 && totals.sent > 0,
      'No request was answered: check that --target is the API listener of the gateway, and --http.',
    ],
    [
      good === 0 && totals.answered > 0 && refused === 0 && limited === 0,
      `None of ${counted(totals.answered)} responses was 2xx or 304: check that --target is the API listener of the gateway, and http or https.`,
    ],
    [
      refused * 2 > totals.answered,
      `${counted(refused)} of ${counted(totals.answered)} responses were 401: ${traffic.keys === 0 ? 'the traffic has no key ids; --key FILE sends one key with every request' : 'the target did not issue these keys'}.`,
    ],
    [
      limited * 10 > totals.answered,
      `${counted(limited)} responses were 429: the keys reached their daily limit (\`keys create --limit\`) or a limit per second or minute (\`keys set --per-second\`).`,
    ],
    [
      totals.dropped > 0,
      `${counted(totals.dropped)} requests were never sent, because no connection was free: the target is too slow, or --connections too low.`,
    ],
  ]
  return remarks.flatMap(([isSo, remark]) => (isSo ? [remark] : []))
}
