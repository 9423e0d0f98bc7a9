// What is known of keys beyond their records: their usage, the day of their last use, and lists of them by a filter. Reads the store in
// parts, with a turn of the event loop for each, so that many keys block nobody.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { dayNumber, daysUpTo, type LocalDay } from '../common/calendar.ts'
import type { AnswerCount, KeyRecord } from '../stores/store.ts'
import type { AdministrationParts } from './key-creation.ts'
import { keyFilterIn } from './key-filter.ts'
import { subscribersOf } from './keys-with-subscribers.ts'
import { type KeyUsage, type ListedKey, listedKey } from './listed-key.ts'
import { cellsLoaded } from './usage-detail.ts'

/** The usage of one of many keys: only the days with a count, newest first, and their sum. */
export type UsageOfKey = Pick<ListedKey, 'id' | 'externalId' | 'subscriber' | 'tier' | 'limit'> & {
  used: number
  days: { day: LocalDay; used: number }[]
}

/**
 * Newest day first; `today` counts the answers of the running day, refusals included, and `cellsLoadedToday` the grid cells that
 * were loaded from the provider for the key.
 */
export type Usage = Pick<UsageOfKey, 'id' | 'subscriber' | 'tier' | 'limit' | 'days'> & {
  today: AnswerCount[]
  cellsLoadedToday: number
}

export const createKeyReports = ({ store, tiers, calendar, clock }: AdministrationParts) => {
  const keptDays = () => daysUpTo(calendar.dayOf(clock.now()), maxDays)
  /** @param kept the days of which counts are kept, today first */
  const usageOf = async ({ id, createdAt }: KeyRecord, kept: readonly LocalDay[]): Promise<KeyUsage> => {
    const [today = ''] = kept
    // A creation of 0 is an unknown one, of an import: all days that are kept are looked at.
    const age = dayNumber(today) - dayNumber(calendar.dayOf(createdAt)) + 1
    const days = kept.slice(0, Math.max(1, age))
    // Most keys were used recently.
    for (const part of [days.slice(0, lateDays), days.slice(lateDays)]) {
      const counts = part.length === 0 ? [] : await store.usedOn(id, part)
      const i = counts.findIndex(used => used > 0)
      if (i >= 0) return { lastUsedOn: part[i] ?? null, usedToday: (part[i] === today && counts[i]) || 0 }
    }
    return { lastUsedOn: null, usedToday: 0 }
  }
  /** What is made of keys in parts, oldest first, of `count` after the first `first`; a turn of the event loop each. */
  async function* partsOf<Made>(
    make: (keys: readonly KeyRecord[]) => Promise<Made>,
    first = 0,
    count = Number.POSITIVE_INFINITY,
  ): AsyncGenerator<Made> {
    const end = Math.min(first + count, await store.countKeys())
    for (let from = first; from < end; from += keysRead) {
      yield await make(await store.listKeys(from, Math.min(keysRead, end - from)))
      await nextTurn()
    }
  }
  /** What is made of so many keys after the first `from`, and where the next part begins, null at the end. */
  const partOf = async <Made>(
    make: (keys: readonly KeyRecord[]) => Promise<Made[]>,
    from: number,
    count: number,
  ): Promise<{ keys: Made[]; next: number | null }> => {
    const keys = (await Array.fromAsync(partsOf(make, from, count))).flat()
    return { keys, next: from + count < (await store.countKeys()) ? from + count : null }
  }
  /** Joins keys with their usage, without those that a filter excludes. */
  const matchingBy = (filter = '') => {
    const { mayMatch, matches } = keyFilterIn(filter, calendar, clock.now())
    const named = subscribersOf(store)
    const days = keptDays()
    return async (keys: readonly KeyRecord[]): Promise<(ListedKey & KeyUsage)[]> => {
      const found = await Promise.all(
        keys.map(async key => {
          const shown = listedKey(key, await named(key.subscriberId), tiers, clock.now())
          if (!mayMatch(shown)) return []
          const whole = { ...shown, ...(await usageOf(key, days)) }
          return matches(whole) ? [whole] : []
        }),
      )
      return found.flat()
    }
  }

  const usageOver = (count: number) => {
    const days = daysUpTo(calendar.dayOf(clock.now()), count)
    const named = subscribersOf(store)
    return (keys: readonly KeyRecord[]): Promise<UsageOfKey[]> =>
      Promise.all(
        keys.map(async key => {
          const shown = listedKey(key, await named(key.subscriberId), tiers, clock.now())
          const { id, externalId, subscriber, tier, limit } = shown
          const counts = daysUsed(await store.usedOn(id, days), days)
          const used = counts.reduce((sum, { used }) => sum + used, 0)
          return { id, externalId, subscriber, tier, limit, used, days: counts }
        }),
      )
  }

  return {
    usageOf: (key: KeyRecord): Promise<KeyUsage> => usageOf(key, keptDays()),
    usage: async (key: KeyRecord, count: number): Promise<Usage> => {
      const days = daysUpTo(calendar.dayOf(clock.now()), count)
      const [used, today, subscriber] = await Promise.all([
        store.usedOn(key.id, days),
        store.detailOn(key.id, days[0] ?? ''),
        store.findSubscriber(key.subscriberId),
      ])
      return {
        id: key.id,
        subscriber: subscriber?.name ?? '',
        tier: key.tier,
        limit: listedKey(key, undefined, tiers, clock.now()).limit,
        days: days.map((day, i) => ({ day, used: used[i] ?? 0 })),
        today: today
          .filter(({ endpoint }) => endpoint !== cellsLoaded)
          .toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1)),
        cellsLoadedToday: today.find(({ endpoint }) => endpoint === cellsLoaded)?.count ?? 0,
      }
    },
    lists: {
      /** All keys, oldest first, or those that match a filter. @throws InputError for a wrong filter */
      listKeys: async (filter?: string): Promise<(ListedKey & KeyUsage)[]> =>
        (await Array.fromAsync(partsOf(matchingBy(filter)))).flat(),
      /**
       * The matching ones of `count` keys after the first `from`, and where the next part begins, null at the end. Keys are
       * never deleted, so parts fit together unless a clock goes back.
       */
      partOfKeys: async (from: number, count: number, filter?: string) =>
        partOf(matchingBy(filter), from, count),
      /** The usage of all keys, oldest first, some at a time. */
      usageOfAll: (count: number): AsyncGenerator<UsageOfKey[]> => partsOf(usageOver(count)),
      /** The usage of `count` keys after the first `from`, and where the next part begins, null at the end. */
      partOfUsage: async (from: number, count: number, days: number) => partOf(usageOver(days), from, count),
    },
  }
}

const daysUsed = (counts: readonly number[], days: readonly LocalDay[]) =>
  counts.flatMap((used, i) => (used > 0 ? [{ day: days[i] ?? '', used }] : []))

const sortKey = ({ endpoint, statusClass }: AnswerCount): string => `${endpoint} ${statusClass}`
/** The number of days whose counts are read, and of those that are read first. */
const maxDays = 400
const lateDays = 31
/** Keys that are read in a turn of the event loop. */
const keysRead = 50
