// Loads the timelines of cells from the provider in as few requests as possible. Queued cells share the next request, the most urgent
// first, as many as the protocol and the budget allow. A limit bounds concurrent requests.

import { setImmediate as nextTurn } from 'node:timers/promises'
import pLimit from 'p-limit'
import { after } from '../common/clock.ts'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import { type BatchParts, BatchSender, type RetryOptions } from './batch.ts'
import { createBatchReservation, type RefusedCell } from './batch-reservation.ts'
import type { Budget } from './budget.ts'
import { OutOfBudgetError, ShareUsedUpError } from './errors.ts'
import { Queue, Throttles, type Urgency, type Waiting } from './queue.ts'

export type ProviderOptions = RetryOptions & {
  readonly maxConcurrent: number
  readonly maxPointsPerRequest: number
  /** How long a cold cell waits for the budget, in ms; it fails immediately when that would take longer. */
  readonly queueForMs: number
}

export type ProviderParts = BatchParts & {
  readonly budget: Pick<Budget, 'reserve'>
  /** The consumers that asked for weather last, at most two: they tell whether a consumer that loads is the only one. */
  readonly recentConsumers: () => readonly string[]
}

// The part of a request that one consumer may take while others wait: theirs comes sooner after a short request.
const batchShare = 1 / 20

/** Methods that are passed on as functions are arrow functions, so that they keep `this`. */
export class Provider {
  readonly #options: ProviderOptions
  readonly #parts: ProviderParts
  readonly #limit: ReturnType<typeof pLimit>
  readonly #reserve: ReturnType<typeof createBatchReservation>
  readonly #sender: BatchSender
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #queue = new Queue()
  readonly #throttles = new Throttles()
  readonly #closing = new AbortController()
  #endWake: (() => void) | undefined
  #wakesAt = 0
  #isPending = false
  /** The last attempt found no room, and the next one is due soon. */
  #isFull = false

