// The state behind /control: fault mode, clock, latency, a gate that holds responses, and counters.

import type { Clock } from 'abohawa/common/clock.ts'
import type { Change } from './change.ts'
import type { FaultMode } from './faults.ts'

/** A forecast call, as /control lists it. `status` is null without a response. */
export type CallRecord = {
  readonly method: string
  /** The number of coordinates in the request. */
  latitudes: number
  query: Record<string, string>
  status: number | null
}

/** Since the start, or the last reset. */
export type Counts = {
  readonly calls: number
  readonly points: number
  readonly weight: number
  readonly refused: number
}

const keptCalls = 100

export class Steering {
  /** The simulator's clock: the given one, or a fixed instant. */
  readonly clock: Clock
  readonly #realClock: Clock
  #now: number | null = null
  #fault: FaultMode = 'none'
  #faultCallsLeft = Number.POSITIVE_INFINITY
  #latencyMs: number
  #gate: PromiseWithResolvers<void> | undefined
  #calls: CallRecord[] = []
  #counts = { calls: 0, points: 0, weight: 0, refused: 0 }
  #inFlight = 0
  #maxInFlight = 0

  constructor(realClock: Clock, latencyMs: number) {
    this.#realClock = realClock
    this.#latencyMs = latencyMs
    this.clock = { now: () => this.#now ?? this.#realClock.now() }
  }

  get latencyMs(): number {
    return this.#latencyMs
  }

  get counts(): Counts {
    return { ...this.#counts }
  }

  /** Resolves when the gate is open. */
  get opened(): Promise<void> {
    return this.#gate?.promise ?? Promise.resolve()
  }

  apply({ fault, times, latencyMs, now, hold, reset }: Change): void {
    if (fault !== undefined) {
      this.#fault = fault
      this.#faultCallsLeft = times ?? Number.POSITIVE_INFINITY
    }
    if (latencyMs !== undefined) this.#latencyMs = latencyMs
    if (now !== undefined) this.#now = now
    if (hold === true) this.#gate ??= Promise.withResolvers<void>()
    if (hold === false) {
      this.#gate?.resolve()
      this.#gate = undefined
    }
    if (reset) {
      this.#counts = { calls: 0, points: 0, weight: 0, refused: 0 }
      this.#maxInFlight = this.#inFlight
      this.#calls = []
    }
  }

  /** Counts a call; the caller fills in the rest of the record. */
  arrive(method: string): CallRecord {
    const call: CallRecord = { method, latitudes: 0, query: {}, status: null }
    this.#counts.calls += 1
    this.#inFlight += 1
    this.#maxInFlight = Math.max(this.#maxInFlight, this.#inFlight)
    this.#calls.push(call)
    if (this.#calls.length > keptCalls) this.#calls.shift()
    return call
  }

  describe(call: CallRecord, latitudes: number, query: Record<string, string>): void {
    call.latitudes = latitudes
    call.query = query
    this.#counts.points += latitudes
  }

  /** The fault mode of the next call; counts down `times`. */
  takeFaultMode(): FaultMode {
    const fault = this.#fault
    this.#faultCallsLeft -= 1
    if (this.#faultCallsLeft <= 0) this.#fault = 'none'
    return fault
  }

  /** @param status null for a call that gets no response */
  answered(call: CallRecord, status: number | null, weight: number): void {
    call.status = status
    this.#counts.weight += weight
    if (status === 429) this.#counts.refused += 1
  }

  leave(): void {
    this.#inFlight -= 1
  }

  report() {
    return {
      ...this.#counts,
      inFlight: this.#inFlight,
      maxInFlight: this.#maxInFlight,
      fault: this.#fault,
      latencyMs: this.#latencyMs,
      now: new Date(this.clock.now()).toISOString(),
      requests: this.#calls,
    }
  }
}
