// Counts impossible values of a provider, which responses have as null. Each variable of an upstream is logged once; the metric has all.

import type { OddValues } from '../provider/protocol.ts'
import type { Log } from './log.ts'
import type { UpstreamMetrics } from './upstream-metrics.ts'

/** Returns what makes the observer of an upstream; it has no name where it is the only one. */
export const createOddValues = (metrics: Pick<UpstreamMetrics, 'oddValue'>, log: Log) => {
  const said = new Set<string>()
  return (upstream: string | undefined) =>
    ({ count, ...first }: OddValues): void => {
      for (let i = 0; i < count; i++) metrics.oddValue(first.variable)
      const subject = `${upstream} ${first.variable}`
      if (said.has(subject)) return
      said.add(subject)
      const next = 'abohawa_provider_odd_values_total counts those that follow'
      log.warn({ ...(upstream !== undefined && { upstream }), ...first, next }, 'odd values left out')
    }
}
