// Administers keys and subscribers: create, list, change, rotate, revoke, reinstate, read usage. Notifies the running
// gateways of each change. Unknown names are InputErrors. The command line uses it; it knows no terminal and no HTTP.

import { closestMatch } from 'leven'
import { type Calendar, daysUpTo, type LocalDay } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import { InputError } from '../errors.ts'
import { holdsKey } from '../key-redaction.ts'
import { isPrintable, quoted } from '../outside-text.ts'
import { DamagedRecordError } from '../stores/records.ts'
import type { AnswerCount, KeyChange, KeyRecord, Store, Subscriber } from '../stores/store.ts'
import { limitOfTier, type Tiers } from './authentication.ts'
import { announceChange } from './key-directory.ts'
import { createKey, hashOf, keyPrefix, type PresentedKey, randomBase62 } from './key-form.ts'

/** A new key. `key` is returned once and can't be recovered. */
export type IssuedKey = { id: string; key: PresentedKey; subscriber: string; tier: string; limit: number }

/** The key that replaces another one under the same id; the former key works until `formerKeyUntil`. */
export type RotatedKey = IssuedKey & { formerKeyUntil: string }

/** A key as lists show it. `status` counts the subscriber's revocation too. */
export type ListedKey = {
  id: string
  subscriber: string
  subscriberId: string
  tier: string
  /** Null when the tier is not configured any more and the key has no limit of its own; requests with it get 500. */
  limit: number | null
  /** Whether the limit is the key's own and not its tier's. */
  ownLimit: boolean
  status: 'active' | 'revoked' | 'subscriber revoked'
  createdAt: string
  revokedAt: string | null
  /** Until when a former key of this id works; null when none does. */
  formerKeyUntil: string | null
}

export type ListedSubscriber = {
  id: string
  name: string
  status: 'active' | 'revoked'
  keys: number
  createdAt: string
  revokedAt: string | null
}

/** Newest day first; `today` counts the answers of the running day, those of refused requests too. */
export type Usage = {
  id: string
  subscriber: string
  tier: string
  limit: number | null
  days: { day: LocalDay; used: number }[]
  today: AnswerCount[]
}

export type AdministrationParts = { store: Store; tiers: Tiers; calendar: Calendar; clock: Clock }

export type Administration = ReturnType<typeof createAdministration>

