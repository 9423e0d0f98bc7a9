// Sends the requests of one worker when they are due and records their outcome. Open loop: sending does not wait for responses; a
// request without a free connection waits in a queue, and is dropped after too long. Closed loop: each connection sends its next
// request after the response.

import { isGeneratorError } from './generator-errors.ts'
import { type Answer, type ConnectionPool, http1Pool, type OutgoingRequest } from './http1.ts'
import { http2Pool } from './http2.ts'
import { KeptBodies, type KeptBody } from './kept-bodies.ts'
import { createLoad } from './load.ts'
import { type Arrivals, arrivalsOf, type Pace } from './pace.ts'
import { Queue } from './queue.ts'
import type { Recorder } from './recorder.ts'
import type { RequestForm, Schedule } from './schedule.ts'
import type { Target } from './target.ts'

/** Plain values, so that a worker can receive them as a message. */
export type SendOrder = {
  readonly schedule: Schedule
  readonly pace: Pace
  /** Sends arrivals `index`, `index + of`, `index + 2 × of`, … */
  readonly share: { readonly index: number; readonly of: number }
  /** By the column `key` of the schedule: the first is for requests without a key id. */
  readonly keys: readonly (string | undefined)[]
  readonly target: Target
  readonly http: '1.1' | '2'
  readonly connections: number
  /** How long a request may wait for a connection. */
  readonly queueTimeoutMs: number
  readonly timeoutMs: number
  /** The maximum number of bodies to keep, one per path and status. */
  readonly keepBodies: number
  /** The start of the run, in ms of `process.hrtime`, which all threads share. */
  readonly beginAt: number
}

type SentRequest = OutgoingRequest & {
  readonly arrival: number
  readonly request: number
  readonly dueAt: number
  readonly sentAt: number
}

