// Which upstream loads a cell: the first one that can. The next one is asked only after the one before has refused or failed, never
// beside it. One whose circuit is not closed is left out, so that nothing but its probe is sent there. One that refused the cell a
// while ago is left out too. accounts.ts opens the upstreams, next-upstream.ts says which one would load now.

import { after, type Clock } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import type { Cell } from '../weather/cell.ts'
import type { Breaker } from './breaker.ts'
import type { Provider } from './client.ts'
import { OutOfBudgetError, ProviderError, type ProviderErrorCode, ShareUsedUpError } from './errors.ts'
import { soonMs } from './next-upstream.ts'
import type { Urgency } from './queue.ts'

/** An upstream as far as the choice needs it. */
export type FailoverUpstream = {
  readonly name: string
  readonly account: {
    readonly provider: Pick<Provider, 'expedite' | 'throttled'>
    readonly breaker: Pick<Breaker, 'state'>
  }
}

export type FailoverOptions = {
  /** How long a cold cell waits for the next window of a budget when no upstream has room. */
  readonly queueForMs: number
  /** How long an upstream is left out for a cell that it refused. */
  readonly refusedForMs: number
}

const leastWaitMs = 20
const maxRefused = 10_000

const ofBudget: ReadonlySet<ProviderErrorCode> = new Set(['provider_limited', 'key_share_used_up'])

type Failed = { readonly name: string; readonly error: ProviderError }

/** @param upstreams in their order, two or more */
export const createFailover = <Upstream extends FailoverUpstream>(
  upstreams: readonly [Upstream, ...Upstream[]],
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
  const isClosed = ({ account }: Upstream): boolean => account.breaker.state().state === 'closed'

  /** Those to ask, in their order. A cell that somebody waits for tries what is left out in the end. */
  const orderFor = (cell: Cell, urgency: Urgency): readonly Upstream[] => {
    const usable = upstreams.filter(upstream => isClosed(upstream) && !hasRefused(upstream, cell))
    if (usable.length === 0) return upstreams
    return urgency === 'cold' ? [...usable, ...upstreams.filter(each => !usable.includes(each))] : usable
  }
  /** How long until there is room in a budget again; infinite for an error that is of something else. */
  const untilRoom = ({ code, retryAt = Number.POSITIVE_INFINITY }: ProviderError): number =>
    ofBudget.has(code) ? Math.max(leastWaitMs, retryAt - clock.now()) : Number.POSITIVE_INFINITY
  /** Whether a load ends at this upstream, and asks no other one. */
  const endsAt = (error: ProviderError, urgency: Urgency): boolean =>
    urgency !== 'cold' && untilRoom(error) <= soonMs
  /** Whether a load waits where none of them has room. */
  const mayWait = (error: ProviderError, urgency: Urgency, mostMs: number): boolean =>
    urgency === 'cold' && untilRoom(error) <= mostMs

  const tryAll = async <Result>(
    cell: Cell,
    urgency: Urgency,
    ask: (upstream: Upstream) => Promise<Result>,
  ): Promise<{ readonly result: Result } | { readonly error: ProviderError }> => {
    const failed: Failed[] = []
    for (const upstream of orderFor(cell, urgency))
      try {
        return { result: await ask(upstream) }
      } catch (error) {
        // A fault of this program is no reason to ask somebody else.
        if (!(error instanceof ProviderError)) throw error
        failed.push({ name: upstream.name, error })
        if (error.code === 'provider_refused') recordRefusal(upstream, cell)
        if (endsAt(error, urgency)) break
      }
    return { error: together(failed) }
  }

  return {
    /**
     * What the first upstream gives that can. A cold cell waits for room in a budget where all of them are without.
     * @throws ProviderError, of which ShareUsedUpError concerns one consumer alone
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
        const held = account.provider.throttled(consumer, urgency)
        if (!held) return undefined
        if (endsAt(held, urgency)) return held
        if (!soonest || (held.retryAt ?? 0) < (soonest.retryAt ?? 0)) soonest = held
      }
      return soonest && mayWait(soonest, urgency, queueForMs) ? undefined : soonest
    },
  }
}

/**
 * The failures of all upstreams as one. A used-up share concerns one consumer, for whom the others may have room. What can be tried
 * again at a known instant says when; a failure without one has a backoff of its own.
 */
const together = (failed: readonly Failed[]): ProviderError => {
  const errors = failed.map(({ error }) => error)
  const soonest = errors.reduce((one, other) => ((other.retryAt ?? 0) < (one.retryAt ?? 0) ? other : one))
  if (errors.length === 1) return soonest
  const share = errors.find(error => error instanceof ShareUsedUpError)
  if (share) {
    const instants = errors.flatMap(({ retryAt }) => retryAt ?? [])
    return new ShareUsedUpError(share.consumer, Math.min(...instants))
  }
  if (errors.every(error => error instanceof OutOfBudgetError))
    return new OutOfBudgetError(soonest.retryAt ?? null)
  const message = failed.map(({ name, error }) => `${name}: ${messageOf(error)}`).join('; ')
  const { code, retryAt } = soonest
  return new ProviderError(code, message, { cause: soonest, ...(retryAt !== undefined && { retryAt }) })
}
