// A batch of queued cells, sent in one request: the budget that is reserved for it, for each consumer what its share allows and for
// cold cells before others; the request, its outcome and its cost; and when it is retried. client.ts chooses the cells and the time.

import { DelegateBackoff, handleWhen, type RetryPolicy, retry } from 'cockatiel'
import type { Clock } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import type { Timeline } from '../weather/timeline.ts'
import type { Budget, Purpose, Reservation } from './budget.ts'
import {
  OutOfBudgetError,
  ProviderError,
  type RefusedAnswer,
  requestOutcomeOf,
  ShareUsedUpError,
} from './errors.ts'
import type { OddValues, ProviderProtocol } from './protocol.ts'
import type { ProviderCall } from './provider-call.ts'
import type { Waiting } from './queue.ts'

export type BatchObserver = {
  /**
   * Called for every request to the provider: its outcome (`ok` or a ProviderErrorCode), points and duration; what went
   * wrong if it brought no weather at all.
   */
  request(outcome: string, points: number, ms: number, reason?: string): void
  /** Called for every response, or element of one, that was refused. */
  refused(why: RefusedAnswer): void
  /** Called for every variable of a cell with values that were left out. */
  odd(values: OddValues): void
}

/** A cell that gets no budget, and why. */
export type RefusedCell = { readonly waiting: Waiting; readonly error: ProviderError }

export type BatchReservation = Pick<Reservation, 'isValid' | 'limited' | 'settle'>

type Reserved = {
  readonly admitted: readonly Waiting[]
  readonly refused: readonly RefusedCell[]
  readonly reservation: BatchReservation
}

/** @param recent the consumers that asked for weather last: they are there, even if they want nothing now */
export const createBatchReservation = (budget: Pick<Budget, 'reserve'>, recent: () => readonly string[]) => {
  const reserveFor = async (cells: readonly Waiting[], purpose: Purpose): Promise<Reserved> => {
    const counts = new Map<string | undefined, number>()
    for (const { consumer } of cells) counts.set(consumer, (counts.get(consumer) ?? 0) + 1)
    const forNobody = counts.get(undefined) ?? 0
    counts.delete(undefined)
    if (counts.size > 0) for (const consumer of recent()) counts.getOrInsert(consumer, 0)
    const claims = [...counts].map(([consumer = '', points]) => ({ consumer, points }))
    const reservation = await budget.reserve(forNobody, purpose, claims)

    const full = new OutOfBudgetError(reservation.retryAt)
    const left = new Map<string | undefined, { points: number; error: ProviderError }>()
    left.set(undefined, { points: reservation.points, error: full })
    for (const [i, { consumer }] of claims.entries()) {
      const { points, heldUntil } = reservation.claims[i] ?? { points: 0, heldUntil: null }
      left.set(consumer, {
        points,
        error: heldUntil === null ? full : new ShareUsedUpError(consumer, heldUntil),
      })
    }
    const admitted: Waiting[] = []
    const refused: RefusedCell[] = []
    for (const waiting of cells) {
      const of = left.get(waiting.consumer)
      if (of && of.points > 0) {
        of.points -= 1
        admitted.push(waiting)
      } else refused.push({ waiting, error: of?.error ?? full })
    }
    return { admitted, refused, reservation }
  }

  return {
    first: async (batch: readonly Waiting[]): Promise<Reserved> => {
      const cold = await reserveFor(batch.filter(isCold), 'cold')
      const others = batch.filter(waiting => !isCold(waiting))
      // Where a cold cell finds no room, none is left for others.
      const full = cold.refused.find(isOfAll)?.error
      const rest = await reserveFor(full ? [] : others, 'refresh')
      const refused = full ? others.map(waiting => ({ waiting, error: full })) : rest.refused
      return {
        admitted: [...cold.admitted, ...rest.admitted],
        refused: [...cold.refused, ...refused],
        reservation: {
          isValid: () => cold.reservation.isValid() && rest.reservation.isValid(),
          // A request belongs to one account.
          limited: cold.reservation.limited,
          settle: async outcome => {
            await Promise.all([cold.reservation.settle(outcome), rest.reservation.settle(outcome)])
          },
        },
      }
    },
    /** For the whole of a batch that is tried again. @throws OutOfBudgetError, ShareUsedUpError */
    again: async (batch: readonly Waiting[]): Promise<BatchReservation> => {
      const { refused, reservation } = await reserveFor(batch, batch.some(isCold) ? 'cold' : 'refresh')
      if (!refused[0]) return reservation
      await reservation.settle('unsent')
      throw (refused.find(isOfAll) ?? refused[0]).error
    },
  }
}

const isCold = ({ urgency }: Waiting): boolean => urgency === 'cold'
/** Whether the whole budget refused, not one share. */
const isOfAll = ({ error }: RefusedCell): boolean => error instanceof OutOfBudgetError

/**
 * Sends one request, and settles what it cost. The timeline of each cell, or what is wrong with its element.
 * @throws ProviderError when there is no good element
 */
export const createBatchRequest =
  ({
    call,
    protocol,
    clock,
    observer,
  }: {
    readonly call: Pick<ProviderCall, 'bytes'>
    readonly protocol: ProviderProtocol
    readonly clock: Clock
    readonly observer: BatchObserver
  }) =>
  async (
    batch: readonly Waiting[],
    reservation: BatchReservation,
  ): Promise<readonly (Timeline | ProviderError)[]> => {
    const cells = batch.map(({ cell }) => cell)
    const started = performance.now()
    const requestedAt = clock.now()
    let outcome = 'ok'
    let reason: string | undefined
    let faults: readonly ProviderError[] = []
    let closed: Promise<void> | undefined
    try {
      const request = protocol.requestFor(cells)
      const body = call.bytes(request, reservation.isValid)
      const results = await request.decode(body, requestedAt, clock, observer.odd)
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
      void reservation.settle(requestOutcomeOf(error))
      if (error instanceof ProviderError && error.code === 'provider_limited')
        closed = reservation.limited(error.retryAt ?? clock.now(), error.message)
      throw error
    } finally {
      for (const { refused } of faults) if (refused) observer.refused(refused)
      observer.request(outcome, cells.length, performance.now() - started, reason)
      await closed
    }
  }

export type RetryOptions = {
  /** How often a retryable request is retried, and the first backoff; later ones double. */
  readonly retries: number
  readonly retryDelayMs: number
}

export const retryPolicy = (
  { retries, retryDelayMs }: RetryOptions,
  { busyPauseMs }: Pick<ProviderProtocol, 'busyPauseMs'>,
): RetryPolicy =>
  retry(
    handleWhen(error => error instanceof ProviderError && error.retryable),
    {
      maxAttempts: retries,
      backoff: new DelegateBackoff(({ attempt, result }) => {
        const failed = 'error' in result ? result.error : undefined
        const pause = retryDelayMs * 2 ** (attempt - 1)
        const least = failed instanceof ProviderError && failed.code === 'provider_busy' ? busyPauseMs : 0
        // Half of the backoff is jitter, so that instances which failed together do not retry together.
        return Math.max(least, pause * (0.5 + Math.random() / 2))
      }),
    },
  )