/** In ms, the same for all threads. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6

// Timers are up to a millisecond late, so the last part of a wait spins the event loop.
const spinMs = 1.5
const sweepEveryMs = 50
const graceMs = 2_000
// In a closed loop, so that an unreachable target is not tried thousands of times a second.
const reconnectMs = 100
// Failures after the connection was made.
const responding = new Set(['reset', 'closed', 'protocol', 'timeout', 'unanswered'])

export class Sender {
  /** Resolves when all requests are answered or given up. */
  readonly ended: Promise<void>
  readonly load = createLoad()
  readonly #onEnded: () => void
  readonly #order: SendOrder
  readonly #recorder: Recorder
  readonly #arrivals: Arrivals
  readonly #isClosed: boolean
  readonly #endsAt: number
  readonly #pool: ConnectionPool<SentRequest>
  readonly #etags: (string | undefined)[] = []
  readonly #bodies = new KeptBodies()
  // In a closed loop: requests that reached a limit of this machine.
  readonly #queue = new Queue()
  // performance.now() of this thread at the start of the run.
  readonly #begin: number
  readonly #sweep: NodeJS.Timeout
  readonly #warmedUp: NodeJS.Timeout | undefined
  #arrival: number
  // No arrival is left; or cut by a signal, and the queue is not sent either.
  #isStopped = false
  #isCut = false
  #isOver = false
  #giveUpAt = Number.POSITIVE_INFINITY
  #pausedUntil = 0
  #lastSentAt = 0
  #lastEndedAt = 0
  #lastAnsweredAt = 0
  #cutAt = 0

  constructor(order: SendOrder, recorder: Recorder) {
    const { schedule, pace, share, target, http, connections, beginAt } = order
    this.#order = order
    this.#recorder = recorder
    this.#arrivals = arrivalsOf(schedule, pace)
    this.#isClosed = pace.mode === 'closed'
    this.#endsAt = this.#arrivals.endsAt ?? (this.#isClosed ? Number.POSITIVE_INFINITY : 0)
    this.#arrival = share.index
    this.#begin = performance.now() + (beginAt - monotonicMs())
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.#onEnded = resolve
    this.#pool = (http === '2' ? http2Pool : http1Pool)<SentRequest>(target, connections, {
      onAnswer: (sent, answer) => this.#onAnswer(sent, answer),
      onFailure: (sent, reason) => this.#onFailure(sent, reason),
    })
    this.#sweep = setInterval(this.#endLate, sweepEveryMs)
    const untilWarm = Math.max(0, pace.warmUpMs - this.#now())
    this.#warmedUp = pace.warmUpMs > 0 ? setTimeout(this.load.begin, untilWarm) : undefined
    const wait = -this.#now()
    const start = this.#isClosed ? this.#fill : this.#sendDue
    if (wait > spinMs) setTimeout(start, wait - spinMs)
    else setImmediate(start)
  }

  get kept(): readonly KeptBody[] {
    return this.#bodies.list
  }

  /** Sends nothing more, and waits two seconds for responses. */
  stop(): void {
    this.#isCut = true
    this.#cutAt = this.#now()
    this.#giveUpAt = this.#cutAt + graceMs
    this.#isStopped = true
    this.#onFree()
  }

  /** In ms: until the last request was due or sent, in a closed loop until the last ended or time was up. */
  sentFor(): number {
    if (this.#isCut) return Math.max(this.#lastSentAt, this.#cutAt)
    // The time in which a stalled target blocked sending is part of the run.
    const until = this.#isClosed ? Math.min(this.#lastEndedAt, this.#endsAt) : this.#endsAt
    return Math.max(this.#lastSentAt, until)
  }

  /** When the last counted response came, in ms; 0 without responses. */
  answeredFor(): number {
    return this.#lastAnsweredAt
  }

  #now(): number {
    return performance.now() - this.#begin
  }

  #formOf(request: number): RequestForm {
    const { schedule } = this.#order
    return schedule.forms[schedule.form[request] as number] as RequestForm
  }

  #onAnswer({ form, request, dueAt, sentAt }: SentRequest, answer: Answer): void {
    this.load.worked()
    const endedAt = this.#now()
    this.#lastEndedAt = endedAt
    if (dueAt >= this.#order.pace.warmUpMs) this.#lastAnsweredAt = endedAt
    const { status, head, bytes } = answer
    if (form.conditional && head.etag !== undefined) this.#etags[form.representation] = head.etag
    const { endpoint } = form
    const { outcome, ageSeconds } = head
    this.#recorder.record({ endpoint, outcome, status, request, dueAt, sentAt, endedAt, bytes, ageSeconds })
    this.load.ended(endedAt - dueAt)
    this.#bodies.add(form, answer)
    this.#onFree()
  }

  #onFailure({ form, request, arrival, dueAt, sentAt }: SentRequest, reason: string): void {
    this.load.worked()
    if (isGeneratorError(reason)) {
      this.load.limited(reason)
      this.#queue.push(arrival)
    } else {
      const endedAt = this.#now()
      this.#lastEndedAt = endedAt
      this.#recorder.fail(reason, { request, dueAt, sentAt, endedAt, endpoint: form.endpoint })
      this.load.ended(endedAt - dueAt)
      if (this.#isClosed && !responding.has(reason)) this.#pausedUntil = endedAt + reconnectMs
    }
    this.#onFree()
  }

  #onFree(): void {
    if (this.#isClosed) this.#fill()
    else this.#sendQueue()
    if (this.#isStopped) this.#endIfDone()
  }

  #send(connection: (sent: SentRequest) => void, arrival: number, dueAt: number): void {
    const { schedule, keys, keepBodies } = this.#order
    const request = this.#arrivals.request(arrival)
    const form = this.#formOf(request)
    const sentAt = this.#now()
    this.#lastSentAt = sentAt
    connection({
      form,
      key: keys[schedule.key[request] as number],
      etag: form.conditional ? this.#etags[form.representation] : undefined,
      keepsBody: this.#bodies.wants(form, keepBodies),
      again: false,
      arrival,
      request,
      dueAt: this.#isClosed ? sentAt : dueAt,
      sentAt,
    })
  }

  #sendQueue(): void {
    for (let arrival = this.#queue.first; arrival !== undefined; arrival = this.#queue.first) {
      const dueAt = this.#arrivals.due(arrival)
      const waited = this.#now() - dueAt
      if (this.#isCut || waited > this.#order.queueTimeoutMs) {
        const request = this.#arrivals.request(arrival)
        const { endpoint } = this.#formOf(request)
        this.#recorder.drop({ request, dueAt, endedAt: dueAt + waited, endpoint })
        this.load.ended(waited)
      } else {
        const connection = this.#pool.take()
        if (!connection) return
        this.#send(connection, arrival, dueAt)
      }
      this.#queue.shift()
    }
  }

  /** Closed loop: sends a request on each free connection. */
  readonly #fill = (): void => {
    const { pace, share } = this.#order
    for (;;) {
      const at = this.#now()
      if (at < this.#pausedUntil && !this.#isCut) return
      const again = this.#queue.first
      const isLate = this.#isCut || at >= (pace.durationMs ?? Number.POSITIVE_INFINITY)
      const isLast = again === undefined && this.#arrivals.due(this.#arrival) === Number.POSITIVE_INFINITY
      if (isLate || isLast) {
        this.#queue.clear()
        this.#finish()
        return
      }
      const connection = this.#pool.take()
      if (!connection) return
      this.#send(connection, again ?? this.#arrival, at)
      if (again === undefined) this.#arrival += share.of
      else this.#queue.shift()
    }
  }

  /** Open loop: sends all requests that are due. */
  readonly #sendDue = (): void => {
    if (this.#isOver) return
    const { pace, share } = this.#order
    this.load.turned()
    const at = this.#now()
    let dueAt = this.#arrivals.due(this.#arrival)
    while (dueAt <= at && !this.#isStopped) {
      if (dueAt >= pace.warmUpMs) this.load.due(this.#now() - dueAt)
      const connection = this.#queue.first === undefined ? this.#pool.take() : undefined
      if (connection) this.#send(connection, this.#arrival, dueAt)
      else this.#queue.push(this.#arrival)
      this.load.worked()
      this.#arrival += share.of
      dueAt = this.#arrivals.due(this.#arrival)
    }
    if (dueAt === Number.POSITIVE_INFINITY && !this.#isStopped) this.#finish()
    if (this.#isStopped) return
    const wait = dueAt - this.#now()
    if (wait > spinMs) setTimeout(this.#sendDue, Math.min(wait - spinMs, 1_000))
    else setImmediate(this.#sendDue)
  }

  /** Requests are in the order of sending, so the first that is not late ends the loop. */
  readonly #endLate = (): void => {
    const at = this.#now()
    for (const [sent, end] of this.#pool.busy) {
      if (at >= this.#giveUpAt) end('unanswered')
      else if (at - sent.sentAt > this.#order.timeoutMs) end('timeout')
      else break
    }
    this.#onFree()
  }

  #finish(): void {
    this.#isStopped = true
    this.#endIfDone()
  }

  #endIfDone(): void {
    if (this.#isOver || this.#pool.busy.size > 0 || this.#queue.first !== undefined) return
    this.#isOver = true
    clearInterval(this.#sweep)
    clearTimeout(this.#warmedUp)
    this.#pool.close()
    this.load.end()
    this.#onEnded()
  }
}
