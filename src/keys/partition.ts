// Counts the keys of one store partition by group commit: while one batch is in flight, new requests wait for the next one, and units are
// granted in order of arrival. Longer than 300 lines, because a batch is made, sent and distributed in one place.

import { setTimeout as pause } from 'node:timers/promises'
import {
  OvertakenError,
  type UsageEntry,
  type UsageGrant,
  type UsageRun,
  type UsageStore,
} from '../stores/store.ts'
import {
  type BatchEntry,
  type Count,
  type DecisionCallback,
  isUnconfirmed,
  type MeterState,
  noteUsed,
  type OutageParts,
  type PartitionStatus,
  type PendingRun,
  stepOf,
} from './count.ts'
import { LocalAllowances } from './local-allowance.ts'
import { applyTokens, type KeyRate, type RateRefusal, rateRefusal, tokenEntriesOf } from './rates.ts'
import { Reconciliation, type ReconciliationParts } from './reconciliation.ts'

export type PartitionParts = OutageParts &
  Omit<ReconciliationParts, 'store' | 'observer'> & {
    /** Unique id of this run of the process. */
    readonly instance: string
    readonly store: OutageParts['store'] & Pick<UsageStore, 'commit'>
    /** Only a store that answers a read within it is worth another try; 50 ms unless given. */
    readonly answersWithinMs?: number | undefined
    readonly observer: ReconciliationParts['observer'] & { counted(count: Count, grant: UsageGrant): void }
  }

const maxPerBatch = 500
const maxTries = 3
const answersWithinMs = 50
const maxTurnsPerBatch = 16
// In a flood that is read in small parts, each turn is long and brings few.
const maxGrowthMs = 1
const fewPerBatch = 32

