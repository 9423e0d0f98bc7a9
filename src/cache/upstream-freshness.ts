// Freshness by the upstream that refreshes come from: its budget decides the stretch, and its runs are in effect where an entry
// does not name an upstream.

import { utcDayMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Config } from '../config/schema.ts'
import type { Accounts, OpenUpstream } from '../provider/accounts.ts'
import { soonMs } from '../provider/failover.ts'
import { createFreshness, createStretch, type Run } from './freshness.ts'

/** @param cellsRefreshed how many cells of the fleet are loaded in each period */
export const createUpstreamFreshness = (
  { cache }: Pick<Config, 'cache'>,
  accounts: Accounts,
  cellsRefreshed: () => number,
  clock: Clock,
) => {
  const [first] = accounts.all
  // While only its minute is full, refreshes wait for it.
  let refresher: OpenUpstream = first
  /** The demand of the fleet in the provider's weight per day, without stretch. */
  const demandPerDay = (): number =>
    (cellsRefreshed() * refresher.account.protocol.weightPerCell * utcDayMs) / policy.periodMs()
  const computeStretch = (): number => {
    refresher = accounts.next(soonMs).upstream ?? first
    // Freshness has a maximum.
    return Math.min(refresher.account.budget.stretch(demandPerDay()), policy.maxStretch())
  }
  const stretch = createStretch(computeStretch, clock)
  const runsOf =
    accounts.all.length > 1
      ? (upstream = refresher.name): readonly Run[] => accounts.runsOf(upstream)
      : first.account.runs?.recent
  const policy = createFreshness(cache, stretch.current, runsOf)
  return {
    policy,
    stretch,
    demandPerDay,
    refresher: (): OpenUpstream => refresher,
  }
}
