// What happens at a fallback, in metrics and log lines that have its name. An outage is one of the first upstream, or of all that
// a cell was tried at; the counts of what is loaded for each key are those of all upstreams (gateway.ts).

import { isoOf } from '../common/calendar.ts'
import type { AccountObserver } from '../provider/account.ts'
import type { Log } from './log.ts'
import type { createOddValues } from './odd-values.ts'
import type { UpstreamMetrics } from './upstream-metrics.ts'

const nothing = (): void => {}

export const createFallbackObserver =
  (metrics: Pick<UpstreamMetrics, 'request'>, log: Log, oddValues: ReturnType<typeof createOddValues>) =>
  (upstream: string): Omit<AccountObserver, 'loaded'> => ({
    request: outcome => metrics.request(upstream, outcome),
    refused: nothing,
    odd: oddValues(upstream),
    newRun: ({ initialisedAt, availableAt }) =>
      log.info(
        { upstream, initialised: isoOf(initialisedAt), available: isoOf(availableAt) },
        'newer model run',
      ),
    runsUnknown: reason =>
      log.warn({ upstream, reason }, 'model runs are not known, the usual interval is assumed'),
    // The budget of the first upstream is counted in the same store.
    storeAway: nothing,
    storeBack: nothing,
    reopened: closedUntil => {
      if (closedUntil !== null)
        log.warn({ upstream, closedUntil: isoOf(closedUntil) }, 'budget reopened by an operator')
    },
    breaker: state => {
      if (state === 'open') log.warn({ upstream }, 'circuit to a fallback opened')
      else if (state === 'closed') log.info({ upstream }, 'circuit to a fallback closed')
    },
  })
