// Sends a batch of queued cells in one request, retries it, settles its cost, and gives each cell its result. A refused batch is halved,
// so that one bad point fails no other.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { DelegateBackoff, handleWhen, type RetryPolicy, retry } from 'cockatiel'
import type { Clock } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import type { BatchReservation, createBatchReservation, RefusedCell } from './batch-reservation.ts'
import type { Breaker } from './breaker.ts'
import {
  cellCodes,
  notSent,
  ProviderError,
  type RefusedAnswer,
  requestOutcomeOf,
  ShareUsedUpError,
} from './errors.ts'
import type { OddValues, ProviderProtocol } from './protocol.ts'
import type { ProviderCall } from './provider-call.ts'
import { unqueued, type Waiting } from './queue.ts'

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
  /** Called for every cell that is loaded or refreshed for a consumer. */
  loaded(consumer: string): void
}

export type BatchParts = {
  readonly call: Pick<ProviderCall, 'bytes'>
  readonly protocol: ProviderProtocol
  readonly breaker: Breaker
  readonly clock: Clock
  readonly observer: BatchObserver
}

/** Takes the cells of a batch that was not served. */
type Unserved = {
  /** Cells that the budget has no room for. */
  readonly refused: (cells: readonly RefusedCell[]) => void
  /** Cells that go on without those that were refused. */
  readonly putBack: (cells: readonly Waiting[]) => void
}

// What a probe asks for may be charged and is not kept.
export const maxProbePoints = 10

export class BatchSender {
  readonly #parts: BatchParts
  readonly #reserve: ReturnType<typeof createBatchReservation>
  readonly #unserved: Unserved
  readonly #closing: AbortSignal
  readonly #retry: RetryPolicy
  readonly #deliver: ReturnType<typeof createDelivery>
  /** The points of the largest request that failed with the provider since one succeeded while the circuit was closed. */
  #failedPoints = 1

  /** @param track records what is under way @param closing aborted when nothing may be sent any more */
  constructor(
    options: RetryOptions,
    parts: BatchParts,
    reserve: ReturnType<typeof createBatchReservation>,
    unserved: Unserved,
    closing: AbortSignal,
    track: Track,
  ) {
    this.#parts = parts
    this.#reserve = reserve
    this.#unserved = unserved
    this.#closing = closing
    this.#retry = retryPolicy(options, parts.protocol)
    this.#deliver = createDelivery(parts.observer, track)
  }

