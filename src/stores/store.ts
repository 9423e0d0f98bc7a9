// The contract of the store. Redis implements it for a fleet, SQLite for a single process; one test suite covers both. A store that can't
// answer throws StoreError and never guesses. Longer than 300 lines, because it is one contract, read together with its records.

import { AbohawaError } from '../common/errors.ts'
import type { SpendingStore } from './spending-store.ts'
import type { TokenEntry, TokenGrant } from './token-bucket.ts'

/** The holder of keys. Instants are ms since the epoch; `revokedAt` is null while active. */
export type Subscriber = {
  readonly id: string
  readonly name: string
  readonly createdAt: number
  readonly revokedAt: number | null
}

/** The record of a key, with its hash and never the key. */
export type KeyRecord = {
  readonly id: string
  /** SHA-256 of the key, hexadecimal; unique. */
  readonly hash: string
  readonly subscriberId: string
  readonly tier: string
  /** A custom limit of requests a day; null for the tier's limit. */
  readonly limit: number | null
  readonly createdAt: number
  readonly revokedAt: number | null
  /** From this instant on the key is invalid; null for never. */
  readonly expiresAt: number | null
  /** The id that another program gave the key, unique over the store; null for none. */
  readonly externalId: string | null
  /** What the key may be used for and where; null for everything, anywhere. */
  readonly restrictions: Restrictions | null
  /** Custom limits by the second and the minute; null for the tier's limits. */
  readonly rates: RateLimits | null
  /** With the instant until which each is valid; it may be past. */
  readonly previousHashes: readonly PreviousHash[]
}

/** What a key is bound to, each null where it is not: origins of web pages, addresses and ranges of clients, names of endpoints. */
export type Restrictions = {
  readonly origins: readonly string[] | null
  readonly addresses: readonly string[] | null
  readonly endpoints: readonly string[] | null
}

/** The kinds of limits: requests by the second, in a burst, and by the minute. */
export const rateKinds = ['perSecond', 'burst', 'perMinute'] as const
/** Null where the key has no limit of that kind. */
export type RateLimits = { readonly [Kind in (typeof rateKinds)[number]]: number | null }

export type PreviousHash = { readonly hash: string; readonly validUntil: number }

/** A change of a key; absent fields stay. `revokedAt` null reinstates. */
export type KeyChange = Partial<
  Pick<KeyRecord, 'tier' | 'limit' | 'revokedAt' | 'expiresAt' | 'restrictions' | 'rates'>
>

/** A key beside its subscriber, whose name is null where the record is missing or damaged. */
export type KeyWithSubscriber = {
  readonly id: string
  readonly subscriberId: string
  readonly subscriber: string | null
}

/** The key that a hash belongs to. `validUntil` is null for the current hash. */
export type FoundKey = {
  readonly key: KeyRecord
  readonly subscriber: Subscriber
  readonly validUntil: number | null
}

export interface KeyStore extends SubscriberStore {
  /**
   * Stores a new key. The subscriber must exist. Where a key has the same external id or id already it keeps and returns that
   * one, also under concurrent calls, and writes again what a failover lost of it; else undefined.
   */
  addKey(record: KeyRecord): Promise<KeyRecord | undefined>
  findKey(id: string): Promise<KeyRecord | undefined>
  findByExternalId(externalId: string): Promise<KeyRecord | undefined>
  /**
   * The key with this current or previous hash, and its subscriber. Always reads the store, so that the next call sees a
   * revocation elsewhere.
   */
  findByHash(hash: string): Promise<FoundKey | undefined>
  /**
   * The keys, oldest first: all, or `count` of them after the first `from`. Leaves damaged records out, so that it may return
   * fewer before the end.
   */
  listKeys(from?: number, count?: number): Promise<KeyRecord[]>
  /**
   * A part of all keys beside their subscribers, about oldest first, damaged ones too: cheaper than the records of both.
   * @param from the `next` of the part before; it is null at the end
   */
  keysWithSubscribers(
    from?: number,
  ): Promise<{ readonly keys: readonly KeyWithSubscriber[]; readonly next: number | null }>
  /** How many keys there are, damaged ones too. */
  countKeys(): Promise<number>
  /** False when there is no such key. */
  changeKey(id: string, change: KeyChange): Promise<boolean>
  /**
   * Replaces the hash of a key. The current one is valid until `previousValidUntil`; earlier ones expire no later than that.
   * False when there is no such key.
   */
  replaceHash(id: string, hash: string, previousValidUntil: number): Promise<boolean>
}

export interface SubscriberStore {
  /**
   * The subscriber of this name; stores the given one when the name is new, or under the id of the name when a failover lost the
   * record. One per name, also under concurrent calls.
   */
  ensureSubscriber(subscriber: Subscriber): Promise<Subscriber>
  /** By id, or by name. */
  findSubscriber(idOrName: string): Promise<Subscriber | undefined>
  /** The id of a name, also where a failover lost the subscriber's record. */
  findSubscriberId(name: string): Promise<string | undefined>
  /** All subscribers, oldest first; read in parts with a turn of the event loop each. */
  listSubscribers(): Promise<Subscriber[]>
  setSubscriberRevoked(id: string, at: number | null): Promise<boolean>
}