export class Partition {
  readonly #parts: PartitionParts
  readonly #now: () => number
  readonly #status: PartitionStatus = {
    ...{ state: 'counting', isReported: true, reconciled: 0, losses: 0, readSince: 0 },
    latestStartBefore: Number.NEGATIVE_INFINITY,
  }
  readonly #allowances: LocalAllowances
  readonly #reconciliation: Reconciliation
  // In order of arrival. No Map: the tables that it has outgrown would keep requests in memory until old objects are collected.
  #waiting: PendingRun[] = []
  #inFlight: readonly PendingRun[] = []
  #sequence = 0
  #isFlushScheduled = false
  // Since the last batch.
  #arrived = 0
  // One batch at a time, in order.
  #last: Promise<unknown> = Promise.resolve()

  /** @param now in ms, from any beginning */
  constructor(parts: PartitionParts, now = () => performance.now()) {
    this.#parts = parts
    this.#now = now
    this.#allowances = new LocalAllowances(this.#status, parts)
    const batches = {
      commit: (entries: readonly BatchEntry[]) => this.#commit(entries),
      commitWithRetry: (entries: readonly BatchEntry[]) => this.#commitWithRetry(entries),
      inTurn: (step: () => Promise<void>) => this.#inTurn(step),
      flushSoon: () => this.#flushSoon(),
    }
    this.#reconciliation = new Reconciliation(this.#status, batches, parts, now)
  }

  state(): MeterState {
    return this.#status.state
  }

  /** Requests units, as `Meter.consume` says. @param rate of a key with limits by the second and minute */
  consume(count: Count, limit: number, units: number, callback: DecisionCallback, rate?: KeyRate): void {
    if (count.limit !== limit) {
      count.limit = limit
      count.step = stepOf(limit)
    }
    if (this.#status.state === 'away') {
      this.#allowances.decide(count, units, callback, rate)
      return
    }
    this.#arrived += 1
    const { pending } = count
    if (pending?.unitsEach === units && pending.rate === rate) pending.callbacks.push(callback)
    else this.#enqueue(count, units, [callback], rate)
    this.#flushSoon()
  }

  /** Takes back so many units that were admitted here, and reports it with the next batch. */
  refund(count: Count, units: number): void {
    count.admitted -= units
    // After an outage all counts are reported.
    if (this.#status.state === 'away') return
    if (!count.pending) this.#enqueue(count, 0, [], undefined)
    this.#flushSoon()
  }

  /** Whether no request waits for a count, and the store has all units that were admitted. */
  mayForget(count: Count): boolean {
    const { state, isReported } = this.#status
    const isInUse = count.pending !== undefined || this.#inFlight.some(each => each.count === count)
    return state === 'counting' && isReported && !isUnconfirmed(count) && !isInUse
  }

  /** Another instance published the store's count. */
  onMessage(count: Count, used: number): void {
    const { lastKnown } = count
    count.heard = Math.max(count.heard, used)
    // In any state: a batch of another instance that was under way when messages were lost may be counted afterwards. Units of
    // this instance are in it as well, so an allowance may be smaller than it could be, never larger.
    if (lastKnown && used > lastKnown.used) lastKnown.used = used
  }

  /** Messages of other instances may have been lost, and the store may have lost counts. */
  onMessagesLost(): void {
    this.#reconciliation.onMessagesLost()
  }

  /** Reports all counts after a loss, or reads what others counted where no messages arrive. */
  probe(): Promise<void> {
    return this.#reconciliation.probe()
  }

  /** Reports what the store has not confirmed, whatever the state; never rejects. */
  report(): Promise<void> {
    return this.#reconciliation.report()
  }

  #enqueue(count: Count, unitsEach: number, callbacks: DecisionCallback[], rate: KeyRate | undefined): void {
    const { pending, limit } = count
    const run: PendingRun = { count, rate, unitsEach, callbacks, requested: 0, limit, next: undefined }
    count.pending = run
    if (pending) pending.next = run
    else this.#waiting.push(run)
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const run = this.#last.then(step)
    this.#last = run.catch(() => {})
    return run
  }

  /** @param entries of one window */
  async #commit(entries: readonly BatchEntry[]): Promise<UsageGrant[]> {
    const window = entries[0]?.count.window
    if (!window) return []
    const { instance, store, clock, observer } = this.#parts
    const { name: day, endsAt, keepUntil } = window
    this.#sequence += 1
    const sequence = this.#sequence
    for (const { count } of entries) count.heard = 0
    const reported = entries.map(entry => usageEntryOf(entry, clock))
    let grants: UsageGrant[]
    try {
      grants = await store.commit({ instance, sequence, day, endsAt, keepUntil, entries: reported })
    } catch (error) {
      // Batches go one after the other, so this instance never overtakes itself: something else wrote that sequence.
      // The next batch continues after it.
      if (error instanceof OvertakenError) this.#sequence = Math.max(this.#sequence, error.by)
      throw error
    }
    for (let i = 0; i < grants.length; i++) {
      const { count } = entries[i] as BatchEntry
      const rate = rateOf(entries[i] as BatchEntry)
      const { admitted, buckets } = reported[i] as UsageEntry
      const grant = grants[i] as UsageGrant
      // While the state is `counting` nothing is admitted before the store has counted it.
      this.#status.reconciled += Math.max(0, admitted - count.confirmed)
      count.admitted += grant.granted
      count.confirmed = admitted + grant.granted
      if (rate && buckets && grant.tokens) applyTokens(rate, buckets, grant.tokens, clock.now())
      observer.counted(count, grant)
    }
    return grants
  }

  // Retry first: one lost reply, or a pause of this process, does not mean that the store is away for everyone.
  async #commitWithRetry(entries: readonly BatchEntry[]): Promise<UsageGrant[]> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#commit(entries)
      } catch (error) {
        if (tries === maxTries || !(await this.#storeAnswers(entries))) throw error
      }
    }
  }

  /** Whether the store answers, so that a batch is worth another try. */
  async #storeAnswers([first]: readonly BatchEntry[]): Promise<boolean> {
    const { store, answersWithinMs: withinMs = answersWithinMs } = this.#parts
    const timeout = new AbortController()
    // In a cluster only a read of the count asks the server that has it.
    const asked = first ? store.usedOn(first.count.keyId, [first.count.window.name]) : store.time()
    const answered = asked.then(
      () => true,
      () => false,
    )
    const inTime = await Promise.race([answered, pause(withinMs, false, { signal: timeout.signal })])
    timeout.abort()
    return inTime
  }

  // With `refuse` no allowance bounds what is taken from a store that may have lost what others counted: requests wait until all
  // is reported.
  #isHeld(): boolean {
    const { state, isReported } = this.#status
    return this.#parts.whenStoreIsDown === 'refuse' && !isReported && state === 'counting'
  }

  #flushSoon(): void {
    if (this.#isFlushScheduled || this.#waiting.length === 0 || this.#isHeld()) return
    this.#isFlushScheduled = true
    this.#flushWhenQuiet(this.#now() + maxGrowthMs, 1, 0)
  }

  // Requests of the same turn of the event loop share a batch. Where they are few, requests of the next turns join while each turn
  // brings more: a transaction or a round trip for each of them would cost as much as all else that it needs.
  #flushWhenQuiet(until: number, turns: number, before: number): void {
    setImmediate(() => {
      const arrived = this.#arrived
      const mayGrow = turns < maxTurnsPerBatch && arrived < fewPerBatch && this.#now() < until
      if (mayGrow && arrived > before) this.#flushWhenQuiet(until, turns + 1, arrived)
      else void this.#inTurn(() => this.#flush())
    })
  }

  async #flush(): Promise<void> {
    this.#arrived = 0
    const { part, rest } = this.#isHeld() ? { part: [], rest: this.#waiting } : nextOf(this.#waiting)
    this.#waiting = rest
    for (const { count } of part) count.pending = undefined
    this.#inFlight = part
    let grants: UsageGrant[] | undefined
    if (this.#status.state !== 'away')
      try {
        if (this.#status.state === 'reconciling') await this.#readUnknown(part)
        this.#requestUnits(part)
        grants = await this.#commitWithRetry(part)
      } catch (error) {
        if (this.state() !== 'away') this.#reconciliation.goAway(error)
      }
    // The requests go on in this turn, outside the step that may fail for the store.
    for (let i = 0; i < part.length; i++) {
      const run = part[i] as PendingRun
      const grant = grants?.[i]
      if (grant) this.#resumeGranted(run, grant)
      else this.#resumeLocally(run)
    }
    this.#inFlight = []
    this.#isFlushScheduled = false
    // One turn of the event loop later: flushing now would send half as many batches again, and save little time.
    this.#flushSoon()
  }

  // While this instance reconciles, it takes no more than its allowances. Units that others have not reported yet come out of
  // theirs, so the sum stays within the limit.
  async #readUnknown(part: readonly PendingRun[]): Promise<void> {
    const unknown = part.filter(({ count }) => !this.#allowances.isKnown(count))
    if (unknown.length > 0) await this.#reconciliation.read(unknown.map(({ count }) => count))
  }

  #requestUnits(part: readonly PendingRun[]): void {
    const isCounting = this.#status.state === 'counting'
    for (const run of part) {
      run.limit = run.count.limit
      requestUnits(run, isCounting ? undefined : this.#allowances.leftOf(run.count))
    }
  }

  #resumeLocally(first: PendingRun): void {
    const rate = rateOf(first)
    for (let run: PendingRun | undefined = first; run; run = run.next)
      for (const callback of run.callbacks) this.#allowances.decide(run.count, run.unitsEach, callback, rate)
  }

  /** Distributes what the store granted, as the store did: in order, and each request has all its units or none. */
  #resumeGranted(first: PendingRun, { granted, used, tokens }: UsageGrant): void {
    const { count } = first
    const rate = rateOf(first)
    if (this.#status.state === 'counting') noteUsed(count, used, count.admitted, this.#status.readSince)
    let left = Math.max(0, first.limit - (used - granted))
    let inTime = tokens?.taken ?? 0
    let tooSoon: RateRefusal | undefined
    for (let run: PendingRun | undefined = first; run; run = run.next) {
      const { unitsEach, requested } = run
      let asked = 0
      for (const callback of run.callbacks) {
        asked += 1
        if (rate !== undefined && asked <= requested && inTime-- <= 0) {
          tooSoon ??= rateRefusal(rate, this.#parts.clock.now())
          callback(undefined, { allowed: false, remaining: left, tooSoon })
        } else if (unitsEach > left) callback(undefined, { allowed: false, remaining: left })
        else if (asked > requested) this.#allowances.refuse(count, unitsEach, callback)
        else {
          left -= unitsEach
          callback(undefined, { allowed: true, remaining: left })
        }
      }
    }
  }
}

