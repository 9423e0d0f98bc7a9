// Test helper: an observer of an upstream that hears everything and does nothing.

import type { UpstreamObserver } from '../../src/cache/upstream.ts'

export const silentObserver = Object.fromEntries(
  [
    ...['onRead', 'onCollapsed', 'onLoadFailure', 'onShortfall', 'onSharedTierFailure'],
    ...['onEntryRefused', 'onHeartbeat', 'onPurge', 'onPurgesMissed'],
    ...['request', 'refused', 'odd', 'loaded', 'onShareUsedUp', 'newRun', 'runsUnknown', 'breaker'],
    ...['storeAway', 'storeBack', 'reopened'],
  ].map(name => [name, () => {}]),
) as unknown as UpstreamObserver
