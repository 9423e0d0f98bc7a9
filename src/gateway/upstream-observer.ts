// Turns what happens between the cache and the provider into metrics, log lines and outages. Decides nothing. The observers
// of the other parts are in observers.ts.

import type { Fleet } from '../cache/heartbeat.ts'
import type { UpstreamObserver } from '../cache/upstream.ts'
import { isoOf } from '../common/calendar.ts'
import { codeOf, messageOf } from '../common/errors.ts'
import type { UsageDetail } from '../keys/usage-detail.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Outages } from '../telemetry/outages.ts'
import type { Throttle } from '../telemetry/throttle.ts'

/** @param onFleet receives what each heartbeat counted */
export const observeUpstream = (
  metrics: Metrics,
  log: Log,
  usageDetail: Pick<UsageDetail, 'countLoad'>,
  { seldom, outages }: { seldom: Throttle; outages: Outages },
  onFleet: (fleet: Fleet) => void,
): UpstreamObserver => ({
  onRead: metrics.cacheRead,
  onCollapsed: metrics.cacheCollapsed,
  onLoadFailure: failure => {
    const { id: cell, error, purpose } = failure
    const isOfOutage = outages.loadFailed(failure)
    // The reason of a failed cold load is logged with its 500.
    if (purpose === 'cold') return
    metrics.refreshFailed(purpose)
    if (isOfOutage) return
    const code = codeOf(error)
    seldom(`refresh ${code}`, left =>
      log.warn(
        { code, reason: messageOf(error), cell, purpose, ...left },
        'refresh failed; the older timeline stays in use',
      ),
    )
  },
  onSharedTierFailure: (step, error) => {
    metrics.sharedTierFailed(step)
    outages.sharedTierFailed(step)
    // The outage of a store has a log line of its own; single failures are only counted.
    log.debug({ step, reason: messageOf(error) }, 'shared cache tier failed')
  },
  onEntryRefused: (reason, key) => {
    metrics.entryRefused(reason)
    seldom(`entry ${reason}`, left =>
      log.warn({ reason, key, ...left }, 'entry of the shared cache tier refused; it counts as a miss'),
    )
  },
  onHeartbeat: fleet => {
    metrics.heartbeat(fleet)
    onFleet(fleet)
  },
  onPurge: (kind, scope) => {
    metrics.purged(kind)
    log.info({ kind, scope }, 'cache purged')
  },
  onPurgesMissed: () =>
    log.warn('the log of purges has lost some that were not read here; all that is cached counts as stale'),
  request: (outcome, points, ms, reason) => {
    metrics.providerRequest(outcome, points, ms)
    // Requests of operators load no points for the cache.
    if (points > 0) outages.requested(reason === undefined ? undefined : { code: outcome, reason })
  },
  refused: metrics.providerAnswerRefused,
  loaded: usageDetail.countLoad,
  shareUsedUp: metrics.keyShareUsedUp,
  newRun: ({ initialisedAt, availableAt }) =>
    log.info({ initialised: isoOf(initialisedAt), available: isoOf(availableAt) }, 'newer model run'),
  runsUnknown: reason => log.warn({ reason }, 'model runs are not known, the usual interval is assumed'),
  storeAway: reason => outages.storeAway('budget', reason),
  storeBack: () => outages.storeBack('budget'),
  reopened: closedUntil => {
    // Nothing was closed here, so nothing changes.
    if (closedUntil === null) return log.debug('an operator reopened the budget, which was open here')
    metrics.budgetReopened()
    log.warn({ closedUntil: isoOf(closedUntil) }, 'budget reopened by an operator')
  },
  breaker: state => {
    outages.breaker(state)
    log.debug({ state }, 'circuit to the provider')
  },
})
