// Exports keys, subscribers and usage of a store as records, and imports them into another one. Keys are exported as hashes.
// Weather and provider spending are not exported, because they are loaded or counted again.

import { type Calendar, dayNumber, daysUpTo, hourMs, utcDayMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { InputError } from '../common/errors.ts'
import { jsonText, quoted, shortened } from '../common/outside-text.ts'
import { hashesOf } from '../stores/records.ts'
import type { FleetStore, KeyRecord, KeyStore, UsageStore } from '../stores/store.ts'
import { announceChange } from './key-directory.ts'
import { longestText, type RecordOf, type TransferRecord } from './transfer-records.ts'

type TransferStore = KeyStore & UsageStore & Pick<FleetStore, 'appendChangeRecord'>

export type Totals = { subscribers: number; keys: number; usage: number }

/** The totals of an import, and how many records were new. */
export type Imported = Totals & { newSubscribers: number; newKeys: number }

const usageDays = 400

/**
 * Yields all records of a store, each after those it refers to.
 * @param leaveOut gets a sentence for each record that is left out because a failover lost records
 */
export async function* exportRecords(
  store: Pick<TransferStore, 'listSubscribers' | 'findSubscriber' | 'countKeys' | 'listKeys' | 'usedOn'>,
  calendar: Calendar,
  clock: Clock,
  leaveOut: (sentence: string) => void,
): AsyncGenerator<TransferRecord> {
  const totals: Totals = { subscribers: 0, keys: 0, usage: 0 }
  const listed = await store.countKeys()
  const found = await store.listKeys()
  if (found.length < listed) leaveOut(`the store lists ${listed} keys and has the records of ${found.length}`)
  const subscribers = new Map((await store.listSubscribers()).map(each => [each.id, each]))
  const keys: KeyRecord[] = []
  for (const key of found) {
    // The list may have lost a subscriber whose record is there.
    const subscriber = subscribers.get(key.subscriberId) ?? (await store.findSubscriber(key.subscriberId))
    if (subscriber?.id === key.subscriberId) {
      subscribers.set(subscriber.id, subscriber)
      keys.push(key)
    } else leaveOut(`the record of subscriber ${key.subscriberId} of key ${key.id} is lost`)
  }
  for (const subscriber of subscribers.values()) {
    totals.subscribers += 1
    yield { record: 'subscriber', ...subscriber }
  }
  for (const key of keys) {
    totals.keys += 1
    yield { record: 'key', ...key, previousHashes: [...key.previousHashes] }
  }
  const days = daysUpTo(calendar.dayOf(clock.now()), usageDays).reverse()
  for (const { id: keyId } of keys) {
    const counts = await store.usedOn(keyId, days)
    for (const [i, day] of days.entries()) {
      const used = counts[i] ?? 0
      if (used === 0) continue
      totals.usage += 1
      yield { record: 'usage', keyId, day, used }
    }
  }
  yield { record: 'end', ...totals }
}

export type ImportOptions = {
  /** How long a day's count is kept after the end of the day. */
  readonly keepUsageForMs: number
  /** Called after every line, in both passes. */
  readonly onLine?: (pass: 'checked' | 'written', lines: number) => void
}

/**
 * Imports records into a store. Checks all records first, and writes none if one contradicts another or the store. Keeps
 * existing records, and only raises counts, so that a second import changes nothing.
 * @param records yields them from the beginning on each call
 * @param lineOf names the record by its number, from 1
 * @throws InputError
 */
export const importRecords = async (
  store: TransferStore,
  records: () => AsyncIterable<TransferRecord>,
  lineOf: (number: number) => string,
  { keepUsageForMs, onLine }: ImportOptions,
  calendar: Calendar,
  clock: Clock,
): Promise<Imported> => {
  const check = await createCheck(store)
  let lines = 0
  for await (const record of records()) {
    lines += 1
    const fault = check.faultOf(record)
    if (fault !== undefined) throw new InputError(`${lineOf(lines)}: ${fault}; nothing was imported`)
    onLine?.('checked', lines)
  }
  if (!check.isWhole())
    throw new InputError(
      `the export was cut off: its end is missing after ${lines} records; nothing was imported`,
    )

  let written = 0
  for await (const record of records()) {
    written += 1
    // Those that are there too: what a failover lost of them is written again.
    if (record.record === 'subscriber') {
      const { record: _, ...subscriber } = record
      const { id } = await store.ensureSubscriber(subscriber)
      if (id !== subscriber.id) throw new InputError(`${lineOf(written)}: ${nameOfAnother(subscriber, id)}`)
    } else if (record.record === 'key') {
      const { record: _, ...key } = record
      await store.addKey(key)
    } else if (record.record === 'usage') {
      const { keyId, day, used } = record
      // In some time zones this instant is in the next day; the count is kept a day longer there.
      const noon = dayNumber(day) * utcDayMs + 12 * hourMs
      const keepUntil = calendar.nextMidnight(noon) + Math.max(hourMs, keepUsageForMs)
      if (keepUntil > clock.now()) await store.raiseUsed(keyId, day, used, keepUntil)
    }
    onLine?.('written', written)
  }
  // Gateways look keys up again that were unknown until now.
  await announceChange(store, 'import', clock.now())
  if (written !== lines)
    throw new InputError(
      `the export changed: it had ${lines} records when it was checked, and ${written} were imported`,
    )
  return check.totals
}

/** Checks records against the store as it was, and against the records before them. */
const createCheck = async (store: TransferStore) => {
  const subscribers = new Map((await store.listSubscribers()).map(each => [each.id, each]))
  const keys = new Map((await store.listKeys()).map(each => [each.id, each]))
  const subscriberIdOf = new Map([...subscribers.values()].map(({ id, name }) => [name, id]))
  const keyIdOf = new Map([...keys.values()].flatMap(key => hashesOf(key).map(hash => [hash, key.id])))
  const keyIdOfExternal = new Map([...keys.values()].map(({ externalId, id }) => [externalId, id]))
  const totals: Imported = { subscribers: 0, keys: 0, usage: 0, newSubscribers: 0, newKeys: 0 }
  let ended: RecordOf<'end'> | undefined

  const faultOfSubscriber = ({ record: _, ...given }: RecordOf<'subscriber'>): string | undefined => {
    const difference = differenceOf(`subscriber ${given.id}`, subscribers.get(given.id), given)
    if (difference !== undefined) return difference
    const taken = subscriberIdOf.get(given.name)
    if (taken !== undefined && taken !== given.id) return nameOfAnother(given, taken)
    if (!subscribers.has(given.id)) totals.newSubscribers += 1
    subscribers.set(given.id, given)
    subscriberIdOf.set(given.name, given.id)
    totals.subscribers += 1
    return undefined
  }
  const faultOfKey = ({ record: _, ...given }: RecordOf<'key'>): string | undefined => {
    const difference = differenceOf(`key ${given.id}`, keys.get(given.id), given)
    if (difference !== undefined) return difference
    if (!subscribers.has(given.subscriberId))
      return `subscriber ${given.subscriberId} of key ${given.id} is neither in the store nor on an earlier line`
    for (const hash of hashesOf(given)) {
      const taken = keyIdOf.get(hash)
      if (taken !== undefined && taken !== given.id)
        return `key ${given.id} has the hash ${hash}, which belongs to ${taken}`
      keyIdOf.set(hash, given.id)
    }
    const holder = given.externalId === null ? undefined : keyIdOfExternal.get(given.externalId)
    if (holder !== undefined && holder !== given.id)
      return `key ${given.id} has the external id ${quoted(given.externalId ?? '', longestText)}, which belongs to ${holder}`
    if (given.externalId !== null) keyIdOfExternal.set(given.externalId, given.id)
    if (!keys.has(given.id)) totals.newKeys += 1
    keys.set(given.id, given)
    totals.keys += 1
    return undefined
  }
  const faultOfUsage = ({ keyId }: RecordOf<'usage'>): string | undefined => {
    if (!keys.has(keyId)) return `key ${keyId} of this usage is neither in the store nor on an earlier line`
    totals.usage += 1
    return undefined
  }
  const faultOfEnd = (record: RecordOf<'end'>): string | undefined => {
    ended = record
    for (const name of ['subscribers', 'keys', 'usage'] as const)
      if (record[name] !== totals[name])
        return `the export had ${record[name]} records of ${name}, but this file has ${totals[name]}`
    return undefined
  }

  return {
    totals,
    faultOf: (record: TransferRecord): string | undefined => {
      if (ended) return 'it comes after the end of the export'
      switch (record.record) {
        case 'subscriber':
          return faultOfSubscriber(record)
        case 'key':
          return faultOfKey(record)
        case 'usage':
          return faultOfUsage(record)
        case 'end':
          return faultOfEnd(record)
      }
    },
    isWhole: () => ended !== undefined,
  }
}

const nameOfAnother = ({ id, name }: { id: string; name: string }, taken: string): string =>
  `subscriber ${id} is named ${quoted(name, longestText)}, which is the name of ${taken}`

/** The first difference between two records of one id. */
const differenceOf = (name: string, there: object | undefined, given: object): string | undefined => {
  if (there === undefined) return undefined
  const [before, after] = [there, given] as Record<string, unknown>[]
  const field = Object.keys(given).find(
    each => JSON.stringify(before?.[each]) !== JSON.stringify(after?.[each]),
  )
  // As the export names it.
  const shownField = field === 'previousHashes' ? 'formers' : field
  return field === undefined
    ? undefined
    : `${name} exists with another ${shownField}: ${shown(before?.[field])}, and the export has ${shown(after?.[field])}`
}

const shown = (value: unknown): string => shortened(jsonText(value), longestText)