/** Requests in a row that cost the same number of units; none only where they take a token. */
export type UsageRun = { readonly unitsEach: number; readonly requests: number }

/** One instance's report and reservation for one key's count. */
export type UsageEntry = {
  readonly keyId: string
  /** Units to reserve, as many as are left; 0 only reports and reads. */
  readonly units: number
  /** Reserved instead of `units`, in this order: each request gets all its units, or none where fewer are left. */
  readonly runs?: readonly UsageRun[] | undefined
  /**
   * The token buckets of a key with limits by the second and minute, for each of the `runs`' requests a token of every bucket: those
   * that find none get no units either. Buckets that are unknown or damaged are full. They refill by the store's clock.
   */
  readonly buckets?: readonly TokenEntry[] | undefined
  readonly limit: number
  /** All units of this count that the instance has admitted so far. The store corrects its own figure to this first. */
  readonly admitted: number
  /** How many of those the store has confirmed. A store that lost its figure for the instance assumes this one. */
  readonly confirmed: number
  /** The store publishes a message when the count passes a multiple of it. */
  readonly step: number
}

/** One batch of an instance, for keys of one partition on one day; it has at most one entry of a key. */
export type UsageBatch = {
  /** Without blanks and colons. */
  readonly instance: string
  /** Increases with each batch of an instance in a partition. A batch that arrives after a later one changes nothing. */
  readonly sequence: number
  /** The local day that the units belong to, `YYYY-MM-DD`. */
  readonly day: string
  /** When the day ends, and when its counts may be deleted; ms since the epoch. */
  readonly endsAt: number
  readonly keepUntil: number
  readonly entries: readonly UsageEntry[]
}

/** `granted` units of this batch; the day's count was `before` and is `used` now. */
export type UsageGrant = {
  readonly granted: number
  readonly used: number
  readonly before: number
  /** Of an entry with buckets. */
  readonly tokens?: TokenGrant | undefined
}

export type UsageMessage = { readonly keyId: string; readonly day: string; readonly used: number }

export interface UsageStore {
  /** The partition of a key: a small number. A batch counts keys of one partition in one atomic step. */
  partitionOf(keyId: string): number
  /**
   * Grants each entry what it requests of the rest of its day's limit, in one atomic step over all instances. Granted units
   * survive the death of this process. A batch with unknown outcome does no harm: the next one reports the units that were really
   * admitted. @throws StoreError, and OvertakenError when a later batch of the instance came first
   */
  commit(batch: UsageBatch): Promise<UsageGrant[]>
  /** The usage of a key on each of the days, in their order; 0 for a day without a count. */
  usedOn(keyId: string, days: readonly string[]): Promise<number[]>
  /** Subscribes to counts of all instances that passed a step; `lost`: messages may have been lost. Returns an unsubscribe. */
  onUsage(listener: (message: UsageMessage | 'lost') => void): () => void
  /** Whether such messages arrive; while they do not, counts of others have to be read. */
  usageMessagesArrive(): boolean
  /** The store's own clock, ms since the epoch. */
  time(): Promise<number>
  /** Raises the day's count to at least this: for imports from another store. */
  raiseUsed(keyId: string, day: string, used: number, keepUntil: number): Promise<void>
  /**
   * Drops counts of days before `countsBefore`, their detail two days later, and sums of months that ended before `sumsBefore`.
   */
  dropDays(before: { readonly countsBefore: string; readonly sumsBefore: string }): Promise<void>
}

/** The number of responses to a key on a day, by endpoint and status class such as `2xx`. */
export type AnswerCount = {
  readonly endpoint: string
  readonly statusClass: string
  readonly count: number
}

export interface UsageDetailStore {
  /** Adds to the counts of keys and days; each day's counts are deleted after its `keepUntil`, ms since the epoch. */
  addDetail(
    entries: readonly (AnswerCount & { keyId: string; day: string; keepUntil: number })[],
  ): Promise<void>
  /** In no particular order. */
  detailOn(keyId: string, day: string): Promise<AnswerCount[]>
}

/** Why the bytes of a key are refused: too large, or of another Redis type. */
type BytesFault = 'too_large' | 'wrong_type'

export interface ByteStore {
  /**
   * Undefined when absent or past its expiry.
   * @param most bytes: a larger value is not fetched. 1 MiB when not given
   */
  readBytes(key: string, most?: number): Promise<Buffer | BytesFault | undefined>
  /**
   * Stores the bytes until `expiresAt` (ms since the epoch); the store expires them.
   * @param holder of the lease of this key: the write is refused, and the result is false, once it has lost the lease
   */
  writeBytes(key: string, bytes: Buffer, expiresAt: number, holder?: string): Promise<boolean>
  /** Whether each of these entries is there and has not expired. */
  hasBytes(keys: readonly string[]): Promise<boolean[]>
  /** Deletes entries; returns how many existed. */
  deleteBytes(keys: readonly string[]): Promise<number>
}

