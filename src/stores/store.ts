// The contract of the state that outlives a request: keys and their subscribers, what they used, the bytes of the shared
// cache tier, what instances tell one another, and what was spent at the provider. Two stores keep it, Redis for a fleet
// and an embedded one for a single process; one test suite holds both to it. A store that can't answer throws
// StoreError; it never answers with a guess.

import { AbohawaError } from '../errors.ts'

/** Who was given keys. Instants are ms since the epoch; `revokedAt` is null while active. */
export type Subscriber = {
  readonly id: string
  readonly name: string
  readonly createdAt: number
  readonly revokedAt: number | null
}

/** A key as it is stored: its hash, never the key. */
export type KeyRecord = {
  readonly id: string
  /** SHA-256 of the key, hexadecimal; unique. */
  readonly hash: string
  readonly subscriberId: string
  readonly tier: string
  /** Requests a day where they are not the tier's; null where they are. */
  readonly limit: number | null
  readonly createdAt: number
  readonly revokedAt: number | null
  /** Hashes that were replaced, by the instant until which each goes on working, which may be past. */
  readonly formers: readonly FormerHash[]
}

export type FormerHash = { readonly hash: string; readonly validUntil: number }

/** What may be changed of a key; what is left out stays. `revokedAt` null reinstates. */
export type KeyChange = Partial<Pick<KeyRecord, 'tier' | 'limit' | 'revokedAt'>>

/** What a hash stands for. `validUntil` is null for the key's present hash. */
export type FoundKey = {
  readonly key: KeyRecord
  readonly subscriber: Subscriber
  readonly validUntil: number | null
}

export interface KeyStore {
  /** Keeps a new key. The subscriber must exist. */
  addKey(record: KeyRecord): Promise<void>
  findKey(id: string): Promise<KeyRecord | undefined>
  /**
   * The key with this hash, present or former, and its subscriber, as they are now: a revocation elsewhere is seen by
   * the next call.
   */
  findByHash(hash: string): Promise<FoundKey | undefined>
  /** All keys, oldest first. */
  listKeys(): Promise<KeyRecord[]>
  /** False when there is no such key. */
  changeKey(id: string, change: KeyChange): Promise<boolean>
  /**
   * Gives the key another hash. The one before works until `formerValidUntil`, and those before that no longer either.
   * False when there is no such key.
   */
  replaceHash(id: string, hash: string, formerValidUntil: number): Promise<boolean>
  /** The subscriber of this name; kept as given when the name is new. One per name, also when two ask at once. */
  ensureSubscriber(subscriber: Subscriber): Promise<Subscriber>
  /** By id, or by name. */
  findSubscriber(idOrName: string): Promise<Subscriber | undefined>
  /** All subscribers, oldest first. */
  listSubscribers(): Promise<Subscriber[]>
  setSubscriberRevoked(id: string, at: number | null): Promise<boolean>
}

/** What one instance asks for of one key's count of one day. */
export type UsageEntry = {
  readonly keyId: string
  /** The local day the units belong to, `YYYY-MM-DD`. */
  readonly day: string
  /** Units wanted; 0 only reports and reads. */
  readonly units: number
  readonly limit: number
  /** All units of this count that the instance has admitted so far. The store corrects its own figure to it first. */
  readonly admitted: number
  /** How many of those the store has confirmed. A store that lost its figure for the instance assumes it to be this. */
  readonly confirmed: number
  /** The store publishes a message when the count passes a multiple of it. */
  readonly step: number
  /** When the day ends, and when its count may be deleted; ms since the epoch. */
  readonly endsAt: number
  readonly keepUntil: number
}

/** What one instance asks for at once, of keys of one partition. */
export type UsageBatch = {
  readonly instance: string
  /** Rises with each batch of an instance in a partition. A batch that arrives after a later one changes nothing. */
  readonly sequence: number
  /** Entries of one day have the same `endsAt` and `keepUntil`. */
  readonly entries: readonly UsageEntry[]
}

/** `granted` units of this batch; the day's count was `before` and is `used` now. */
export type UsageGrant = { readonly granted: number; readonly used: number; readonly before: number }

export type UsageMessage = { readonly keyId: string; readonly day: string; readonly used: number }

export interface UsageStore {
  /** The partition of a key: a small number. A batch counts keys of one partition in one atomic step. */
  partitionOf(keyId: string): number
  /**
   * Grants each entry up to `units` of what is left of its day's limit, in one atomic step over all instances. Granted
   * units survive the death of this process. A batch whose outcome is unknown does no harm: the next one reports what was
   * really admitted. @throws StoreError, and OvertakenError when a later batch of the instance came first
   */
  commit(batch: UsageBatch): Promise<UsageGrant[]>
  /** What a key used on each of the days, in their order; 0 for a day without a count. */
  usedOn(keyId: string, days: readonly string[]): Promise<number[]>
  /** Subscribes to counts of all instances that passed a step; `lost`: messages may have been lost. Returns an unsubscribe. */
  onUsage(listener: (message: UsageMessage | 'lost') => void): () => void
  /** The store's own clock, ms since the epoch. */
  time(): Promise<number>
  /** Raises the day's count to at least this: for imports from another store. */
  raiseUsed(keyId: string, day: string, used: number, keepUntil: number): Promise<void>
}

/** How often a key was answered on a day, at an endpoint and with a class of status such as `2xx`. */
export type AnswerCount = {
  readonly endpoint: string
  readonly statusClass: string
  readonly count: number
}

