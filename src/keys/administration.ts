// Administers keys and subscribers, and notifies the running gateways of each change. Unknown names are InputErrors.

import { isoOf } from '../common/calendar.ts'
import { clockToleranceMs } from '../common/clock.ts'
import { InputError, NotFoundError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'
import type { KeyChange, KeyRecord, Subscriber } from '../stores/store.ts'
import {
  type AdministrationParts,
  createKeyCreation,
  type IssuedKey,
  type KeySetting,
} from './key-creation.ts'
import { announceChange } from './key-directory.ts'
import { expiryIn } from './key-expiry.ts'
import { beginsAsKey, createKey, hashOf } from './key-form.ts'
import { createKeyReports } from './key-reports.ts'
import { longestName, tierLimitOf } from './key-request.ts'
import { termsIn } from './key-terms.ts'
import { countedSubscribers, keysBySubscriber } from './keys-with-subscribers.ts'
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

export type { AdministrationParts, CreatedKey, KeyRequest } from './key-creation.ts'
export type { Usage, UsageOfKey } from './key-reports.ts'
export type { KeyUsage, ListedKey, ListedSubscriber } from './listed-key.ts'

/** The key that replaces another one under the same id; the previous key works until `formerKeyUntil`. */
export type RotatedKey = Pick<IssuedKey, 'id' | 'key' | 'subscriber' | 'tier' | 'limit'> & {
  formerKeyUntil: string
}

export type Administration = ReturnType<typeof createAdministration>

const noKey = (id: string): NotFoundError =>
  new NotFoundError(`there is no key ${quoted(id)}; \`abohawa keys list\` shows them all`)

export const createAdministration = ({ store, tiers, calendar, clock }: AdministrationParts) => {
  const keyById = async (id: string): Promise<KeyRecord> => {
    if (beginsAsKey(id))
      throw new InputError('the id must begin with key_, got an API key; `abohawa keys list` shows the ids')
    const key = id.startsWith(externalPrefix)
      ? await store.findByExternalId(nameForm(id.slice(externalPrefix.length)))
      : await store.findKey(id)
    if (!key) throw noKey(id)
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
  const reports = createKeyReports({ store, tiers, calendar, clock })
  const showKey = async (id: string): Promise<ListedKey & KeyUsage> => {
    const key = await keyById(id)
    const [subscriber, usage] = await Promise.all([
      store.findSubscriber(key.subscriberId),
      reports.usageOf(key),
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

  return {
    ...createKeyCreation({ store, tiers, calendar, clock }),
    /**
     * Creates another key under the same id and count; the previous key works for `overlapMs` more, but not beyond its expiry.
     * @param show receives the new key before it is valid; when it rejects, nothing changes
     */
    rotateKey: async (
      given: string,
      overlapMs: number,
      show: (planned: RotatedKey) => Promise<void> = async () => {},
    ): Promise<RotatedKey> => {
      const record = await keyById(given)
      const { id, subscriber, status, tier } = listed(record, await store.findSubscriber(record.subscriberId))
      checkValid(record, status, subscriber)
      const [limit, key] = [record.limit ?? tierLimitOf(tiers, tier), createKey(prefixOf(tier))]
      const until = Math.min(clock.now() + overlapMs, record.expiresAt ?? Number.POSITIVE_INFINITY)
      const rotated = { id, key, subscriber, tier, limit, formerKeyUntil: isoOf(until) }
      await show(rotated)
      // Without an overlap it ends at once on each gateway, also on one whose clock is behind.
      const validUntil = overlapMs === 0 ? until - clockToleranceMs : until
      if (!(await store.replaceHash(id, hashOf(key), validUntil))) throw noKey(id)
      await announceChange(store, id, clock.now())
      return rotated
    },
    /**
     * Sets what is given of a key in one step: tier, limit, expiry and terms. A custom limit stays when the tier changes.
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
    ...reports.lists,
    usage: async (given: string, days: number) => reports.usage(await keyById(given), days),
    showKey,
    revokeKey: (id: string) => setKeyRevoked(id, clock.now()),
    reinstateKey: (id: string) => setKeyRevoked(id, null),
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

/** @throws InputError for a key that a new secret would not make valid */
const checkValid = (record: KeyRecord, status: ListedKey['status'], subscriber: string): void => {
  if (status === 'revoked')
    throw new InputError(`key ${record.id} is revoked; \`abohawa keys revoke --undo ${record.id}\` first`)
  if (status === 'expired')
    throw new InputError(
      `key ${record.id} has expired; give it a later expiry first: \`abohawa keys set ${record.id} --expires 90d\``,
    )
  if (status === 'subscriber missing')
    throw new InputError(
      `the record of subscriber ${record.subscriberId} is missing, so none of its keys is valid; restore it with \`abohawa store import\` of an earlier export`,
    )
  if (status === 'subscriber revoked')
    throw new InputError(
      `subscriber ${quoted(subscriber, longestName)} is revoked; \`abohawa subscribers revoke --undo ${record.subscriberId}\` first`,
    )
}

/** Instead of an id: `external:` and the external id. */
const externalPrefix = 'external:'
