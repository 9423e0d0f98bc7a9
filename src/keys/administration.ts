// Administers keys and subscribers: create, list, change, rotate, revoke, reinstate, read usage. Notifies the running
// gateways of each change. Unknown names are InputErrors. The command line and the ops listener use it; it knows no terminal
// and no HTTP.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { dayNumber, daysUpTo, isoOf, type LocalDay } from '../common/calendar.ts'
import { InputError, NotFoundError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'
import type { AnswerCount, KeyChange, KeyRecord, Subscriber } from '../stores/store.ts'
import { countedSubscribers, keysBySubscriber, subscribersOf } from './held-keys.ts'
import {
  type AdministrationParts,
  createKeyCreation,
  type IssuedKey,
  type KeySetting,
  longestName,
  tierLimitOf,
} from './key-creation.ts'
import { announceChange } from './key-directory.ts'
import { expiryIn } from './key-expiry.ts'
import { keyFilterIn } from './key-filter.ts'
import { beginsAsKey, createKey, hashOf } from './key-form.ts'
import { termsIn } from './key-terms.ts'
import {
  type CountedSubscriber,
  type KeyUsage,
  type ListedKey,
  type ListedSubscriber,
  listedKey,
  listedSubscriber,
} from './listed-key.ts'
import { nameForm } from './name-forms.ts'
import { checkKind, prefixOf } from './test-keys.ts'
import { cellsLoaded } from './usage-detail.ts'

export {
  type AdministrationParts,
  type CreatedKey,
  type KeyRequest,
  limitIn,
} from './key-creation.ts'
export type { KeyUsage, ListedKey, ListedSubscriber } from './listed-key.ts'

/** The key that replaces another one under the same id; the former key works until `formerKeyUntil`. */
export type RotatedKey = Pick<IssuedKey, 'id' | 'key' | 'subscriber' | 'tier' | 'limit'> & {
  formerKeyUntil: string
}

/** The usage of one of many keys: only the days with a count, newest first, and their sum. */
export type UsageOfKey = Pick<ListedKey, 'id' | 'externalId' | 'subscriber' | 'tier' | 'limit'> & {
  used: number
  days: { day: LocalDay; used: number }[]
}

/**
 * Newest day first; `today` counts the answers of the running day, refusals included, and `cellsLoadedToday` the grid cells that
 * were loaded from the provider for the key.
 */
export type Usage = {
  id: string
  subscriber: string
  tier: string
  limit: number | null
  days: { day: LocalDay; used: number }[]
  today: AnswerCount[]
  cellsLoadedToday: number
}

export type Administration = ReturnType<typeof createAdministration>

export const createAdministration = ({ store, tiers, calendar, clock }: AdministrationParts) => {
  const keyById = async (id: string): Promise<KeyRecord> => {
    if (beginsAsKey(id))
      throw new InputError(
        'that is a key and not the id of one, which begins with key_; `abohawa keys list` shows the ids',
      )
    const key = id.startsWith(externalPrefix)
      ? await store.findByExternalId(nameForm(id.slice(externalPrefix.length)))
      : await store.findKey(id)
    if (!key) throw new NotFoundError(`there is no key ${quoted(id)}; \`abohawa keys list\` shows them all`)
    return key
  }
  const subscriberBy = async (idOrName: string): Promise<Subscriber> => {
    const subscriber = await store.findSubscriber(nameForm(idOrName))
    if (subscriber) return subscriber
    throw new NotFoundError(
      `there is no subscriber ${quoted(idOrName, longestName)}; \`abohawa subscribers list\` shows them all`,
    )
  }
  const listed = (key: KeyRecord, subscriber: Subscriber | undefined): ListedKey =>
    listedKey(key, subscriber, tiers, clock.now())
  const keptDays = () => daysUpTo(calendar.dayOf(clock.now()), maxDays)
  /** @param kept the days of which counts are kept, today first */
  const usageOf = async ({ id, createdAt }: KeyRecord, kept: readonly LocalDay[]): Promise<KeyUsage> => {
    const [today = ''] = kept
    // An import may have brought counts of earlier days, as far as they are kept.
    const age = createdAt === 0 ? maxDays : dayNumber(today) - dayNumber(calendar.dayOf(createdAt)) + 1
    const days = kept.slice(0, Math.max(1, age))
    // Most keys were used of late.
    for (const part of [days.slice(0, lateDays), days.slice(lateDays)]) {
      const counts = part.length === 0 ? [] : await store.usedOn(id, part)
      const i = counts.findIndex(used => used > 0)
      if (i >= 0) return { lastUsedOn: part[i] ?? null, usedToday: (part[i] === today && counts[i]) || 0 }
    }
    return { lastUsedOn: null, usedToday: 0 }
  }
  const showKey = async (id: string): Promise<ListedKey & KeyUsage> => {
    const key = await keyById(id)
    const [subscriber, usage] = await Promise.all([
      store.findSubscriber(key.subscriberId),
      usageOf(key, keptDays()),
    ])
    return { ...listed(key, subscriber), ...usage }
  }
  const showSubscriber = async (id: string): Promise<CountedSubscriber> => {
    const subscriber = await subscriberBy(id)
    return { ...listedSubscriber(subscriber), keys: (await keysBySubscriber(store)).get(subscriber.id) ?? 0 }
  }
  // Announces even without a change: an earlier try may have failed between the two steps.
  const changeKey = async (id: string, change: KeyChange): Promise<ListedKey & KeyUsage> => {
    await store.changeKey(id, change)
    await announceChange(store, id, clock.now())
    return showKey(id)
  }
  const setKeyRevoked = async (given: string, at: number | null): Promise<ListedKey & KeyUsage> => {
    const { id, revokedAt } = await keyById(given)
    // A second revocation keeps the instant of the first.
    return changeKey(id, { revokedAt: at === null ? null : (revokedAt ?? at) })
  }
  const setSubscriberRevoked = async (idOrName: string, at: number | null): Promise<ListedSubscriber> => {
    const { id, revokedAt } = await subscriberBy(idOrName)
    if ((revokedAt === null) !== (at === null)) await store.setSubscriberRevoked(id, at)
    await announceChange(store, id, clock.now())
    return listedSubscriber(await subscriberBy(id))
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
          const shown = listed(key, await named(key.subscriberId))
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
          const { id, externalId, subscriber, tier, limit } = listed(key, await named(key.subscriberId))
          const counts = (await store.usedOn(id, days)).flatMap((used, i) =>
            used > 0 ? [{ day: days[i] ?? '', used }] : [],
          )
          const used = counts.reduce((sum, { used }) => sum + used, 0)
          return { id, externalId, subscriber, tier, limit, used, days: counts }
        }),
      )
  }

  return {
    ...createKeyCreation({ store, tiers, calendar, clock }),
    /**
     * Creates another key under the same id and count; the former key works for `overlapMs` more.
     * @param show receives it before it is valid; when it rejects, the former key stays
     */
    rotateKey: async (
      given: string,
      overlapMs: number,
      show: (planned: RotatedKey) => Promise<void> = async () => {},
    ): Promise<RotatedKey> => {
      const record = await keyById(given)
      const { id, subscriber, status, tier } = listed(record, await store.findSubscriber(record.subscriberId))
      if (status === 'revoked')
        throw new InputError(`key ${id} is revoked; \`abohawa keys revoke --undo ${id}\` first`)
      if (status === 'subscriber missing')
        throw new InputError(
          `the record of subscriber ${record.subscriberId} is missing, so that no key of it is valid; \`abohawa store import\` of an earlier export writes it again`,
        )
      if (status === 'subscriber revoked')
        throw new InputError(
          `subscriber ${quoted(subscriber, longestName)} is revoked; \`abohawa subscribers revoke --undo ${record.subscriberId}\` first`,
        )
      const limit = record.limit ?? tierLimitOf(tiers, tier)
      const key = createKey(prefixOf(tier))
      const until = clock.now() + overlapMs
      const rotated = { id, key, subscriber, tier, limit, formerKeyUntil: isoOf(until) }
      await show(rotated)
      await store.replaceHash(id, hashOf(key), until)
      await announceChange(store, id, clock.now())
      return rotated
    },
    /**
     * Sets what is given of a key, all in one step: tier, limit, expiry (as in key-expiry.ts) and terms (as in key-terms.ts). A
     * limit of its own stays when the tier changes.
     */
    setKey: async (given: string, setting: KeySetting): Promise<ListedKey & KeyUsage> => {
      const { tier, limit, expires } = setting
      if (tier !== undefined) tierLimitOf(tiers, tier)
      const key = await keyById(given)
      checkKind(key, tier)
      return changeKey(key.id, {
        ...(tier === undefined ? {} : { tier }),
        ...(limit === undefined ? {} : { limit }),
        ...(expires === undefined ? {} : { expiresAt: expiryIn(expires, calendar, clock.now()) }),
        ...termsIn(setting, key),
      })
    },
    /** All keys, oldest first, or those that match a filter. @throws InputError for a wrong filter */
    listKeys: async (filter?: string): Promise<(ListedKey & KeyUsage)[]> =>
      (await Array.fromAsync(partsOf(matchingBy(filter)))).flat(),
    /**
     * The matching ones of `count` keys after the first `from`, and where the next part begins, null at the end. Keys are
     * never deleted, so parts fit together unless a clock goes back.
     */
    partOfKeys: async (from: number, count: number, filter?: string) =>
      partOf(matchingBy(filter), from, count),
    showKey,
    revokeKey: (id: string) => setKeyRevoked(id, clock.now()),
    reinstateKey: (id: string) => setKeyRevoked(id, null),
    usage: async (given: string, count: number): Promise<Usage> => {
      const key = await keyById(given)
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
        limit: listed(key, undefined).limit,
        days: days.map((day, i) => ({ day, used: used[i] ?? 0 })),
        today: today
          .filter(({ endpoint }) => endpoint !== cellsLoaded)
          .toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1)),
        cellsLoadedToday: today.find(({ endpoint }) => endpoint === cellsLoaded)?.count ?? 0,
      }
    },
    /** The usage of all keys, oldest first, some at a time. */
    usageOfAll: (count: number): AsyncGenerator<UsageOfKey[]> => partsOf(usageOver(count)),
    /** The usage of `count` keys after the first `from`, and where the next part begins, null at the end. */
    partOfUsage: async (from: number, count: number, days: number) => partOf(usageOver(days), from, count),
    countKeys: () => store.countKeys(),
    showSubscriber,
    /** Oldest first, with a turn of the event loop for each part. */
    subscribersInParts: () => countedSubscribers(store),
    listSubscribers: async (): Promise<CountedSubscriber[]> =>
      (await Array.fromAsync(countedSubscribers(store))).flat(),
    revokeSubscriber: (idOrName: string) => setSubscriberRevoked(idOrName, clock.now()),
    reinstateSubscriber: (idOrName: string) => setSubscriberRevoked(idOrName, null),
  }
}

const sortKey = ({ endpoint, statusClass }: AnswerCount): string => `${endpoint} ${statusClass}`
/** In place of an id: `external:` and the external id. */
const externalPrefix = 'external:'
/** The number of days whose counts are read, and of those that are read first. */
const maxDays = 400
const lateDays = 31
/** Keys that are read in a turn of the event loop. */
const keysRead = 50