export interface UsageDetailStore {
  /** Adds to the counts of keys and days; each day's are forgotten after its `keepUntil`, ms since the epoch. */
  addDetail(
    entries: readonly (AnswerCount & { keyId: string; day: string; keepUntil: number })[],
  ): Promise<void>
  /** In no particular order. */
  detailOn(keyId: string, day: string): Promise<AnswerCount[]>
}

/** Why what lies under a key is not read: it is more than can be, or not of the type that bytes have in Redis. */
type BytesFault = 'too_large' | 'wrong_type'

export interface ByteStore {
  /**
   * Undefined when absent or past its expiry.
   * @param most bytes: a larger value is not fetched. 1 MiB when not given
   */
  readBytes(key: string, most?: number): Promise<Buffer | BytesFault | undefined>
  /**
   * Kept until `expiresAt` (ms since the epoch), then forgotten by the store itself. With the token of a flight the
   * bytes are refused, and the answer is false, when a later flight of the key has written.
   */
  writeBytes(key: string, bytes: Buffer, expiresAt: number, token?: number): Promise<boolean>
  /** How many of them were there; all are gone when it resolves. */
  deleteBytes(keys: readonly string[]): Promise<number>
}

export interface FlightStore {
  /**
   * Begins the load of a key unless another has begun it and still holds it: its token, greater than any before it, or
   * how long the other's hold lasts if it is not prolonged. A hold ends by itself, so a dead holder blocks nobody long.
   */
  beginFlight(
    key: string,
    holdMs: number,
  ): Promise<{ token: number; heldForMs: 0 } | { token: null; heldForMs: number }>
  /** Prolongs a hold; false when another has begun meanwhile. */
  holdFlight(key: string, token: number, holdMs: number): Promise<boolean>
  /** Lets go of the key and tells everyone who listens how it went. */
  endFlight(key: string, token: number, news: string): Promise<void>
  /**
   * Hears of every end, over all who share the store. A key of null says that news may have been missed. The answer
   * ends the listening.
   */
  onFlightEnd(listener: (key: string | null, news: string) => void): () => void
}

type Pulse = {
  /** Who says it is alive, and how long that holds. */
  readonly instance: string
  readonly aliveForMs: number
  /** What it was asked for since its last pulse, under a topic, and how long that counts as wanted. */
  readonly topic: string
  readonly asked: readonly string[]
  readonly wantedForMs: number
  readonly now: number
}

export interface FleetStore {
  /** Says that an instance is alive and what is wanted; answers how many instances and wanted names there are. */
  pulse(pulse: Pulse): Promise<{ instances: number; wanted: number }>
  /** What anyone was asked for since an instant, latest first and a bounded number of them. */
  wanted(topic: string, since: number): Promise<string[]>
  /** Keeps a notice for all instances until `keepUntil` at least; its number is greater than that of any before it. */
  appendNotice(topic: string, text: string, keepUntil: number): Promise<number>
  /**
   * The notices with a greater number, in their order. `complete` is false when some may be missing: the one with the
   * number given is gone, by its age, because there were many since, or because the store lost what it held. After 0
   * are all that there are.
   */
  noticesAfter(topic: string, number: number): Promise<{ notices: Notice[]; complete: boolean }>
}

export type Notice = { readonly number: number; readonly text: string }

/** A stretch of the provider's clock with a limit of its own. Amounts are whole thousandths of the provider's weight. */
type SpendingWindow = {
  /** Such as `minute:29384012`. */
  readonly name: string
  readonly limit: number
  /** What the caller knows to be spent: where a count begins again that can't be read. 0 when not given. */
  readonly known?: number
  /** When the window's count may be forgotten, ms since the epoch. */
  readonly keepUntil: number
}

type Reservation = {
  /** A short name of the account at the provider; each is counted apart. */
  readonly provider: string
  readonly windows: readonly SpendingWindow[]
  readonly wanted: number
  readonly unit: number
  /** The instant of the request, ms since the epoch. */
  readonly now: number
}

type SpendingChange = {
  readonly name: string
  /** Negative to give back. */
  readonly by: number
  /** What was there before at the least: for a store that may have lost it. */
  readonly atLeast?: number
  readonly keepUntil: number
}

export interface SpendingStore {
  /**
   * Grants the largest multiple of `unit` up to `wanted` for which no window goes over its limit, and counts it in all
   * of them: one atomic step over everyone who shares the store. `used` is what each window holds after it. Grants 0
   * while the provider is closed, and says until when; `closedUntil` is null otherwise.
   */
  reserve(reservation: Reservation): Promise<{ granted: number; closedUntil: number | null; used: number[] }>
  /** Corrects counts afterwards; none falls below 0. */
  settle(correction: { provider: string; changes: readonly SpendingChange[] }): Promise<void>
  /** Nobody may reserve before this instant; of two the later one counts. */
  closeUntil(provider: string, until: number): Promise<void>
  /**
   * What each of the windows holds, in their order, null where that can't be read; and the last instant it was closed
   * until, which may be past.
   */
  spending(
    provider: string,
    names: readonly string[],
  ): Promise<{ used: (number | null)[]; closedUntil: number | null }>
}

export interface Store
  extends KeyStore,
    UsageStore,
    UsageDetailStore,
    ByteStore,
    FlightStore,
    FleetStore,
    SpendingStore {
  readonly kind: 'redis' | 'embedded'
  /** Resolves when the store answers. @throws StoreError */
  ping(): Promise<void>
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