  constructor(options: ProviderOptions, parts: ProviderParts) {
    this.#options = options
    this.#parts = parts
    this.#limit = pLimit(options.maxConcurrent)
    this.#reserve = createBatchReservation(parts.budget, parts.recentConsumers)
    const unserved = {
      refused: (cells: readonly RefusedCell[]): void => this.#requeueOrReject(cells),
      putBack: (cells: readonly Waiting[]): void => this.#queue.putBack(cells),
    }
    this.#sender = new BatchSender(options, parts, this.#reserve, unserved, this.#closing.signal, ended =>
      this.#track(ended),
    )
  }

  /**
   * The timeline of a cell. Its load is charged to the consumer's share of the budget.
   * @throws ProviderError; a ShareUsedUpError concerns only one consumer
   */
  load(cell: Cell, urgency: Urgency = 'cold', consumer?: string | undefined): Promise<Timeline> {
    const { promise } = this.#queue.add(cell, urgency, consumer, this.#parts.clock.now())
    // One attempt for each of thousands of cells would take and put back a batch each time.
    if (urgency !== 'cold' || !this.#isFull || !this.#endWake) this.#send()
    return promise
  }

  /** A consumer now waits for a cell that was queued as less urgent. For one that is throttled the cell would wait longer. */
  readonly expedite = (cell: Cell, consumer?: string | undefined): void => {
    const now = this.#parts.clock.now()
    const isThrottled = this.#throttles.until(consumer, 'cold', now) > now
    this.#queue.expedite(cell, isThrottled ? undefined : consumer, now)
  }

  /** Why nothing more is loaded for a consumer now; undefined when it is, or waits for a little while at most. */
  readonly throttled = (consumer: string | undefined, urgency: Urgency): ShareUsedUpError | undefined => {
    if (consumer === undefined) return undefined
    const now = this.#parts.clock.now()
    const until = this.#throttles.until(consumer, urgency, now)
    const mayWaitMs = urgency === 'cold' ? this.#options.queueForMs : 0
    return until - now <= mayWaitMs ? undefined : new ShareUsedUpError(consumer, until)
  }

  readonly waiting = (): number => this.#queue.size

  /** The cells that wait to be requested. */
  readonly queued = (): Cell[] => this.#queue.cells()

  /**
   * Resolves when no request is under way or about to be sent, pauses before retries included. Cells that wait for the
   * budget's next window do not count.
   */
  async settled(): Promise<void> {
    // Loads that began in this turn of the event loop queue their cells in it; loads that end in a turn may queue more.
    for (await nextTurn(); this.#underWay.size > 0; await nextTurn()) await Promise.allSettled(this.#underWay)
  }

  /** The budget has changed: consumers that are throttled try again. */
  budgetChanged(): void {
    this.#throttles.clear()
  }

  /** Runs other work that sends requests to the provider, as one of `maxConcurrent` requests and in order of arrival. */
  readonly inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => this.#track(this.#limit(work))

  /** Asks for some of these cells while the circuit is open, and keeps nothing. Never rejects. */
  readonly probe = (cells: readonly Cell[]): Promise<void> =>
    this.inTurn(async () => {
      if (!this.#closing.signal.aborted) await this.#sender.probe(cells)
    })

  /** Sends and reserves nothing any more; cells that wait stay so. Resolves when what is under way has ended. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#endWake?.()
    // What ends may begin the delivery of its cells.
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
  }

  #track<Result>(ended: Promise<Result>): Promise<Result> {
    const forget = () => void this.#underWay.delete(ended)
    this.#underWay.add(ended)
    ended.then(forget, forget)
    return ended
  }

  #wakeAt(at: number): void {
    const { clock } = this.#parts
    const now = clock.now()
    // Tried again every second at least, because the windows follow another clock than the timer.
    const inMs = Math.min(Math.max(at - now, 20), 1_000)
    if (this.#endWake && this.#wakesAt <= now + inMs) return
    this.#endWake?.()
    this.#wakesAt = now + inMs
    this.#endWake = after(clock, inMs, () => this.#send())
  }

  #send(): void {
    this.#endWake?.()
    this.#endWake = undefined
    this.#isFull = false
    // A pending run takes all cells that there are by then.
    if (this.#isPending || this.#closing.signal.aborted) return
    this.#isPending = true
    let hasSent = false
    const run = async (): Promise<void> => {
      this.#isPending = false
      hasSent = await this.#sendWaiting()
    }
    void this.inTurn(run).finally(() => {
      // Requeued cells have a time to wait for; cells that were not taken have none.
      if (this.#queue.size > 0 && (hasSent || !this.#endWake)) this.#send()
    })
  }

  /**
   * Runs when one more request may start, and takes all cells queued by then: in this turn of the event loop, or while earlier
   * requests were in flight. Returns whether it had any to send.
   */
  async #sendWaiting(): Promise<boolean> {
    await nextTurn()
    if (this.#closing.signal.aborted) return false
    const { breaker } = this.#parts
    const openError = breaker.openError()
    if (openError) {
      for (const { reject } of this.#queue.take(Number.POSITIVE_INFINITY)) reject(openError)
      return false
    }
    const { admitted, refused, reservation } = await this.#reserve.first(this.#takeBatch())
    this.#requeueOrReject(refused)
    if (this.#closing.signal.aborted) {
      await reservation.settle('unsent')
      return false
    }
    if (admitted.length === 0) return false
    // Another free request takes the rest of a burst, but only after one that had room for all, or each attempt would call the next.
    if (refused.length === 0 && this.#queue.size > 0 && breaker.state().state === 'closed') this.#send()
    await this.#sender.serve(admitted, reservation)
    return true
  }

  #takeBatch(): readonly Waiting[] {
    const { breaker, protocol, clock } = this.#parts
    const maxCells = Math.min(this.#options.maxPointsPerRequest, protocol.maxCellsPerRequest)
    // While the breaker is not closed a probe has one point, so that an outage does not spend the budget.
    const most = breaker.state().state === 'closed' ? maxCells : 1
    const now = clock.now()
    this.#throttles.takeFrom(this.#queue, this.#options.queueForMs, now, (waiting, consumer, until) =>
      waiting.reject(new ShareUsedUpError(consumer, until)),
    )
    const batch = this.#queue.take(most, (consumer, urgency) => this.#mostOf(consumer, urgency, most))
    // The cells that are left wait for their share.
    if (batch.length === 0 && this.#queue.size > 0) this.#wakeAt(this.#throttles.nextEnd(now))
    return batch
  }

  #mostOf(consumer: string | undefined, urgency: Urgency, most: number): number {
    const now = this.#parts.clock.now()
    if (this.#throttles.until(consumer, urgency, now) > now) return 0
    const isAlone =
      !this.#queue.hasOther(consumer) && this.#parts.recentConsumers().every(other => other === consumer)
    return consumer === undefined || isAlone ? most : Math.ceil(most * batchShare)
  }

  /** Cells that the budget has no room for: cold ones wait for it for a while, the others are rejected. */
  #requeueOrReject(refused: readonly RefusedCell[]): void {
    const now = this.#parts.clock.now()
    const requeued: Waiting[] = []
    let wakeAt = Number.POSITIVE_INFINITY
    for (const { waiting, error } of refused) {
      const { retryAt = Number.POSITIVE_INFINITY } = error
      // Counted from the first refusal: the next try may always be a second away. After the clock was set back, from then.
      waiting.refusedAt = Math.min(waiting.refusedAt, now)
      if (error instanceof ShareUsedUpError)
        this.#throttles.add(error.consumer, waiting.urgency, retryAt, now)
      if (waiting.urgency === 'cold' && retryAt <= waiting.refusedAt + this.#options.queueForMs) {
        requeued.push(waiting)
        if (error instanceof OutOfBudgetError) this.#isFull = true
        wakeAt = Math.min(wakeAt, retryAt)
      } else waiting.reject(error)
    }
    this.#queue.putBack(requeued)
    // Cells that were not in this batch may wait for a share that has room sooner.
    if (requeued.length > 0) this.#wakeAt(Math.min(wakeAt, this.#throttles.nextEnd(now)))
  }
}
