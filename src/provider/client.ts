// Loads the timelines of cells from the provider in as few requests as possible. Queued cells share the next request, the
// most urgent first, as many as the protocol and the budget allow; a limit bounds concurrent requests. Retries, and halves
// a batch that is refused. Caches nothing, and knows the protocol only by its type.

import { setImmediate as nextTurn } from 'node:timers/promises'
import pLimit from 'p-limit'
import { after, type Clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import type { Breaker } from './breaker.ts'
import type { Budget, Reservation } from './budget.ts'
import { OutOfBudgetError, ProviderError, type RefusedAnswer } from './errors.ts'
import type { ProviderProtocol } from './protocol.ts'
import type { ProviderCall } from './provider-call.ts'
import { createQueue, type Urgency, type Waiting } from './queue.ts'
import { outcomeOf } from './request-cost.ts'
import { type RetryOptions, retryPolicy } from './retrying.ts'

export type ProviderOptions = RetryOptions & {
  readonly maxConcurrent: number
  readonly maxPointsPerRequest: number
  /** How long a cold cell waits for the budget's next window; it fails at once when that is further away. */
  readonly queueForMs: number
}

export type ProviderObserver = {
  /**
   * Called for every request to the provider: its outcome (`ok` or a ProviderErrorCode), points and duration; what went
   * wrong if it brought no weather at all.
   */
  request(outcome: string, points: number, ms: number, reason?: string): void
  /** Called for every response, or element of one, that was refused. */
  refused(why: RefusedAnswer): void
}

export type ProviderParts = {
  readonly call: Pick<ProviderCall, 'bytes'>
  readonly protocol: ProviderProtocol
  readonly breaker: Breaker
  readonly budget: Pick<Budget, 'reserve' | 'limited'>
  readonly clock: Clock
  readonly observer: ProviderObserver
}

export type Provider = {
  /** The timeline of a cell. @throws ProviderError */
  load(cell: Cell, urgency?: Urgency): Promise<Timeline>
  /** A consumer now waits for a cell that was queued as less urgent. */
  expedite(cell: Cell): void
  /** How many cells are queued. */
  waiting(): number
  /**
   * Resolves when no request is under way or about to be sent, pauses before retries included. Cells that wait for the
   * budget's next window do not count.
   */
  settled(): Promise<void>
  /** For the requests that are sent from now on. */
  apply(options: ProviderOptions): void
  /** Runs other work that sends requests to the provider, as one of `maxConcurrent` requests and in order of arrival. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result>
  close(): void
}

const resolvedPerTurn = 10

export const createProvider = (given: ProviderOptions, parts: ProviderParts): Provider => {
  const { call, protocol, breaker, budget, clock, observer } = parts
  let options = given
  let retry = retryPolicy(options, protocol)
  const limit = pLimit(options.maxConcurrent)
  const underWay = new Set<Promise<unknown>>()
  const queue = createQueue()
  let endWake: (() => void) | undefined
  let isPending = false

  const request = async (
    cells: readonly Cell[],
    reservation: Reservation,
  ): Promise<readonly (Timeline | ProviderError)[]> => {
    const started = performance.now()
    const requestedAt = clock.now()
    let outcome = 'ok'
    let reason: string | undefined
    let faults: readonly ProviderError[] = []
    try {
      const body = call.bytes(protocol.requestFor(cells), reservation.isValid)
      const results = await protocol.decode(body, { cells, requestedAt, clock })
      void reservation.settle('answered')
      faults = results.filter(result => result instanceof ProviderError)
      outcome = faults[0]?.code ?? 'ok'
      // Without one good element the provider is at fault, not a point.
      if (faults[0] && faults.length === results.length) throw faults[0]
      return results
    } catch (error) {
      outcome = error instanceof ProviderError ? error.code : 'internal'
      reason = messageOf(error)
      if (error instanceof ProviderError && faults.length === 0) faults = [error]
      void reservation.settle(outcomeOf(error))
      throw error
    } finally {
      for (const { refused } of faults) if (refused) observer.refused(refused)
      observer.request(outcome, cells.length, performance.now() - started, reason)
    }
  }

  // Cells that the budget has no room for: cold ones are requeued if the next window is near, the others are rejected.
  const requeueOrReject = (batch: readonly Waiting[], error: ProviderError): void => {
    const leftMs = (error.retryAt ?? Number.POSITIVE_INFINITY) - clock.now()
    const requeued = batch.filter(({ urgency }) => urgency === 'cold' && leftMs <= options.queueForMs)
    queue.putBack(requeued)
    for (const waiting of batch) if (!requeued.includes(waiting)) waiting.reject(error)
    // Tried again every second at least, because the windows follow another clock than the timer.
    if (requeued.length > 0) endWake ??= after(clock, Math.min(Math.max(leftMs, 20), 1_000), send)
  }

  /** Reserves budget for a batch; cells without room are requeued or rejected. */
  const reserveFor = async (
    batch: readonly Waiting[],
  ): Promise<{ admitted: Waiting[]; reservation: Reservation }> => {
    const cold = batch.filter(({ urgency }) => urgency === 'cold')
    const others = batch.filter(({ urgency }) => urgency !== 'cold')
    const forCold = await budget.reserve(cold.length, 'cold')
    const forOthers = await budget.reserve(forCold.points < cold.length ? 0 : others.length, 'refresh')
    const unadmitted = [...cold.slice(forCold.points), ...others.slice(forOthers.points)]
    if (unadmitted.length > 0)
      requeueOrReject(unadmitted, new OutOfBudgetError(forCold.retryAt ?? forOthers.retryAt))
    return {
      admitted: [...cold.slice(0, forCold.points), ...others.slice(0, forOthers.points)],
      reservation: {
        points: forCold.points + forOthers.points,
        retryAt: null,
        isValid: () => forCold.isValid() && forOthers.isValid(),
        settle: async outcome => {
          await Promise.all([forCold.settle(outcome), forOthers.settle(outcome)])
        },
      },
    }
  }

  /** Reserves budget for a retry of the whole batch. @throws OutOfBudgetError */
  const reserveForRetry = async (batch: readonly Waiting[]): Promise<Reservation> => {
    const purpose = batch.some(({ urgency }) => urgency === 'cold') ? 'cold' : 'refresh'
    const reservation = await budget.reserve(batch.length, purpose)
    if (reservation.points === batch.length) return reservation
    await reservation.settle('unsent')
    throw new OutOfBudgetError(reservation.retryAt)
  }

  // The provider refuses a batch as a whole. Halving it isolates the bad point, so that the other cells load.
  const serve = async (batch: readonly Waiting[], first?: Reservation): Promise<void> => {
    let unused = first
    try {
      const results = await retry.execute(async () => {
        const reservation = unused ?? (await reserveForRetry(batch))
        unused = undefined
        try {
          return await breaker.run(() =>
            request(
              batch.map(({ cell }) => cell),
              reservation,
            ),
          )
        } finally {
          // Nothing was sent if the breaker is open; otherwise the reservation is settled already.
          void reservation.settle('unsent')
        }
      })
      for (const [i, { resolve, reject }] of batch.entries()) {
        // Each waiter has work to do with its result, such as caching it: let other requests run in between.
        if (i > 0 && i % resolvedPerTurn === 0) await nextTurn()
        const result = results[i]
        if (result === undefined || result instanceof ProviderError) reject(result)
        else resolve(result)
      }
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
    } else if (error instanceof OutOfBudgetError) {
      requeueOrReject(batch, error)
    } else if (error instanceof ProviderError && code === 'provider_limited') {
      await budget.limited(error.retryAt ?? clock.now(), error.message)
      requeueOrReject(batch, error)
    } else {
      const reason = error instanceof ProviderError ? withRetryAt(error) : error
      for (const { reject } of batch) reject(reason)
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

  // Runs when one more request may start, and takes all cells queued by then: those of the same turn of the event loop, and
  // those queued while earlier requests were in flight.
  const sendWaiting = async (): Promise<void> => {
    await nextTurn()
    const openError = breaker.openError()
    if (openError) {
      for (const { reject } of queue.take(Number.POSITIVE_INFINITY)) reject(openError)
      return
    }
    // While the breaker is not closed a probe has one point, so that an outage does not spend the budget.
    const mostCells = Math.min(options.maxPointsPerRequest, protocol.mostCellsPerRequest)
    const most = breaker.state().state === 'closed' ? mostCells : 1
    const { admitted, reservation } = await reserveFor(queue.take(most))
    if (admitted.length > 0) await serve(admitted, reservation)
  }

  function send(): void {
    endWake?.()
    endWake = undefined
    // A pending run takes all cells; one more would find none.
    if (isPending) return
    isPending = true
    const run = (): Promise<void> => {
      isPending = false
      return sendWaiting()
    }
    void inTurn(run).finally(() => {
      if (queue.size > 0 && !endWake) send()
    })
  }

  function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const ended = limit(work)
    const forget = () => void underWay.delete(ended)
    underWay.add(ended)
    ended.then(forget, forget)
    return ended
  }

  return {
    load: (cell, urgency = 'cold') => {
      const { promise } = queue.add(cell, urgency)
      send()
      return promise
    },
    expedite: queue.expedite,
    waiting: () => queue.size,
    settled: async () => {
      // What began in this turn of the event loop queues its cells in it; what ends in one may queue more.
      for (await nextTurn(); underWay.size > 0; await nextTurn()) await Promise.allSettled(underWay)
    },
    apply: next => {
      options = next
      retry = retryPolicy(next, protocol)
      limit.concurrency = next.maxConcurrent
    },
    inTurn,
    close: () => endWake?.(),
  }
}