export const createAdministration = ({ store, tiers, calendar, clock }: AdministrationParts) => {
  const limitOf = (tier: string): number => {
    const limit = limitOfTier(tiers, tier)
    if (limit === undefined)
      throw new InputError(`tier is ${quoted(tier)}; allowed: ${Object.keys(tiers).join(', ')}`)
    return limit
  }
  const keyById = async (id: string): Promise<KeyRecord> => {
    if (id.startsWith(keyPrefix))
      throw new InputError(
        'that is a key and not the id of one, which begins with key_; `abohawa keys list` shows the ids',
      )
    const key = await store.findKey(id)
    if (!key) throw new InputError(`there is no key ${quoted(id)}; \`abohawa keys list\` shows them all`)
    return key
  }
  /** When the key was revoked. Null also for a damaged record: the change may repair it. @throws InputError if there is no key */
  const revocationOf = async (id: string): Promise<number | null> => {
    try {
      return (await keyById(id)).revokedAt
    } catch (error) {
      if (error instanceof DamagedRecordError) return null
      throw error
    }
  }
  const subscriberBy = async (idOrName: string): Promise<Subscriber> => {
    const subscriber = await store.findSubscriber(idOrName)
    if (!subscriber)
      throw new InputError(
        `there is no subscriber ${quoted(idOrName, longestName)}; \`abohawa subscribers list\` shows them all`,
      )
    return subscriber
  }
  const limitOrNull = ({ limit, tier }: KeyRecord) => limit ?? limitOfTier(tiers, tier) ?? null

  const listed = (key: KeyRecord, subscriber: Subscriber | undefined): ListedKey => ({
    id: key.id,
    subscriber: subscriber?.name ?? '',
    subscriberId: key.subscriberId,
    tier: key.tier,
    limit: limitOrNull(key),
    ownLimit: key.limit !== null,
    status:
      key.revokedAt !== null ? 'revoked' : subscriber?.revokedAt != null ? 'subscriber revoked' : 'active',
    createdAt: isoOf(key.createdAt),
    revokedAt: isoOrNull(key.revokedAt),
    formerKeyUntil: isoOrNull(
      key.formers.findLast(({ validUntil }) => validUntil > clock.now())?.validUntil ?? null,
    ),
  })
  const showKey = async (id: string): Promise<ListedKey> => {
    const key = await keyById(id)
    return listed(key, await store.findSubscriber(key.subscriberId))
  }
  const showSubscriber = async (id: string): Promise<ListedSubscriber> => {
    const subscriber = await subscriberBy(id)
    const keys = await store.listKeys()
    return listedSubscriber(subscriber, keys)
  }
  // Announces even without a change: an earlier try may have failed between the two steps.
  const changeKey = async (id: string, change: KeyChange): Promise<ListedKey> => {
    await store.changeKey(id, change)
    await announceChange(store, id, clock.now())
    return showKey(id)
  }
  const setKeyRevoked = async (id: string, at: number | null): Promise<ListedKey> => {
    const revokedAt = await revocationOf(id)
    // A second revocation keeps the instant of the first.
    return changeKey(id, { revokedAt: at === null ? null : (revokedAt ?? at) })
  }
  const setSubscriberRevoked = async (idOrName: string, at: number | null): Promise<ListedSubscriber> => {
    const { id, revokedAt } = await subscriberBy(idOrName)
    if ((revokedAt === null) !== (at === null)) await store.setSubscriberRevoked(id, at)
    await announceChange(store, id, clock.now())
    return showSubscriber(id)
  }

  return {
    /** Creates a key for the subscriber of that name, and the subscriber if there is none. @throws InputError */
    createKey: async (subscriberName: string, tier: string): Promise<IssuedKey> => {
      const limit = limitOf(tier)
      const name = subscriberNameOf(subscriberName)
      const createdAt = clock.now()
      const subscriber = await store.ensureSubscriber({
        id: `sub_${randomBase62(12)}`,
        name,
        createdAt,
        revokedAt: null,
      })
      if (subscriber.revokedAt !== null)
        throw new InputError(
          `subscriber ${quoted(name, longestName)} is revoked; \`abohawa subscribers reinstate ${subscriber.id}\` first`,
        )
      const key = createKey()
      const id = `key_${randomBase62(12)}`
      await store.addKey({
        id,
        hash: hashOf(key),
        subscriberId: subscriber.id,
        tier,
        limit: null,
        createdAt,
        revokedAt: null,
        formers: [],
      })
      await announceChange(store, id, createdAt)
      return { id, key, subscriber: name, tier, limit }
    },
    /** The known subscriber whose name is nearly this new one, as after a typing error. */
    nearlyNamed: async (subscriberName: string): Promise<string | undefined> => {
      const name = subscriberNameOf(subscriberName)
      const names = (await store.listSubscribers()).map(subscriber => subscriber.name)
      if (names.includes(name)) return undefined
      const folded = names.map(fold)
      const nearest = closestMatch(fold(name), folded, {
        maxDistance: Math.min(3, Math.floor(name.length / 4)),
      })
      return nearest === undefined ? undefined : names[folded.indexOf(nearest)]
    },
    /** Creates another key under the same id and count; the former key works for `overlapMs` more. */
    rotateKey: async (id: string, overlapMs: number): Promise<RotatedKey> => {
      const record = await keyById(id)
      const { subscriber, status, tier } = listed(record, await store.findSubscriber(record.subscriberId))
      if (status === 'revoked')
        throw new InputError(`key ${id} is revoked; \`abohawa keys reinstate ${id}\` first`)
      if (status === 'subscriber revoked')
        throw new InputError(
          `subscriber ${quoted(subscriber, longestName)} is revoked; \`abohawa subscribers reinstate ${record.subscriberId}\` first`,
        )
      const limit = record.limit ?? limitOf(tier)
      const key = createKey()
      const until = clock.now() + overlapMs
      await store.replaceHash(id, hashOf(key), until)
      await announceChange(store, id, clock.now())
      return { id, key, subscriber, tier, limit, formerKeyUntil: isoOf(until) }
    },
    /** Moves a key to another tier; a limit of its own stays. */
    setTier: async (id: string, tier: string): Promise<ListedKey> => {
      limitOf(tier)
      await revocationOf(id)
      return changeKey(id, { tier })
    },
    /** Sets a key's own limit; null removes it, so that the tier's applies. */
    setLimit: async (id: string, limit: number | null): Promise<ListedKey> => {
      await revocationOf(id)
      return changeKey(id, { limit })
    },
    listKeys: async (): Promise<ListedKey[]> => {
      const subscribers = new Map((await store.listSubscribers()).map(each => [each.id, each]))
      return (await store.listKeys()).map(key => listed(key, subscribers.get(key.subscriberId)))
    },
    showKey,
    revokeKey: (id: string) => setKeyRevoked(id, clock.now()),
    reinstateKey: (id: string) => setKeyRevoked(id, null),
    usage: async (id: string, count: number): Promise<Usage> => {
      const key = await keyById(id)
      const days = daysUpTo(calendar.dayOf(clock.now()), count)
      const [used, today, subscriber] = await Promise.all([
        store.usedOn(id, days),
        store.detailOn(id, days[0] ?? ''),
        store.findSubscriber(key.subscriberId),
      ])
      return {
        id,
        subscriber: subscriber?.name ?? '',
        tier: key.tier,
        limit: limitOrNull(key),
        days: days.map((day, i) => ({ day, used: used[i] ?? 0 })),
        today: today.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1)),
      }
    },
    listSubscribers: async (): Promise<ListedSubscriber[]> => {
      const keys = await store.listKeys()
      return (await store.listSubscribers()).map(subscriber => listedSubscriber(subscriber, keys))
    },
    revokeSubscriber: (idOrName: string) => setSubscriberRevoked(idOrName, clock.now()),
    reinstateSubscriber: (idOrName: string) => setSubscriberRevoked(idOrName, null),
  }
}