/** `held`: another holder has it. A failure: the last holder's load has just failed. */
export type LeaseReply = 'acquired' | 'held' | { readonly failure: string }

export interface LeaseStore {
  /**
   * Acquires the lease of a key unless another holder has it. A lease ends by itself, so a dead holder blocks a key for one lease
   * at most.
   * @param holder a name that no other load has
   * @param overFailure acquires it although a load has just failed
   */
  acquireLease(key: string, holder: string, leaseMs: number, overFailure?: boolean): Promise<LeaseReply>
  /** Renews a lease; false when the holder has lost it. */
  renewLease(key: string, holder: string, leaseMs: number): Promise<boolean>
  /**
   * Releases the lease unless the holder has lost it.
   * @param failure left to those who wait, for as long as they need to see it; begins with a brace
   */
  releaseLease(key: string, holder: string, failure?: string): Promise<void>
}

type Heartbeat = {
  /** The instance, and how long after this heartbeat it counts as alive. */
  readonly instance: string
  readonly aliveForMs: number
  /** A short hash of the settings that the instances of a fleet should have in common; null with the last heartbeat. */
  readonly settings: string | null
  /** The names requested since its last heartbeat, under a topic, and how long they count as in demand. */
  readonly topic: string
  readonly requested: readonly string[]
  readonly wantedForMs: number
  /** The instant of the request for names; who is alive goes by the store's own clock. */
  readonly now: number
  /** The report of the instance on itself, up to `longestReport` bytes; kept as long as it counts as alive. */
  readonly report: string
}

/** An instance that counts as alive, and its report; undefined where it has none or one that is too large. */
type AliveInstance = {
  readonly id: string
  /** Since its last heartbeat, by the store's clock. */
  readonly silentForMs: number
  readonly report: string | undefined
}

export interface FleetStore {
  /**
   * Records a heartbeat; returns how many instances are alive, how many different settings they run with, by
   * the last report of each, and how many names are in demand.
   */
  heartbeat(heartbeat: Heartbeat): Promise<{ instances: number; variants: number; wanted: number }>
  /** An instance that has stopped and owes the store nothing counts as alive no longer. After its last heartbeat. */
  leave(instance: string): Promise<void>
  /** The instances with a heartbeat in the last so many ms of the store's clock, in no particular order. */
  aliveInstances(aliveForMs: number): Promise<AliveInstance[]>
  /** The names requested in the fleet since an instant, latest first, bounded in number. */
  wanted(topic: string, since: number): Promise<string[]>
  /**
   * Appends a change record, kept until `keepUntil` at least; returns its number, greater than any before it.
   * @param above a number of a log that was lost, which the new number exceeds, unless it is more than a day ahead of the store
   */
  appendChangeRecord(topic: ChangeTopic, text: string, keepUntil: number, above?: number): Promise<number>
  /**
   * The change records with a greater number, in order; after 0 all that there are. `complete` is false when some may be
   * missing: the record with the given number has expired, was dropped because there were many since, or was lost.
   */
  changeRecordsAfter(
    topic: ChangeTopic,
    number: number,
  ): Promise<{ records: ChangeRecord[]; complete: boolean }>
}

/** The logs of changes to keys and of purges. */
export type ChangeTopic = 'keys' | 'purges'

export type ChangeRecord = { readonly number: number; readonly text: string }

/** In bytes; `maxBytes` is 0 where there is no limit. Only Redis evicts. */
export type StoreSize = {
  readonly usedBytes: number
  readonly maxBytes: number
  readonly eviction?: Eviction
}

/** What Redis does when it is full: its policy, whether that may evict API keys, and how many records it evicted since its start. */
export type Eviction = { readonly policy: string; readonly takesKeys: boolean; readonly evicted: number }

export interface Store
  extends KeyStore,
    UsageStore,
    UsageDetailStore,
    ByteStore,
    LeaseStore,
    FleetStore,
    SpendingStore {
  readonly kind: 'redis' | 'embedded'
  /** Resolves when the store answers. @throws StoreError */
  ping(): Promise<void>
  /** The size of the data: memory of Redis, on a cluster of the master with least room; else the file. @throws StoreError */
  size(): Promise<StoreSize>
  close(): Promise<void>
}

export class StoreError extends AbohawaError {
  override name = 'StoreError'

  constructor(message: string, options?: ErrorOptions, code = 'store_unavailable') {
    super(code, message, options)
  }
}

/** The store has counted a later batch of the same instance: the one with the sequence `by`. */
export class OvertakenError extends StoreError {
  override name = 'OvertakenError'
  readonly by: number

  constructor(by: number) {
    super(`a later batch came first: ${by}`)
    this.by = by
  }
}
