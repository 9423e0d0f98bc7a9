// Loads the timelines of cells from the provider in as few requests as possible. Queued cells share the next request, the
// most urgent first, as many as the protocol and the budget allow; a limit bounds concurrent requests. Retries, and halves
// a batch that is refused. Caches nothing, and knows the protocol only by its type. Longer than 300 lines, because each
// outcome of a request changes the queue.

import { setImmediate as nextTurn } from 'node:timers/promises'
import pLimit from 'p-limit'
import { after, type Clock } from '../common/clock.ts'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import {
  type BatchObserver,
  type BatchReservation,
  createBatchRequest,
  createBatchReservation,
  type RefusedCell,
  type RetryOptions,
  retryPolicy,
} from './batch.ts'
import type { Breaker } from './breaker.ts'
import type { Budget } from './budget.ts'
import { notSent, OutOfBudgetError, ProviderError, ShareUsedUpError } from './errors.ts'
import type { ProviderProtocol } from './protocol.ts'
import type { ProviderCall } from './provider-call.ts'
import { createQueue, type Urgency, type Waiting } from './queue.ts'

export type ProviderOptions = RetryOptions & {
  readonly maxConcurrent: number
  readonly maxPointsPerRequest: number
  /** How long a cold cell waits for the budget's next window; it fails at once when that is further away. */
  readonly queueForMs: number
}

export type ProviderObserver = BatchObserver & {
  /** Called for every cell that is loaded or refreshed for a consumer. */
  loaded(consumer: string): void
}

export type ProviderParts = {
  readonly call: Pick<ProviderCall, 'bytes'>
  readonly protocol: ProviderProtocol
  readonly breaker: Breaker
  readonly budget: Pick<Budget, 'reserve'>
  /** Those that asked for weather of late, at most two: so a consumer that loads is known to be alone. */
  readonly recentConsumers: () => readonly string[]
  readonly clock: Clock
  readonly observer: ProviderObserver
}

export type Provider = ReturnType<typeof createProvider>

/**
 * Until when a consumer whose share of the budget is used up may load no cold cells, which have the reserve too, and no others;
 * and since when. Ms since the epoch.
 */
type Held = { readonly cold: number; readonly others: number; readonly since: number }

// Forgotten when their time is over, at the latest when there are so many.
const maxHeld = 10_000
// The part of a request that one consumer may take while others wait: theirs comes sooner after a short request.
const batchShare = 1 / 20
// What a probe asks for may be charged and is not kept.
export const maxProbePoints = 10

const unqueued = (cell: Cell): Waiting => ({
  cell,
  queuedAt: 0,
  urgency: 'refresh_ahead',
  consumer: undefined,
  ...Promise.withResolvers<Timeline>(),
})

