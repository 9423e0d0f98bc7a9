// Which upstream loads a cell: the first one that can. The next one is asked only after the previous one refused or failed. An upstream
// whose circuit is not closed is left out, so that it gets only its probe, and so is one that refused the cell a while ago.

import { minuteMs } from '../common/calendar.ts'
import { after, type Clock } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import type { Cell } from '../weather/cell.ts'
import type { Breaker } from './breaker.ts'
import type { Budget } from './budget.ts'
import type { Purpose } from './charge.ts'
import type { Provider } from './client.ts'
import {
  cellCodes,
  OutOfBudgetError,
  ProviderError,
  type ProviderErrorCode,
  ShareUsedUpError,
} from './errors.ts'
import type { Urgency } from './queue.ts'

/** An upstream as far as the choice needs it. */
export type FailoverUpstream = {
  /** Undefined where it is the only one. */
  readonly name: string | undefined
  readonly account: {
    readonly provider: Pick<Provider, 'expedite' | 'throttled'>
    readonly breaker: Pick<Breaker, 'state'>
    readonly budget: Pick<Budget, 'roomAt'>
  }
}

export type FailoverOptions = {
  /** How long a cold cell waits for the next window of a budget when no upstream has room. */
  readonly queueForMs: number
  /** How long an upstream is left out for a cell that it refused. */
  readonly refusedForMs: number
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
const leastWaitMs = 20
const maxRefused = 10_000

const budgetCodes: ReadonlySet<ProviderErrorCode> = new Set(['provider_limited', 'key_share_used_up'])

type Failed = { readonly name: string | undefined; readonly error: ProviderError }

const isClosed = ({ account }: FailoverUpstream): boolean => account.breaker.state().state === 'closed'
const isRefusal = ({ error }: Failed): boolean => cellCodes.has(error.code)

/** The failure of an upstream that is left out for its circuit. */
const notAsked = ({ name, account }: FailoverUpstream): Failed => {
  const { openUntil } = account.breaker.state()
  const options = openUntil === null ? {} : { retryAt: openUntil }
  return { name, error: new ProviderError('provider_circuit_open', 'its circuit is not closed', options) }
}

/** @param upstreams in their order, one or more */
export const createFailover = <Upstream extends FailoverUpstream>(
  upstreams: readonly Upstream[],
  { queueForMs, refusedForMs }: FailoverOptions,
  clock: Clock,
) => {
  /** When each upstream refused a cell last, ms since the epoch. */
  const refused = new Map<string, number>()
  const keyOf = ({ name }: Upstream, { id }: Cell): string => `${name} ${id}`
  const recordRefusal = (upstream: Upstream, cell: Cell): void => {
    if (refused.size >= maxRefused) refused.clear()
    refused.set(keyOf(upstream, cell), clock.now())
  }
  const hasRefused = (upstream: Upstream, cell: Cell): boolean => {
    const at = refused.get(keyOf(upstream, cell))
    // A clock that was set back since would lengthen it.
    return at !== undefined && Math.abs(clock.now() - at) < refusedForMs
  }

  /** The upstreams to ask, in order. A cell that somebody waits for tries those that are left out in the end. */
  const orderFor = (cell: Cell, urgency: Urgency): readonly Upstream[] => {
    const usable = upstreams.filter(upstream => isClosed(upstream) && !hasRefused(upstream, cell))
    if (usable.length === 0) return upstreams
    return urgency === 'cold' ? [...usable, ...upstreams.filter(each => !usable.includes(each))] : usable
  }
  /** How long until a budget has room again; infinite for an error that has another cause. */
  const untilRoom = ({ code, retryAt = Number.POSITIVE_INFINITY }: ProviderError): number =>
    budgetCodes.has(code) ? Math.max(leastWaitMs, retryAt - clock.now()) : Number.POSITIVE_INFINITY
  /** Whether a load ends at this upstream, and asks no other one. */
  const endsAt = (error: ProviderError, urgency: Urgency): boolean =>
    urgency !== 'cold' && untilRoom(error) <= soonMs
  /** Whether a load waits where no upstream has room. */
  const mayWait = (error: ProviderError, urgency: Urgency, mostMs: number): boolean =>
    urgency === 'cold' && untilRoom(error) <= mostMs

  const tryAll = async <Result>(
    cell: Cell,
    urgency: Urgency,
    ask: (upstream: Upstream) => Promise<Result>,
  ): Promise<{ readonly result: Result } | { readonly error: ProviderError }> => {
    const failed: Failed[] = []
    const order = orderFor(cell, urgency)
    for (const upstream of order)
      try {
        return { result: await ask(upstream) }
      } catch (error) {
        // A bug of the gateway is no reason to ask another upstream.
        if (!(error instanceof ProviderError)) throw error
        failed.push({ name: upstream.name, error })
        if (cellCodes.has(error.code)) recordRefusal(upstream, cell)
        if (endsAt(error, urgency)) break
      }
    // Those that were not asked may have what the others refuse.
    if (failed.every(isRefusal))
      for (const upstream of upstreams)
        if (!order.includes(upstream) && !isClosed(upstream)) failed.push(notAsked(upstream))
    return { error: together(failed, clock.now(), refusedForMs) }
  }

  return {
    /**
     * What the first upstream gives that can. A cold cell waits for room in a budget where no upstream has any.
     * @throws ProviderError; a ShareUsedUpError concerns only one consumer
     */
    load: async <Result>(
      cell: Cell,
      urgency: Urgency,
      ask: (upstream: Upstream) => Promise<Result>,
    ): Promise<Result> => {
      for (let leftMs = queueForMs; ; ) {
        const outcome = await tryAll(cell, urgency, ask)
        if ('result' in outcome) return outcome.result
        if (!mayWait(outcome.error, urgency, leftMs)) throw outcome.error
        const waitMs = untilRoom(outcome.error)
        leftMs -= waitMs
        await new Promise<void>(resolve => after(clock, waitMs, resolve))
      }
    },
    /** A consumer now waits for a cell that was queued as less urgent: whichever upstream it is queued for. */
    expedite: (cell: Cell, consumer: string | undefined): void => {
      for (const { account } of upstreams) account.provider.expedite(cell, consumer)
    },
    /** Why nothing is loaded for a consumer now; undefined while `load` would get it or wait for it. */
    throttled: (consumer: string | undefined, urgency: Urgency): ShareUsedUpError | undefined => {
      const closed = upstreams.filter(isClosed)
      let soonest: ShareUsedUpError | undefined
      for (const { account } of closed.length > 0 ? closed : upstreams) {
        const error = account.provider.throttled(consumer, urgency)
        if (!error) return undefined
        if (endsAt(error, urgency)) return error
        if (!soonest || error.retryAt < soonest.retryAt) soonest = error
      }
      return soonest && mayWait(soonest, urgency, queueForMs) ? undefined : soonest
    },
    /**
     * The first upstream that has room for any load, else the first one whose reserve has room for a cold cell; else why there is none.
     * Goes by the circuits and the last known spending; what a load meets is decided by the load itself.
     * @param withinMs an upstream that has room so soon counts as having it
     */
    next: (withinMs = 0): Next<Upstream> => nextOf(upstreams, withinMs, clock.now()),
  }
}

const nextOf = <Upstream extends FailoverUpstream>(
  upstreams: readonly Upstream[],
  withinMs: number,
  now: number,
): Next<Upstream> => {
  const obstacleOf = ({ account }: Upstream, purpose: Purpose): Obstacle | undefined => {
    const { state, openUntil } = account.breaker.state()
    if (state !== 'closed') return { code: 'provider_circuit_open', until: openUntil }
    const until = account.budget.roomAt(purpose)
    return until === null || until - now <= withinMs ? undefined : { code: 'provider_limited', until }
  }
  const firstFor = (purpose: Purpose) => upstreams.find(upstream => !obstacleOf(upstream, purpose))
  const upstream = firstFor('refresh')
  if (upstream) return { upstream, room: 'any' }
  const last = firstFor('cold')
  if (last) return { upstream: last, room: 'reserve' }
  const obstacles = upstreams.flatMap(each => obstacleOf(each, 'cold') ?? [])
  const first = obstacles.reduce((one, other) => ((other.until ?? 0) < (one.until ?? 0) ? other : one))
  return { upstream: undefined, room: 'none', ...first }
}

/**
 * The failures of all upstreams as one, with the earliest instant to try again; without one where a failure has none, whose backoff then
 * decides. A refusal decides nothing where another upstream may have the cell later. A used-up share concerns one consumer, for whom
 * the others may have room.
 */
const together = (failed: readonly Failed[], now: number, refusedForMs: number): ProviderError => {
  const passing = failed.filter(one => !isRefusal(one))
  const errors = (passing.length > 0 ? passing : failed).map(({ error }) => error)
  const soonest = errors.reduce((one, other) => ((other.retryAt ?? 0) < (one.retryAt ?? 0) ? other : one))
  if (failed.length === 1) return soonest
  const share = errors.find(error => error instanceof ShareUsedUpError)
  if (share) {
    const instants = errors.map(({ retryAt }) => retryAt ?? now + minuteMs)
    return new ShareUsedUpError(share.consumer, Math.min(...instants))
  }
  // By then those that refused it are asked again.
  const latest = passing.length < failed.length ? now + refusedForMs : Number.POSITIVE_INFINITY
  const retryAt = soonest.retryAt === undefined ? undefined : Math.min(soonest.retryAt, latest)
  if (errors.every(error => error instanceof OutOfBudgetError)) return new OutOfBudgetError(retryAt ?? null)
  const message = failed.map(({ name, error }) => `${name}: ${messageOf(error)}`).join('; ')
  return new ProviderError(soonest.code, message, {
    cause: soonest,
    ...(retryAt !== undefined && { retryAt }),
  })
}