const listedSubscriber = (subscriber: Subscriber, keys: readonly KeyRecord[]): ListedSubscriber => ({
  id: subscriber.id,
  name: subscriber.name,
  status: subscriber.revokedAt === null ? 'active' : 'revoked',
  keys: keys.filter(key => key.subscriberId === subscriber.id).length,
  createdAt: isoOf(subscriber.createdAt),
  revokedAt: isoOrNull(subscriber.revokedAt),
})

const isoOf = (instant: number): string => new Date(instant).toISOString()
const isoOrNull = (instant: number | null): string | null => (instant === null ? null : isoOf(instant))

const sortKey = ({ endpoint, statusClass }: AnswerCount): string => `${endpoint} ${statusClass}`
const fold = (name: string): string => name.toLowerCase().replaceAll(/\s+/g, ' ')

const longestName = 100

const subscriberNameOf = (given: string): string => {
  const name = given.trim().normalize('NFC')
  if (name === '' || [...name].length > longestName || !isPrintable(name))
    throw new InputError(
      `the subscriber's name is ${quoted(given)}; allowed: 1 to ${longestName} characters on one line, none of them a control or an invisible mark of direction`,
    )
  if (/^sub_/.test(name))
    throw new InputError(`the subscriber's name is ${quoted(given)}; names can't begin with sub_, as ids do`)
  if (holdsKey(name))
    throw new InputError(`the subscriber's name is ${quoted(given)}; names can't hold an API key`)
  return name
}
