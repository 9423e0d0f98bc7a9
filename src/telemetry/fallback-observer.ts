// Metrics and log lines of one upstream. Its name is a field where there are several; outages and the loads of keys count over all.

import { isoOf } from '../common/calendar.ts'
import type { AccountObserver } from '../provider/accounts.ts'
import type { BreakerState } from '../provider/breaker.ts'
import type { ModelRun, OddValues } from '../provider/protocol.ts'
import type { Log } from './log.ts'
import type { Outages } from './outages.ts'
import type { UpstreamMetrics } from './upstream-metrics.ts'

const nothing = (): void => {}

/** A line when a circuit opens, with the last failure, and one when it is closed again; none for failed probes in between. */
export const createCircuitLines = (log: Log, upstream: string | undefined) => {
  let isClosed = true
  let failure: { readonly code: string; readonly reason: string } | undefined
  return {
    failed: (code: string, reason: string): void => {
      failure = { code, reason }
    },
    breaker: (state: BreakerState): void => {
      if (isClosed === (state === 'closed')) return
      isClosed = state === 'closed'
      if (isClosed) log.info({ upstream }, 'upstream circuit closed')
      else log.warn({ upstream, ...failure }, 'upstream circuit opened')
    },
  }
}

/** The lines that each upstream has. */
export const accountLines = (log: Log, upstream: string | undefined) => ({
  newRun: ({ initialisedAt, availableAt }: ModelRun): void =>
    log.info({ upstream, initialised: isoOf(initialisedAt), available: isoOf(availableAt) }, 'new model run'),
  runsUnknown: (reason: string): void =>
    log.warn({ upstream, reason }, 'model runs unknown, assuming the usual interval'),
  /** Nothing where it was not closed here. */
  reopened: (closedUntil: number | null): void => {
    if (closedUntil !== null)
      log.warn({ upstream, closedUntil: isoOf(closedUntil) }, 'budget reopened by an operator')
  },
})

/**
 * Makes the observer of impossible values for an upstream, which has no name where it is the only one. Counts all values, which
 * responses have as null, and logs each variable once.
 */
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

export const createFallbackObserver =
  (
    metrics: Pick<UpstreamMetrics, 'request'>,
    log: Log,
    outages: Pick<Outages, 'requestFailed'>,
    oddValues: ReturnType<typeof createOddValues>,
  ) =>
  (upstream: string): Omit<AccountObserver, 'loaded'> => {
    const circuit = createCircuitLines(log, upstream)
    return {
      ...accountLines(log, upstream),
      request: (outcome, _points, _ms, reason) => {
        metrics.request(upstream, outcome)
        if (reason === undefined) return
        circuit.failed(outcome, reason)
        outages.requestFailed({ code: outcome, reason })
      },
      refused: nothing,
      odd: oddValues(upstream),
      // The budget of the first upstream is counted in the same store.
      storeAway: nothing,
      storeBack: nothing,
      breaker: circuit.breaker,
    }
  }