/** The first requests in waiting whose counts are of one window, and the others. */
const nextOf = (all: readonly PendingRun[]): { part: PendingRun[]; rest: PendingRun[] } => {
  const [part, rest]: [PendingRun[], PendingRun[]] = [[], []]
  for (const each of all) {
    const isNext = part.length < maxPerBatch && each.count.window === all[0]?.count.window
    ;(isNext ? part : rest).push(each)
  }
  return { part, rest }
}

/** Requests units for all that wait, or for as many as an allowance lets it. */
const requestUnits = (first: PendingRun, allowance = Number.POSITIVE_INFINITY): void => {
  let left = allowance
  for (let run: PendingRun | undefined = first; run; run = run.next) {
    const { unitsEach, callbacks } = run
    const { length } = callbacks
    run.requested = unitsEach === 0 ? length : Math.min(length, Math.floor(left / unitsEach))
    left -= unitsEach * run.requested
  }
}

/** The token buckets of an entry. Its first run may have none: a refund, or a request from before the key got limits. */
const rateOf = (first: BatchEntry): KeyRate | undefined => {
  for (let run: BatchEntry | undefined = first; run; run = run.next) if (run.rate) return run.rate
  return undefined
}

const usageEntryOf = (first: BatchEntry, clock: PartitionParts['clock']): UsageEntry => {
  const { count, unitsEach, requested, limit, next } = first
  const rate = rateOf(first)
  const { keyId, admitted, confirmed, step } = count
  const runs = next || unitsEach > 1 || rate ? runsOf(first, rate !== undefined) : undefined
  const buckets = rate && tokenEntriesOf(rate, clock.now())
  return { keyId, units: unitsEach * requested, runs, buckets, limit, admitted, confirmed, step }
}

/** Undefined where nothing is requested. Requests that only read are no run, unless they take tokens. */
const runsOf = (first: BatchEntry, takeTokens: boolean): UsageRun[] | undefined => {
  const runs: { unitsEach: number; requests: number }[] = []
  for (let run: BatchEntry | undefined = first; run; run = run.next) {
    const { unitsEach, requested } = run
    const last = runs.at(-1)
    if (last?.unitsEach === unitsEach) last.requests += requested
    else if (unitsEach * requested > 0 || (takeTokens && requested > 0))
      runs.push({ unitsEach, requests: requested })
  }
  return runs.length > 0 ? runs : undefined
}
