// The result of `whatif` as JSON: the figures of all cases, and which are Pareto-optimal. Durations are in seconds, shares from 0 to 1.

import type { Figures } from 'abohawa/common/page/figures.js'
import { explainConfig } from 'abohawa/config/explain.ts'
import { type ConfigSources, readConfig } from 'abohawa/config/load.ts'
import type { SettingColumn } from '../report/report-file.ts'
import { paretoOptimal } from '../report/run-figures.ts'
import type { SettingCase } from '../setting-grid.ts'
import type { LeftOutReason } from '../traffic/recorded-admission.ts'
import { type CaseFigures, servedShare } from './counters.ts'
import type { SimulateOptions } from './simulate.ts'

export type WhatIfResult = ReturnType<typeof whatIfResultOf>
export type CaseResult = WhatIfResult['cases'][number]

type TriedTraffic = {
  readonly files: readonly string[]
  readonly sha256: string
  readonly requests: number
  readonly faultyLines: number
  /** Requests that don't reach the cache, whatever their path. */
  readonly leftOut: Readonly<Record<LeftOutReason, number>>
  readonly from: string
  readonly spanSeconds: number
}

export type WhatIfParts = {
  readonly version: string
  readonly traffic: TriedTraffic
  readonly sources: ConfigSources
  readonly options: SimulateOptions
}

/** @param figures by case; undefined for stopped ones */
export const whatIfResultOf = (
  cases: readonly SettingCase[],
  figures: readonly (CaseFigures | undefined)[],
  { version, traffic, sources, options }: WhatIfParts,
) => {
  const { instances, warmUpMs, warm, latencyMs } = options
  const finished = cases.flatMap((each, i) => {
    const one = figures[i]
    return one ? [{ ...each, figures: one }] : []
  })
  const best = paretoOptimal(finished.map(({ figures: one }) => objectives(one)))
  const budgets = new Set(cases.map(({ config }) => JSON.stringify(config.provider.budget)))
  const [first] = cases
  const { perMinute, perHour, perDay } = first?.config.provider.budget ?? {}
  return {
    format: 'abohawa-what-if/1' as const,
    version,
    traffic,
    /** The settings that differ from their defaults in all cases. */
    base: explainConfig(readConfig(sources))
      .filter(({ path, value, default: usual }) => isRelevant(path) && usual !== undefined && value !== usual)
      .map(({ path, value, default: usual }) => ({ path, value, default: usual ?? '' })),
    instances,
    warmUpSeconds: warmUpMs / 1000,
    warm,
    latencyMs,
    /** The configured budget, if it is equal in all cases. */
    budget:
      budgets.size === 1 ? { minute: perMinute ?? null, hour: perHour ?? null, day: perDay ?? null } : null,
    cases: finished.map(({ name, values, figures: one }, i) => ({
      /** As `--case` takes it; empty for the configuration. */
      name,
      settings: { ...values },
      /** By hits, weight, age and memory. */
      paretoOptimal: best.has(i),
      /** Whether the budget stretched freshness or refused requests, and so limited the weight. */
      budgetBit: one.stretch.most > 1 || one.failed > 0,
      ...one,
    })),
    unfinished: cases.filter((_, i) => figures[i] === undefined).map(({ name }) => name),
  }
}

// Other settings don't matter here.
const isRelevant = (path: string): boolean =>
  /^(cache|weather|catalogue)\.|^provider\.(max|budget|runs)/.test(path)

const mebibyte = 2 ** 20

/** Larger is better; rounded, so that noise does not matter. */
const objectives = ({ hits, weather, provider, age, memory }: CaseFigures): number[] => [
  // Of all requests for weather, including failed ones.
  Math.round(((hits.memory + hits.shared) / Math.max(1, weather)) * 10_000),
  -Math.round(provider.weight),
  -age.p95,
  -Math.round((memory.mostBytes / mebibyte) * 10),
]

export const caseNameText = ({ name }: Pick<CaseResult, 'name'>): string => name || 'as configured'

/** The table of settings, in a terminal and on a page. */
export const whatIfColumns = (
  cases: readonly CaseResult[],
  {
    share,
    count,
    measured,
    duration,
    bytes,
  }: Pick<Figures, 'share' | 'count' | 'measured' | 'duration' | 'bytes'>,
): SettingColumn<CaseResult>[] => {
  const served = (of: (each: CaseResult) => number) => (each: CaseResult) =>
    share(servedShare(of(each), each))
  return [
    ['Hits', ({ hitShare }) => share(hitShare)],
    ['Hits from shared tier', served(({ hits }) => hits.shared), cases.some(({ hits }) => hits.shared > 0)],
    ['Stale', served(({ stale }) => stale)],
    ['Misses', served(({ misses }) => misses)],
    [
      'Failed',
      ({ weather, failed }) => share(failed / Math.max(1, weather)),
      cases.some(({ failed }) => failed > 0),
    ],
    ['Provider weight', ({ provider }) => count(provider.weight)],
    [
      'Freshness extended by',
      ({ stretch: { most, share: time } }) =>
        most > 1 ? `${measured(most)}×, ${share(time)} of the time` : '–',
      cases.some(({ stretch }) => stretch.most > 1),
    ],
    ['Age, median', ({ age }) => duration(age.p50)],
    ['Age, p95', ({ age }) => duration(age.p95)],
    ['Age, oldest', ({ age }) => duration(Math.max(0, age.max))],
    ['Memory tier', ({ memory }) => bytes(memory.mostBytes)],
    ['Shared tier', ({ memory }) => bytes(memory.sharedBytes)],
  ]
}

export const paretoNote =
  'marks the best settings: no other is better in hits, weight, age (p95) and memory together.'

export const remarksOn = ({ cases, unfinished }: WhatIfResult): string[] => [
  ...(cases.some(({ budgetBit }) => budgetBit)
    ? ['The configured budget limited the weight: freshness was stretched, or requests failed.']
    : []),
  ...(unfinished.length > 0
    ? [
        `Stopped before these settings were finished: ${unfinished.map(name => caseNameText({ name })).join('; ')}.`,
      ]
    : []),
]
