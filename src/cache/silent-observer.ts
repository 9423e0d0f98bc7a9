// An observer that ignores everything, for commands that run the cache without log and metrics.

import type { UpstreamObserver } from './upstream.ts'

const nothing = (): void => {}

export const silentObserver: UpstreamObserver = {
  onRead: nothing,
  onCollapsed: nothing,
  onLoadFailure: nothing,
  onShortfall: nothing,
  onSharedTierFailure: nothing,
  onEntryRefused: nothing,
  onHeartbeat: nothing,
  onPurge: nothing,
  onPurgesMissed: nothing,
  request: nothing,
  refused: nothing,
  odd: nothing,
  loaded: nothing,
  onShareUsedUp: nothing,
  newRun: nothing,
  runsUnknown: nothing,
  storeAway: nothing,
  storeBack: nothing,
  reopened: nothing,
  breaker: nothing,
}
