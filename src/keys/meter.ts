// Meters the quotas of all keys: finds the count of a key in the window in which its request arrived, and its token buckets, and has the
// partition of the key count it. Forgets old counts, and reports on close what the store does not have. An exhausted quota is a
// decision (`allowed: false`), not an error. Longer than 300 lines, because counts are found, listed and forgotten in one table.

import { randomBytes } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { hourMs } from '../common/calendar.ts'
import type { UsageGrant, UsageStore } from '../stores/store.ts'
import type { Client } from './authentication.ts'
import { type Count, type DecisionCallback, isUnconfirmed, type MeterState, usedOf } from './count.ts'
import { createKeyIndex, type KeyIndex } from './key-index.ts'
import { Partition, type PartitionParts } from './partition.ts'
import { createRates } from './rates.ts'
import type { Window, Windows } from './window.ts'

/** Units that were admitted but not counted by the store; the name of their window is a day. */
export type LostUnits = { readonly keyId: string; readonly day: string; readonly units: number }

export type MeterObserver = {
  storeAway(reason: string): void
  /** @param reconciled units that were admitted locally and are in the store now */
  storeBack(reconciled: number): void
  /** The meter is closed, and the store did not take the report. */
  unitsLost(lost: readonly LostUnits[]): void
  /** A count reached 80 or 100 per cent of its limit. Called on the one instance whose batch reached it. */
  nearLimit(event: { keyId: string; day: string; used: number; limit: number; percent: 80 | 100 }): void
}

export type MeterParts = Pick<
  PartitionParts,
  'whenStoreIsDown' | 'isReadWhenAway' | 'instances' | 'clock' | 'answersWithinMs'
> & {
  readonly store: PartitionParts['store'] & Pick<UsageStore, 'partitionOf' | 'onUsage' | 'dropDays'>
  readonly windows: Windows
  /** How long the store keeps the sum of a window after its end. */
  readonly keepUsageForMs: number
  readonly observer: MeterObserver
}

/** A client whose requests are counted. */
type Metered = Pick<Client, 'keyId' | 'limit' | 'count'> & Partial<Pick<Client, 'isTest' | 'rates' | 'rate'>>

/** The quota of clients, as a request meets it. */
export type Quota = Pick<Meter, 'now' | 'resetAfter' | 'consume' | 'refund' | 'isExact'>

export type KnownUsage = { readonly keyId: string; readonly used: number; readonly limit: number }

/** `isKept`: false once it was forgotten. */
type Entry = Count & { readonly partition: Partition; next: Entry | undefined; isKept: boolean }
type Table = { readonly window: Window; readonly entries: KeyIndex<Entry>; forgetting?: Iterator<Entry> }

const keepCountForMs = 3_600_000
// Without it, ten tenths would not be one.
const smallestFraction = 1e-9
// There may be a million counts; a step of so many takes a few ms.
const maxPerTurn = 2_000
// On close. Together with the drain it is shorter than the usual grace period of a process.
const reportEveryMs = 250
const reportForMs = 3_000

/** An id that no instance has had. */
const newInstance = (): string => randomBytes(5).toString('hex')

export class Meter {
  /** The instant that decides which window a request belongs to, by the store's clock. */
  readonly now: () => number
  readonly #parts: MeterParts
  readonly #rates: ReturnType<typeof createRates>
  readonly #unsubscribe: () => void
  #instance = newInstance()
  // By window, then key: a look-up builds no compound key.
  readonly #tables = new Map<string, Table>()
  // On a cluster one partition may be away and another not. Those of a previous instance id stay for their counts.
  #current = new Map<number, Partition>()
  readonly #partitions = new Set<Partition>()
  // Nearly all requests are of the running window.
  #running: Window | undefined
  #latestStart = Number.NEGATIVE_INFINITY
  #latestForgotten = Number.NEGATIVE_INFINITY
  #droppedBefore = ''
  #away = 0
  #reconciled = 0
  // A count that goes back and forth over a mark, because units are refunded, is near its limit once.
  readonly #reachedMarks = new WeakMap<Count, Set<string>>()
  // A test key near its limit is not reported.
  readonly #ofTests = new WeakSet<Count>()
  // Of the few counts that have any, so that the others take no more memory for it.
  readonly #fractions = new WeakMap<Entry, number>()

