// What happens next: which upstream would load what is asked for now, or that none would and why. By the circuits and by the
// spending as last known; what a load meets is decided by the load itself.

import type { Clock } from '../common/clock.ts'
import type { Breaker } from './breaker.ts'
import type { Budget } from './budget.ts'
import type { Purpose } from './charge.ts'
import type { ProviderErrorCode } from './errors.ts'

/** An upstream as far as this needs it. */
export type CandidateUpstream = {
  readonly account: {
    readonly breaker: Pick<Breaker, 'state'>
    readonly budget: Pick<Budget, 'roomAt'>
  }
}

type Obstacle = {
  readonly code: Extract<ProviderErrorCode, 'provider_circuit_open' | 'provider_limited'>
  /** When it ends, ms since the epoch; null where that is not known. */
  readonly until: number | null
}

/** The upstream that loads next, and whether more than its reserve is left; or the obstacle that ends first. */
export type Next<Upstream> =
  | { readonly upstream: Upstream; readonly room: 'any' | 'reserve' }
  | ({ readonly upstream: undefined; readonly room: 'none' } & Obstacle)

/** A load that nobody waits for waits up to this long for room: weather of another upstream would stay for an hour or a whole run. */
export const soonMs = 65_000

/** @param upstreams in their order, one or more */
export const createNextUpstream = <Upstream extends CandidateUpstream>(
  upstreams: readonly Upstream[],
  clock: Clock,
) => {
  const obstacleOf = ({ account }: Upstream, purpose: Purpose, withinMs: number): Obstacle | undefined => {
    const { state, openUntil } = account.breaker.state()
    if (state !== 'closed') return { code: 'provider_circuit_open', until: openUntil }
    const until = account.budget.roomAt(purpose)
    return until === null || until - clock.now() <= withinMs ? undefined : { code: 'provider_limited', until }
  }
  const firstFor = (purpose: Purpose, withinMs: number): Upstream | undefined =>
    upstreams.find(upstream => !obstacleOf(upstream, purpose, withinMs))

  /**
   * The first upstream that has room for any load, else the first one whose reserve has room for what somebody waits for.
   * @param withinMs an upstream that has room so soon counts as having it
   */
  return (withinMs = 0): Next<Upstream> => {
    const upstream = firstFor('refresh', withinMs)
    if (upstream) return { upstream, room: 'any' }
    const last = firstFor('cold', withinMs)
    if (last) return { upstream: last, room: 'reserve' }
    const obstacles = upstreams.flatMap(each => obstacleOf(each, 'cold', withinMs) ?? [])
    const endOf = ({ until }: Obstacle): number => until ?? 0
    const first = obstacles.reduce((one, other) => (endOf(other) < endOf(one) ? other : one))
    return { upstream: undefined, room: 'none', ...first }
  }
}