export const createProvider = (options: ProviderOptions, parts: ProviderParts) => {
  const { protocol, breaker, budget, recentConsumers, clock, observer } = parts
  const retry = retryPolicy(options, protocol)
  const limit = pLimit(options.maxConcurrent)
  const underWay = new Set<Promise<unknown>>()
  const queue = createQueue()
  const held = new Map<string, Held>()
  const reserve = createBatchReservation(budget, recentConsumers)
  const request = createBatchRequest(parts)
  /** Resolves when the results of the last batch are with those that wait for them. */
  let lastDelivery: Promise<void> = Promise.resolve()
  let endWake: (() => void) | undefined
  let isPending = false
  /** The last attempt found no room, and the next one is due soon. */
  let isFull = false
  /** The points of the largest request that failed for want of the provider since one succeeded behind a closed circuit. */
  let failedPoints = 1
  const closing = new AbortController()

  const wakeAt = (at: number): void => {
    // Tried again every second at least, because the windows follow another clock than the timer.
    endWake ??= after(clock, Math.min(Math.max(at - clock.now(), 20), 1_000), send)
  }
  // A clock that was set back since would hold them for longer.
  const isOver = ({ cold, others, since }: Held, now: number): boolean =>
    Math.max(cold, others) <= now || since > now
  /** An instant in the past for a consumer that may load. */
  const heldUntil = (consumer: string | undefined, urgency: Urgency): number => {
    const found = held.get(consumer ?? '')
    return !found || isOver(found, clock.now()) ? 0 : found[urgency === 'cold' ? 'cold' : 'others']
  }
  // One without room for cold cells has none for others.
  const hold = (consumer: string, urgency: Urgency, until: number): void => {
    if (held.size >= maxHeld) held.clear()
    const cold = urgency === 'cold' ? until : heldUntil(consumer, 'cold')
    held.set(consumer, { cold, others: until, since: clock.now() })
  }
  // Cells that the budget has no room for: cold ones are requeued if there is some soon, the others are rejected.
  const requeueOrReject = (refused: readonly RefusedCell[]): void => {
    const requeued: Waiting[] = []
    for (const { waiting, error } of refused) {
      const { retryAt = Number.POSITIVE_INFINITY } = error
      if (error instanceof ShareUsedUpError) hold(error.consumer, waiting.urgency, retryAt)
      if (waiting.urgency === 'cold' && retryAt - clock.now() <= options.queueForMs) {
        requeued.push(waiting)
        if (error instanceof OutOfBudgetError) isFull = true
        wakeAt(retryAt)
      } else waiting.reject(error)
    }
    queue.putBack(requeued)
  }
  // A consumer that is held back for long gets all its cells rejected. One that is held back for a while keeps its cold cells
  // until they have waited for long enough. What is not cold never waits: another consumer's refresh of the same cell would
  // wait with it.
  const rejectHeld = (): void => {
    const now = clock.now()
    const rejectBefore = (instant: number, consumer: string, urgency: Urgency, until: number): void => {
      for (const waiting of queue.takeBefore(instant, consumer, urgency))
        waiting.reject(new ShareUsedUpError(consumer, until))
    }
    for (const [consumer, each] of held) {
      if (isOver(each, now)) {
        held.delete(consumer)
        continue
      }
      const { cold, others } = each
      const before = cold - now > options.queueForMs ? Number.POSITIVE_INFINITY : now - options.queueForMs
      if (cold > now) rejectBefore(before, consumer, 'cold', cold)
      if (others <= now) continue
      for (const urgency of ['refresh', 'refresh_ahead'] as const)
        rejectBefore(Number.POSITIVE_INFINITY, consumer, urgency, others)
    }
  }

  const deliver = async (batch: readonly Waiting[], results: readonly (Timeline | ProviderError)[]) => {
    for (const [i, { resolve, reject: fails, consumer }] of batch.entries()) {
      // Each waiter has work to do with its result, such as compressing it for the shared tier: let other requests run in
      // between.
      if (i > 0) await nextTurn()
      const result = results[i]
      if (result === undefined || result instanceof ProviderError) fails(result)
      else {
        if (consumer !== undefined) observer.loaded(consumer)
        resolve(result)
      }
    }
  }
  // While the next request is under way; but one batch at a time, so that a provider that is quicker than the waiters fills no
  // memory.
  const deliverInOrder: typeof deliver = async (batch, results) => {
    const before = lastDelivery
    lastDelivery = before.then(() => track(deliver(batch, results)))
    await before
  }

  const requestGuarded = async (batch: readonly Waiting[], reservation: BatchReservation) => {
    const isClosed = breaker.state().state === 'closed'
    try {
      const results = await breaker.run(() => request(batch, reservation))
      // A request that closes the circuit is a probe of one point, and says nothing of larger ones.
      if (isClosed) failedPoints = 1
      return results
    } catch (error) {
      // Before the retries, which an open circuit ends with an error of its own.
      if (error instanceof ProviderError && error.opensCircuit)
        failedPoints = Math.max(failedPoints, batch.length)
      throw error
    }
  }

  // The provider refuses a batch as a whole. Halving it isolates the bad point, so that the other cells load.
  const serve = async (batch: readonly Waiting[], first?: BatchReservation): Promise<void> => {
    let unused = first
    try {
      const results = await retry.execute(async () => {
        if (closing.signal.aborted && !unused) throw notSent('the gateway stops')
        const reservation = unused ?? (await reserve.again(batch))
        unused = undefined
        try {
          return await requestGuarded(batch, reservation)
        } finally {
          // Nothing was sent if the breaker is open; otherwise the reservation is settled already.
          void reservation.settle('unsent')
        }
      }, closing.signal)
      await deliverInOrder(batch, results)
    } catch (error) {
      await fail(batch, error)
    }
  }

  const fail = async (batch: readonly Waiting[], error: unknown): Promise<void> => {
    const code = error instanceof ProviderError ? error.code : undefined
    if (batch.length > 1 && (code === 'provider_refused' || code === 'provider_too_much')) {
      const half = Math.ceil(batch.length / 2)
      await serve(batch.slice(0, half))
      await serve(batch.slice(half))
    } else if (error instanceof ShareUsedUpError) {
      const isOwn = ({ consumer }: Waiting): boolean => consumer === error.consumer
      requeueOrReject(batch.filter(isOwn).map(waiting => ({ waiting, error })))
      // The others go on without it.
      queue.putBack(batch.filter(waiting => !isOwn(waiting)))
    } else if (error instanceof ProviderError && code === 'provider_limited') {
      requeueOrReject(batch.map(waiting => ({ waiting, error })))
    } else {
      const reason = error instanceof ProviderError ? withRetryAt(error) : error
      for (const { reject: fails } of batch) fails(reason)
    }
  }

  // A cell that failed as the probe can be retried when the circuit may close again, so that it is not stale for longer than
  // the others.
  const withRetryAt = (error: ProviderError): ProviderError => {
    const retryAt = breaker.openError()?.retryAt
    return retryAt === undefined || error.retryAt !== undefined
      ? error
      : new ProviderError(error.code, error.message, { cause: error, retryAt })
  }

  // One point first, so that an outage does not spend the budget; then as many as the request had that failed, because a provider
  // that is overloaded answers small requests.
  const probe = async (cells: readonly Cell[]): Promise<void> => {
    const all = cells.slice(0, Math.min(failedPoints, maxProbePoints)).map(unqueued)
    const batches = all.length > 1 ? [all.slice(0, 1), all] : [all]
    const reserved: { batch: readonly Waiting[]; reservation: BatchReservation }[] = []
    try {
      for (const batch of batches) reserved.push({ batch, reservation: await reserve.again(batch) })
      await breaker.run(async () => {
        for (const { batch, reservation } of reserved) await request(batch, reservation)
      })
    } catch {
      // The breaker counts what failed; without room in the budget there is no probe.
    } finally {
      for (const { reservation } of reserved) void reservation.settle('unsent')
    }
  }

  const mostOf = (consumer: string | undefined, urgency: Urgency, most: number): number => {
    if (heldUntil(consumer, urgency) > clock.now()) return 0
    const isAlone = !queue.hasOther(consumer) && recentConsumers().every(other => other === consumer)
    return consumer === undefined || isAlone ? most : Math.ceil(most * batchShare)
  }

  // Runs when one more request may start, and takes all cells queued by then: those of the same turn of the event loop, and
  // those queued while earlier requests were in flight. Returns whether it had any to send.
  const sendWaiting = async (): Promise<boolean> => {
    await nextTurn()
    if (closing.signal.aborted) return false
    const openError = breaker.openError()
    if (openError) {
      for (const { reject: fails } of queue.take(Number.POSITIVE_INFINITY)) fails(openError)
      return false
    }
    // While the breaker is not closed a probe has one point, so that an outage does not spend the budget.
    const maxCells = Math.min(options.maxPointsPerRequest, protocol.maxCellsPerRequest)
    const most = breaker.state().state === 'closed' ? maxCells : 1
    rejectHeld()
    const batch = queue.take(most, (consumer, urgency) => mostOf(consumer, urgency, most))
    // Those that are left wait for their share.
    if (batch.length === 0 && queue.size > 0)
      wakeAt(Math.min(...[...held.values()].map(({ cold }) => cold).filter(at => at > clock.now())))
    const { admitted, refused, reservation } = await reserve.first(batch)
    requeueOrReject(refused)
    if (closing.signal.aborted) {
      await reservation.settle('unsent')
      return false
    }
    if (admitted.length === 0) return false
    // What else is free takes the rest of a burst. Only behind one that had room for all, or each attempt would call the next.
    if (refused.length === 0 && queue.size > 0 && breaker.state().state === 'closed') send()
    await serve(admitted, reservation)
    return true
  }

  function send(): void {
    endWake?.()
    endWake = undefined
    isFull = false
    // A pending run takes all cells that there are by then.
    if (isPending || closing.signal.aborted) return
    isPending = true
    let hasSent = false
    const run = async (): Promise<void> => {
      isPending = false
      hasSent = await sendWaiting()
    }
    void inTurn(run).finally(() => {
      // Requeued cells have a time to wait for; cells that were not taken have none.
      if (queue.size > 0 && (hasSent || !endWake)) send()
    })
  }

  /** Runs other work that sends requests to the provider, as one of `maxConcurrent` requests and in order of arrival. */
  function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    return track(limit(work))
  }

  function track<Result>(ended: Promise<Result>): Promise<Result> {
    const forget = () => void underWay.delete(ended)
    underWay.add(ended)
    ended.then(forget, forget)
    return ended
  }

  return {
    /**
     * The timeline of a cell. Its load is charged to the consumer's share of the budget.
     * @throws ProviderError, of which ShareUsedUpError concerns one consumer alone
     */
    load: (cell: Cell, urgency: Urgency = 'cold', consumer?: string | undefined): Promise<Timeline> => {
      const { promise } = queue.add(cell, urgency, consumer, clock.now())
      // One attempt for each of thousands of cells would take and put back a batch each time.
      if (urgency !== 'cold' || !isFull || !endWake) send()
      return promise
    },
    /** A consumer now waits for a cell that was queued as less urgent. For one that is held back the cell would wait longer. */
    expedite: (cell: Cell, consumer?: string | undefined): void =>
      queue.expedite(cell, heldUntil(consumer, 'cold') > clock.now() ? undefined : consumer),
    /** Why nothing more is loaded for a consumer now; undefined when it is, or waits for a little while at most. */
    heldBack: (consumer: string | undefined, urgency: Urgency): ShareUsedUpError | undefined => {
      const until = heldUntil(consumer, urgency)
      const mayWaitMs = urgency === 'cold' ? options.queueForMs : 0
      if (consumer === undefined || until - clock.now() <= mayWaitMs) return undefined
      return new ShareUsedUpError(consumer, until)
    },
    /** How many cells are queued. */
    waiting: (): number => queue.size,
    /**
     * Resolves when no request is under way or about to be sent, pauses before retries included. Cells that wait for the
     * budget's next window do not count.
     */
    settled: async (): Promise<void> => {
      // Loads that began in this turn of the event loop queue their cells in it; loads that end in a turn may queue more.
      for (await nextTurn(); underWay.size > 0; await nextTurn()) await Promise.allSettled(underWay)
    },
    /** The budget has changed: consumers that are held back try again. */
    budgetChanged: (): void => held.clear(),
    inTurn,
    /** Asks for some of these cells while the circuit is open, and keeps nothing. Never rejects. */
    probe: (cells: readonly Cell[]): Promise<void> =>
      inTurn(async () => {
        if (!closing.signal.aborted) await probe(cells)
      }),
    /** Sends and reserves nothing any more; cells that wait stay so. Resolves when what is under way has ended. */
    close: async (): Promise<void> => {
      closing.abort()
      endWake?.()
      await Promise.allSettled(underWay)
    },
  }
}
