// Puts the figures of all cases together: the verdict of the provider's plans, whether the budget bit, and which cases no
// other beats.

import { explainConfig } from '../../config/explain.ts'
import { type ConfigSources, readConfig } from '../../config/load.ts'
import type { SettingCase } from '../../config/setting-grid.ts'
import { monthOf, verdictsOf } from '../report/plans.ts'
import { paretoOptimal } from '../report/run-figures.ts'
import type { SimulateOptions } from './simulate.ts'
import type { CaseFigures, WhatIfResult } from './what-if-result.ts'

export type WhatIfParts = {
  readonly version: string
  readonly traffic: WhatIfResult['traffic']
  readonly sources: ConfigSources
  readonly options: SimulateOptions
}

/** @param figures by case; undefined for those that were stopped */
export const whatIfResultOf = (
  cases: readonly SettingCase[],
  figures: readonly (CaseFigures | undefined)[],
  { version, traffic, sources, options }: WhatIfParts,
): WhatIfResult => {
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
    format: 'abohawa-what-if/1',
    version,
    traffic,
    base: explainConfig(readConfig(sources))
      .filter(({ path, value, default: usual }) => isRelevant(path) && usual !== undefined && value !== usual)
      .map(({ path, value, default: usual }) => ({ path, value, default: usual ?? '' })),
    instances,
    warmUpSeconds: warmUpMs / 1000,
    warm,
    latencyMs,
    budget:
      budgets.size === 1 ? { minute: perMinute ?? null, hour: perHour ?? null, day: perDay ?? null } : null,
    cases: finished.map(({ name, values, figures: one }, i) => ({
      name,
      settings: { ...values },
      paretoOptimal: best.has(i),
      budgetBit: one.stretch.most > 1 || one.failed > 0,
      weightPerMonth: monthOf(one.provider),
      plans: verdictsOf(one.provider),
      ...one,
    })),
    unfinished: cases.filter((_, i) => figures[i] === undefined).map(({ name }) => name),
  }
}

// Settings of listeners, logs and stores change nothing here.
const isRelevant = (path: string): boolean =>
  /^(cache|weather|catalogue)\.|^provider\.(max|budget|runs)/.test(path)

const mebibyte = 2 ** 20

/** More hits, less weight, younger weather, less memory; rounded, so that noise decides nothing. */
const objectives = ({ hits, weather, provider, age, memory }: CaseFigures): number[] => [
  // Of all requests for weather: one that failed is no reason to be marked.
  Math.round(((hits.memory + hits.shared) / Math.max(1, weather)) * 10_000),
  -Math.round(provider.weight),
  -age.p95,
  -Math.round((memory.mostBytes / mebibyte) * 10),
]
