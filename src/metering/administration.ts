// What an operator does with keys and subscribers: create, list, revoke, reinstate, look at usage. Every name that is
// not known is an InputError that says so. Knows no terminal and no HTTP.

import { type Calendar, daysUpTo, type LocalDay } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import { InputError } from '../errors.ts'
import type { KeyRecord, Store, Subscriber } from '../stores/store.ts'
import { createKey, hashOf, keyPrefix, type PresentedKey, randomBase62 } from './key-form.ts'
import { findLimit, limitOf, type Tiers } from './tiers.ts'

/** A new key; `key` is shown this once and can't be recovered. */
export type IssuedKey = { id: string; key: PresentedKey; subscriber: string; tier: string; limit: number }

/** A key as lists show it. `status` counts the subscriber's revocation too. */
export type ListedKey = {
  id: string
  subscriber: string
  subscriberId: string
  tier: string
  /** Null when the key's tier is not configured any more; such a key is answered 500. */
  limit: number | null
  status: 'active' | 'revoked' | 'subscriber revoked'
  createdAt: string
  revokedAt: string | null
}

export type ListedSubscriber = {
  id: string
  name: string
  status: 'active' | 'revoked'
  keys: number
  createdAt: string
  revokedAt: string | null
}

export type Usage = { id: string; limit: number | null; days: { day: LocalDay; used: number }[] }

export type AdministrationParts = { store: Store; tiers: Tiers; calendar: Calendar; clock: Clock }

export type Administration = ReturnType<typeof createAdministration>

export const createAdministration = ({ store, tiers, calendar, clock }: AdministrationParts) => {
  const keyById = async (id: string): Promise<KeyRecord> => {
    if (id.startsWith(keyPrefix))
      throw new InputError(
        'that is a key and not the id of one, which begins with key_; `abohawa keys list` shows the ids',
      )
    const key = await store.findKey(id)
    if (!key) throw new InputError(`there is no key "${id}"; \`abohawa keys list\` shows them all`)
    return key
  }
  const subscriberBy = async (idOrName: string): Promise<Subscriber> => {
    const subscriber = await store.findSubscriber(idOrName)
    if (!subscriber)
      throw new InputError(
        `there is no subscriber "${idOrName}"; \`abohawa subscribers list\` shows them all`,
      )
    return subscriber
  }
  const limitOrNull = (tier: string) => findLimit(tiers, tier) ?? null

  const listed = (key: KeyRecord, subscriber: Subscriber | undefined): ListedKey => ({
    id: key.id,
    subscriber: subscriber?.name ?? '',
    subscriberId: key.subscriberId,
    tier: key.tier,
    limit: limitOrNull(key.tier),
    status:
      key.revokedAt !== null ? 'revoked' : subscriber?.revokedAt != null ? 'subscriber revoked' : 'active',
    createdAt: isoOf(key.createdAt),
    revokedAt: isoOrNull(key.revokedAt),
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
  const setKeyRevoked = async (id: string, at: number | null): Promise<ListedKey> => {
    const { revokedAt } = await keyById(id)
    // Repeating a revocation keeps the instant of the first.
    if ((revokedAt === null) !== (at === null)) await store.setKeyRevoked(id, at)
    return showKey(id)
  }
  const setSubscriberRevoked = async (idOrName: string, at: number | null): Promise<ListedSubscriber> => {
    const { id, revokedAt } = await subscriberBy(idOrName)
    if ((revokedAt === null) !== (at === null)) await store.setSubscriberRevoked(id, at)
    return showSubscriber(id)
  }

  return {
    /** A new key for the subscriber of that name, who is added when new. @throws InputError */
    createKey: async (subscriberName: string, tier: string): Promise<IssuedKey> => {
      const limit = limitOf(tiers, tier)
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
          `subscriber "${name}" is revoked; \`abohawa subscribers reinstate ${subscriber.id}\` first`,
        )
      const key = createKey()
      const id = `key_${randomBase62(12)}`
      await store.addKey({
        id,
        hash: hashOf(key),
        subscriberId: subscriber.id,
        tier,
        createdAt,
        revokedAt: null,
      })
      return { id, key, subscriber: name, tier, limit }
    },
    listKeys: async (): Promise<ListedKey[]> => {
      const subscribers = new Map((await store.listSubscribers()).map(each => [each.id, each]))
      return (await store.listKeys()).map(key => listed(key, subscribers.get(key.subscriberId)))
    },
    showKey,
    revokeKey: (id: string) => setKeyRevoked(id, clock.now()),
    reinstateKey: (id: string) => setKeyRevoked(id, null),
    /** Newest day first. */
    usage: async (id: string, count: number): Promise<Usage> => {
      const key = await keyById(id)
      const days = daysUpTo(calendar.dayOf(clock.now()), count)
      const used = await store.usedOn(id, days)
      return { id, limit: limitOrNull(key.tier), days: days.map((day, i) => ({ day, used: used[i] ?? 0 })) }
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

const subscriberNameOf = (given: string): string => {
  const name = given.trim().normalize('NFC')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused here
  if (name === '' || [...name].length > 100 || /[\u0000-\u001f\u007f]/.test(name))
    throw new InputError(`the subscriber's name is "${given}"; allowed: 1 to 100 characters on one line`)
  if (/^sub_/.test(name))
    throw new InputError(`the subscriber's name is "${given}"; names can't begin with sub_, as ids do`)
  return name
}