  /** Resolves when every cell has its result, or waits again. */
  async serve(batch: readonly Waiting[], first?: BatchReservation): Promise<void> {
    let unused = first
    try {
      const results = await this.#retry.execute(async () => {
        if (this.#closing.aborted && !unused) throw notSent('the gateway stops')
        const reservation = unused ?? (await this.#reserve.again(batch))
        unused = undefined
        try {
          return await this.#requestGuarded(batch, reservation)
        } finally {
          // Nothing was sent if the breaker is open; otherwise the reservation is settled already.
          void reservation.settle('unsent')
        }
      }, this.#closing)
      await this.#deliver(batch, results)
    } catch (error) {
      await this.#fail(batch, error)
    }
  }

  /**
   * Asks for some of these cells while the circuit is open, and keeps nothing. One point first, so that an outage does not spend
   * the budget; then as many as the request had that failed, because a provider that is overloaded answers small requests. Never
   * rejects.
   */
  async probe(cells: readonly Cell[]): Promise<void> {
    const all = cells.slice(0, Math.min(this.#failedPoints, maxProbePoints)).map(unqueued)
    const batches = all.length > 1 ? [all.slice(0, 1), all] : [all]
    const reserved: { batch: readonly Waiting[]; reservation: BatchReservation }[] = []
    try {
      for (const batch of batches) reserved.push({ batch, reservation: await this.#reserve.again(batch) })
      await this.#parts.breaker.run(async () => {
        for (const { batch, reservation } of reserved) await request(this.#parts, batch, reservation)
      })
    } catch {
      // The breaker counts what failed; without room in the budget there is no probe.
    } finally {
      for (const { reservation } of reserved) void reservation.settle('unsent')
    }
  }

  async #requestGuarded(batch: readonly Waiting[], reservation: BatchReservation) {
    const { breaker } = this.#parts
    const isClosed = breaker.state().state === 'closed'
    try {
      const results = await breaker.run(() => request(this.#parts, batch, reservation))
      // A request that closes the circuit is a probe of one point, and says nothing of larger ones.
      if (isClosed) this.#failedPoints = 1
      return results
    } catch (error) {
      // Recorded before the retries, which an open circuit ends with another error.
      if (error instanceof ProviderError && error.opensCircuit)
        this.#failedPoints = Math.max(this.#failedPoints, batch.length)
      throw error
    }
  }

  async #fail(batch: readonly Waiting[], error: unknown): Promise<void> {
    const code = error instanceof ProviderError ? error.code : undefined
    if (batch.length > 1 && code && cellCodes.has(code)) {
      const half = Math.ceil(batch.length / 2)
      await this.serve(batch.slice(0, half))
      await this.serve(batch.slice(half))
    } else if (error instanceof ShareUsedUpError) {
      const isOwn = ({ consumer }: Waiting): boolean => consumer === error.consumer
      this.#unserved.refused(batch.filter(isOwn).map(waiting => ({ waiting, error })))
      this.#unserved.putBack(batch.filter(waiting => !isOwn(waiting)))
    } else if (error instanceof ProviderError && code === 'provider_limited') {
      this.#unserved.refused(batch.map(waiting => ({ waiting, error })))
    } else {
      const reason = error instanceof ProviderError ? this.#withRetryAt(error) : error
      for (const { reject } of batch) reject(reason)
    }
  }

  /**
   * A cell that failed as the probe can be retried when the circuit may close again, so that it is not stale for longer than the
   * others.
   */
  #withRetryAt(error: ProviderError): ProviderError {
    const retryAt = this.#parts.breaker.openError()?.retryAt
    return retryAt === undefined || error.retryAt !== undefined
      ? error
      : new ProviderError(error.code, error.message, { cause: error, retryAt })
  }
}

type Track = <Result>(ended: Promise<Result>) => Promise<Result>

/**
 * Gives the results of batches to the waiting loads, one batch after the other. Resolves when the batch before is delivered: the next
 * request is under way meanwhile, but a provider that is quicker than the loads that wait fills no memory.
 */
const createDelivery = ({ loaded }: Pick<BatchObserver, 'loaded'>, track: Track) => {
  let last: Promise<void> = Promise.resolve()
  const deliverAll = async (batch: readonly Waiting[], results: readonly (Timeline | ProviderError)[]) => {
    for (const [i, { resolve, reject, consumer }] of batch.entries()) {
      // Each load has work to do with its result, such as compressing it for the shared tier: other requests run in between.
      if (i > 0) await nextTurn()
      const result = results[i]
      if (result === undefined || result instanceof ProviderError) reject(result)
      else {
        if (consumer !== undefined) loaded(consumer)
        resolve(result)
      }
    }
  }
  return async (batch: readonly Waiting[], results: readonly (Timeline | ProviderError)[]): Promise<void> => {
    const before = last
    last = before.then(() => track(deliverAll(batch, results)))
    await before
  }
}

/**
 * Sends one request, and settles what it cost. The timeline of each cell, or what is wrong with its element.
 * @throws ProviderError when there is no good element
 */
const request = async (
  { call, protocol, clock, observer }: BatchParts,
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
    const sent = protocol.requestFor(cells)
    const body = call.bytes(sent, reservation.isValid)
    const results = await sent.decode(body, requestedAt, clock, observer.odd)
    void reservation.settle('answered')
    faults = results.filter(result => result instanceof ProviderError)
    outcome = faults[0]?.code ?? 'ok'
    // Without one good element the provider has failed, not a point.
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

const retryPolicy = (
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