  constructor(parts: MeterParts) {
    this.#parts = parts
    this.now = parts.clock.now
    this.#rates = createRates(parts.clock.now)
    this.#unsubscribe = parts.store.onUsage(message => {
      if (message === 'lost') {
        for (const partition of this.#partitions) partition.onMessagesLost()
        return
      }
      const entry = this.#tables.get(message.day)?.entries.find(message.keyId)
      entry?.partition.onMessage(entry, message.used)
    })
  }

  /** The end of the window that an instant belongs to. */
  resetAfter(instant: number): number {
    return this.#windowAt(instant).endsAt
  }

  /**
   * Consumes so many units, all or none; 0 only reads what is left, and is always allowed. A client with `rates` needs a token of each
   * limit too: without them the request takes no unit, but one that the quota refuses has taken its tokens. The callback has a
   * StoreError when the store is away and the local allowance does not suffice.
   */
  consume(client: Metered, arrivedAt: number, units: number, callback: DecisionCallback): void {
    const entry = this.#entryOf(client, arrivedAt)
    const rate = client.rates === undefined ? undefined : this.#rates.of(client, client.rates)
    entry.partition.consume(entry, client.limit, units, callback, rate)
  }

  /**
   * Refunds units that a request took, or a part of one, and returns how many whole ones went back: fractions of a key add up. A
   * crash may leave them taken.
   */
  refund(client: Metered, arrivedAt: number, units: number): number {
    const entry = this.#entryOf(client, arrivedAt)
    const owed = (this.#fractions.get(entry) ?? 0) + units
    const whole = Math.floor(owed + smallestFraction)
    this.#fractions.set(entry, owed - whole)
    // This instance took none where it has forgotten the count since.
    const given = Math.min(whole, entry.admitted)
    if (given > 0) entry.partition.refund(entry, given)
    return given
  }

  /** Whether what is left of a key is known over all instances, and is no local allowance. */
  isExact(keyId: string): boolean {
    return this.stateOf(keyId) === 'counting'
  }

  /** The state of the partition that counts a key. */
  stateOf(keyId: string): MeterState {
    return this.#current.get(this.#parts.store.partitionOf(keyId))?.state() ?? 'counting'
  }

  /** The worst state of all partitions. */
  state(): MeterState {
    const states = [...this.#partitions].map(partition => partition.state())
    return (['away', 'reconciling'] as const).find(state => states.includes(state)) ?? 'counting'
  }

  /** Probes a store that is away, and drops old counts, here and in the store. Call it at short intervals. */
  async probe(): Promise<void> {
    this.#forgetPast()
    this.#rates.forgetFull()
    await Promise.all([...[...this.#partitions].map(partition => partition.probe()), this.#dropPast()])
  }

  /**
   * The counts of a window that this instance knows, over the fleet as far as it knows: some at a time, with a turn of the event
   * loop in between. @param instant in that window
   */
  async *usageAt(instant: number): AsyncGenerator<readonly KnownUsage[]> {
    let part: KnownUsage[] = []
    const table = this.#tables.get(this.#parts.windows.at(instant).name)
    for (const count of table?.entries.values() ?? []) {
      const { keyId, limit } = count
      part.push({ keyId, used: usedOf(count), limit })
      if (part.length < maxPerTurn) continue
      yield part
      part = []
      await nextTurn()
    }
    yield part
  }

  /** Whether the store has all units that were admitted here. */
  async isReported(): Promise<boolean> {
    return (await this.#unconfirmed(1)).length === 0
  }

  /** Reports unconfirmed units to the store; retries for some seconds while it is away. */
  async close(): Promise<void> {
    this.#unsubscribe()
    let isOver = false
    const end = setTimeout(() => {
      isOver = true
    }, reportForMs)
    while (!isOver && !(await this.isReported())) {
      await Promise.all([...this.#partitions].map(partition => partition.report()))
      if (!(await this.isReported())) await pause(reportEveryMs)
    }
    clearTimeout(end)
    const lost = (await this.#unconfirmed()).filter(({ units }) => units > 0)
    if (lost.length > 0) this.#parts.observer.unitsLost(lost)
  }

  #windowAt(instant: number): Window {
    if (!this.#running || instant < this.#running.startsAt || instant >= this.#running.endsAt) {
      const window = this.#parts.windows.at(instant)
      // The one that its counts have: a client's count is known to be of the running window by it.
      this.#running = this.#tables.get(window.name)?.window ?? window
    }
    return this.#running
  }

  #entryOf(client: Metered, arrivedAt: number): Entry {
    const window = this.#windowAt(arrivedAt)
    let entry = client.count as Entry | undefined
    if (entry === undefined || entry.window !== window || !entry.isKept) {
      entry = this.#entryFor(client.keyId, window)
      if (client.isTest) this.#ofTests.add(entry)
      client.count = entry
    }
    return entry
  }

  #entryFor(keyId: string, window: Window): Entry {
    let table = this.#tables.get(window.name)
    if (!table) {
      table = { window, entries: createKeyIndex<Entry>() }
      this.#tables.set(window.name, table)
    }
    const known = table.entries.find(keyId)
    if (known) return known
    this.#renewInstanceFor(window)
    const entry: Entry = {
      ...{ keyId, window: table.window, limit: 0, step: 1, admitted: 0, confirmed: 0 },
      ...{ lastKnown: undefined, knownSince: 0, heard: 0, pending: undefined },
      ...{ partition: this.#partitionFor(keyId), next: undefined, isKept: true },
    }
    table.entries.add(entry)
    this.#latestStart = Math.max(this.#latestStart, window.startsAt)
    return entry
  }

  // The store keeps, per instance id, the admitted units of counts that were forgotten here. When the clock goes back to
  // one of those windows, this instance takes a new id: a report of 0 admitted units would lower the count.
  #renewInstanceFor({ startsAt }: Window): void {
    if (startsAt > this.#latestForgotten) return
    this.#instance = newInstance()
    this.#current = new Map()
    this.#latestForgotten = Number.NEGATIVE_INFINITY
  }

  #partitionFor(keyId: string): Partition {
    const number = this.#parts.store.partitionOf(keyId)
    const known = this.#current.get(number)
    if (known) return known
    const ofPartition = (): Iterator<Count | undefined> => this.#countsOf(partition)
    const partition: Partition = new Partition({
      ...this.#parts,
      instance: this.#instance,
      latestStart: () => Math.max(this.#latestStart, this.#windowAt(this.now()).startsAt),
      counts: ofPartition,
      observer: {
        stopped: reason => {
          this.#away += 1
          if (this.#away === 1) this.#parts.observer.storeAway(reason)
        },
        resumed: units => this.#onResumed(units),
        counted: (count, grant) => this.#checkNearLimit(count, grant),
      },
    })
    this.#current.set(number, partition)
    this.#partitions.add(partition)
    return partition
  }

  #onResumed(units: number): void {
    this.#away -= 1
    this.#reconciled += units
    if (this.#away > 0) return
    this.#parts.observer.storeBack(this.#reconciled)
    this.#reconciled = 0
  }

  #checkNearLimit(count: Count, { before, used }: UsageGrant): void {
    const { keyId, window, limit } = count
    for (const percent of marks) {
      const mark = Math.ceil((limit * percent) / 100)
      if (before >= mark || mark > used || this.#ofTests.has(count)) continue
      // Units may go back, and the mark be reached again. A changed limit has other marks.
      const reached = this.#reachedMarks.getOrInsertComputed(count, () => new Set())
      const name = `${percent} of ${limit}`
      if (reached.has(name)) continue
      reached.add(name)
      this.#parts.observer.nearLimit({ keyId, day: window.name, used, limit, percent })
    }
  }

  *#allEntries(): Generator<Entry, void> {
    for (const { entries } of this.#tables.values()) yield* entries.values()
  }

  *#countsOf(partition: Partition): Generator<Count | undefined, void> {
    for (const entry of this.#allEntries()) yield entry.partition === partition ? entry : undefined
  }

  // Each probe goes on where the one before stopped: a count that can't be forgotten yet delays no other.
  #forgetPast(): void {
    const now = this.now()
    let visited = 0
    for (const [name, table] of this.#tables) {
      const { window, entries } = table
      if (now - window.endsAt < keepCountForMs) continue
      table.forgetting ??= entries.values()
      for (; visited < maxPerTurn; visited++) {
        const { value, done } = table.forgetting.next()
        if (done) {
          delete table.forgetting
          break
        }
        // Loses nothing, even when the clock jumped ahead: the store has all of it.
        if (!value.partition.mayForget(value)) continue
        entries.delete(value)
        value.isKept = false
        this.#latestForgotten = Math.max(this.#latestForgotten, window.startsAt)
      }
      if (entries.size() === 0) this.#tables.delete(name)
    }
  }

  // Every gateway does it: windows that another one has dropped cost nothing.
  async #dropPast(): Promise<void> {
    const { windows, keepUsageForMs, store } = this.#parts
    const now = this.now()
    const countsBefore = windows.at(now - keepCountForMs).name
    const previous = this.#droppedBefore
    if (countsBefore === previous || this.#away > 0) return
    this.#droppedBefore = countsBefore
    const sumsBefore = windows.at(now - Math.max(hourMs, keepUsageForMs)).name
    await store.dropDays({ countsBefore, sumsBefore }).catch(() => {
      // The next probe tries again.
      this.#droppedBefore = previous
    })
  }

  /** Below 0 where units were refunded. */
  async #unconfirmed(most = Number.POSITIVE_INFINITY): Promise<LostUnits[]> {
    const found: LostUnits[] = []
    let visited = 0
    for (const entry of this.#allEntries()) {
      const { keyId, window, admitted, confirmed } = entry
      if (isUnconfirmed(entry)) found.push({ keyId, day: window.name, units: admitted - confirmed })
      if (found.length >= most) return found
      visited += 1
      if (visited % maxPerTurn === 0) await nextTurn()
    }
    return found
  }
}

const marks = [80, 100] as const
