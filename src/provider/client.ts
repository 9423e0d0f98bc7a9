// Timelines from the provider, one cell asked for at a time, in as few requests as possible: cells that wait travel
// together in the next request, the most urgent first, as many as the protocol takes and the budget has room for, and no
// more requests at once than the provider runs for us. Keeps nothing, and knows no more of the protocol than its type.

import { setImmediate as nextTurn } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { Clock } from '../clock.ts'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import type { Breaker } from './breaker.ts'
import type { Budget, Lease } from './budget.ts'
import { OutOfBudgetError, ProviderError, type RefusedAnswer } from './errors.ts'
import type { ProviderProtocol } from './protocol.ts'
import type { ProviderCall } from './provider-call.ts'
import { createQueue, type Urgency, type Waiting } from './queue.ts'
import { outcomeOf } from './request-cost.ts'
import { type RetryOptions, retryPolicy } from './retrying.ts'

export type ProviderOptions = RetryOptions & {
  readonly maxConcurrent: number
  readonly maxPointsPerRequest: number
  /** How long a cold cell waits for the budget's next window; refused at once when that is further away. */
  readonly queueForMs: number
}

export type ProviderObserver = {
  /** Hears of every request to the provider: its outcome (`ok` or a ProviderErrorCode), points and duration. */
  request(outcome: string, points: number, ms: number): void
  /** Hears of every answer, or element of one, that came and was refused. */
  refused(why: RefusedAnswer): void
}

export type ProviderParts = {
  readonly call: Pick<ProviderCall, 'bytes'>
  readonly protocol: ProviderProtocol
  readonly breaker: Breaker
  readonly budget: Pick<Budget, 'take' | 'limited'>
  readonly clock: Clock
  readonly observer: ProviderObserver
}

export type Provider = {
  /** The timeline of a cell. @throws ProviderError */
  load(cell: Cell, urgency?: Urgency): Promise<Timeline>
  /** Raises the urgency of a queued cell, because a request now waits for it. */
  expedite(cell: Cell): void
  /** How many cells wait for a request with room. */
  waiting(): number
  close(): void
}

const handedOverAtOnce = 10

export const createProvider = (options: ProviderOptions, parts: ProviderParts): Provider => {
  const { call, protocol, breaker, budget, clock, observer } = parts
  const { queueForMs } = options
  const mostCells = Math.min(options.maxPointsPerRequest, protocol.mostCellsPerRequest)
  const limit = pLimit(options.maxConcurrent)
  const again = retryPolicy(options, protocol)
  const queue = createQueue()
  let wake: NodeJS.Timeout | undefined

  const ask = async (
    cells: readonly Cell[],
    lease: Lease,
  ): Promise<readonly (Timeline | ProviderError)[]> => {
    const started = performance.now()
    const askedAt = clock.now()
    let outcome = 'ok'
    let faults: readonly ProviderError[] = []
    try {
      const body = call.bytes(protocol.requestFor(cells), lease.isValid)
      const results = await protocol.decode(body, { cells, askedAt, clock })
      void lease.done('answered')
      faults = results.filter(result => result instanceof ProviderError)
      outcome = faults[0]?.code ?? 'ok'
      // Not one good element: that is the provider's fault and not a point's.
      if (faults[0] && faults.length === results.length) throw faults[0]
      return results
    } catch (error) {
      outcome = error instanceof ProviderError ? error.code : 'internal'
      if (error instanceof ProviderError && faults.length === 0) faults = [error]
      void lease.done(outcomeOf(error))
      throw error
    } finally {
      for (const { refused } of faults) if (refused) observer.refused(refused)
      observer.request(outcome, cells.length, performance.now() - started)
    }
  }

  // Those the budget has no room for: who can wait for its next window does, the others hear when that is.
  const refuse = (batch: readonly Waiting[], error: ProviderError): void => {
    const leftMs = (error.retryAt ?? Number.POSITIVE_INFINITY) - clock.now()
    const patient = batch.filter(({ urgency }) => urgency === 'cold' && leftMs <= queueForMs)
    queue.putBack(patient)
    for (const waiting of batch) if (!patient.includes(waiting)) waiting.reject(error)
    // Looked at again every second at least, because the clock of the windows is not the timer's.
    if (patient.length > 0) wake ??= setTimeout(send, Math.min(Math.max(leftMs, 20), 1_000))
  }

  /** Takes the means for a request out of the budget; those it does not suffice for are refused. */
  const fund = async (batch: readonly Waiting[]): Promise<{ funded: Waiting[]; lease: Lease }> => {
    const cold = batch.filter(({ urgency }) => urgency === 'cold')
    const others = batch.filter(({ urgency }) => urgency !== 'cold')
    const forCold = await budget.take(cold.length, 'cold')
    const forOthers = await budget.take(forCold.points < cold.length ? 0 : others.length, 'refresh')
    const unfunded = [...cold.slice(forCold.points), ...others.slice(forOthers.points)]
    if (unfunded.length > 0) refuse(unfunded, new OutOfBudgetError(forCold.retryAt ?? forOthers.retryAt))
    return {
      funded: [...cold.slice(0, forCold.points), ...others.slice(0, forOthers.points)],
      lease: {
        points: forCold.points + forOthers.points,
        retryAt: null,
        isValid: () => forCold.isValid() && forOthers.isValid(),
        done: async outcome => {
          await Promise.all([forCold.done(outcome), forOthers.done(outcome)])
        },
      },
    }
  }

  /** Means for all of a batch that is asked for once more, or the error that ends it. */
  const fundAgain = async (batch: readonly Waiting[]): Promise<Lease> => {
    const purpose = batch.some(({ urgency }) => urgency === 'cold') ? 'cold' : 'refresh'
    const lease = await budget.take(batch.length, purpose)
    if (lease.points === batch.length) return lease
    await lease.done('unsent')
    throw new OutOfBudgetError(lease.retryAt)
  }

  // A batch is refused as a whole; halving it finds the point that spoils it, so that one bad point costs nobody else.
  const serve = async (batch: readonly Waiting[], first?: Lease): Promise<void> => {
    let paid = first
    try {
      const results = await again.execute(async () => {
        const lease = paid ?? (await fundAgain(batch))
        paid = undefined
        try {
          return await breaker.run(() =>
            ask(
              batch.map(({ cell }) => cell),
              lease,
            ),
          )
        } finally {
          // Nothing was sent if the breaker stood in the way; otherwise this comes second and changes nothing.
          void lease.done('unsent')
        }
      })
      for (const [i, { resolve, reject }] of batch.entries()) {
        // Whoever waits has work to do with it, such as keeping it for the fleet: others are answered in between.
        if (i > 0 && i % handedOverAtOnce === 0) await nextTurn()
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
      refuse(batch, error)
    } else if (error instanceof ProviderError && code === 'provider_limited') {
      await budget.limited(error.retryAt ?? clock.now())
      refuse(batch, error)
    } else {
      const told = error instanceof ProviderError ? withEnd(error) : error
      for (const { reject } of batch) reject(told)
    }
  }

  // A cell that failed as the probe can be retried when the circuit may close again, so that it is not stale for longer than
  // the others.
  const withEnd = (error: ProviderError): ProviderError => {
    const retryAt = breaker.openError()?.retryAt
    return retryAt === undefined || error.retryAt !== undefined
      ? error
      : new ProviderError(error.code, error.message, { cause: error, retryAt })
  }

  // Runs when the provider has room for one more request of ours, and takes along all who wait by then: those of the
  // same turn of the event loop, and those who came while earlier requests were out.
  const sendWaiting = async (): Promise<void> => {
    await nextTurn()
    const openError = breaker.openError()
    if (openError) {
      for (const { reject } of queue.take(Number.POSITIVE_INFINITY)) reject(openError)
      return
    }
    // A provider that may be unwell is tried with a single point, so that an outage does not eat the budget.
    const most = breaker.state().state === 'closed' ? mostCells : 1
    const { funded, lease } = await fund(queue.take(most))
    if (funded.length > 0) await serve(funded, lease)
  }

  function send(): void {
    clearTimeout(wake)
    wake = undefined
    // One that has not begun takes along everybody; more would find nobody left.
    if (limit.pendingCount > 0) return
    void limit(sendWaiting).finally(() => {
      if (queue.size > 0 && !wake) send()
    })
  }

  return {
    load: (cell, urgency = 'cold') => {
      const { promise } = queue.add(cell, urgency)
      send()
      return promise
    },
    expedite: queue.expedite,
    waiting: () => queue.size,
    close: () => clearTimeout(wake),
  }
}
