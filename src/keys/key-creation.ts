// Creates keys, one or many, and their subscribers. An interrupted run is repeated as a whole: an external id that has a key keeps it. A
// key is shown before it is stored, so that none is lost.

import { closestMatch } from 'leven'
import type { Calendar } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { InputError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'
import type { KeyRecord, Store, Subscriber } from '../stores/store.ts'
import type { Tiers } from './authentication.ts'
import { announceChange } from './key-directory.ts'
import { expiryIn } from './key-expiry.ts'
import { createKey, hashOf, type PresentedKey, randomBase62 } from './key-form.ts'
import { externalIdOf, limitIn, longestName, subscriberNameOf, tierLimitOf } from './key-request.ts'
import { type GivenTerms, termsIn } from './key-terms.ts'
import { subscribersOf } from './keys-with-subscribers.ts'
import { type ListedKey, listedKey } from './listed-key.ts'
import { foldName, nameForm } from './name-forms.ts'
import { checkKind, prefixOf } from './test-keys.ts'

export type AdministrationParts = { store: Store; tiers: Tiers; calendar: Calendar; clock: Clock }

type KeyFacts = Pick<
  ListedKey,
  'id' | 'subscriber' | 'tier' | 'limit' | 'externalId' | 'expiresAt' | 'restrictions' | 'rates'
>

/** A new key. `key` is returned once and can't be recovered. */
export type IssuedKey = KeyFacts & { key: PresentedKey; limit: number }

/** A key of a request; `key` is null where the external id had one already, which stays as it is. */
export type CreatedKey = KeyFacts & { key: PresentedKey | null; existed: boolean }

/** A key before it is stored. `add` stores it, and resolves to the one that has its external id by then. */
type Planned = { readonly planned: CreatedKey; readonly add: () => Promise<CreatedKey> }

/** A key to create, as it was requested. */
export type KeyRequest = GivenTerms & {
  readonly subscriber: string
  readonly tier: string
  readonly externalId?: string | undefined
  /** A custom limit; the tier's if not given. */
  readonly limit?: number | undefined
  readonly expires?: string | undefined
}

/** What to set of a key: a limit that is null is the tier's. */
export type KeySetting = GivenTerms & {
  readonly tier?: string
  readonly limit?: number | null
  readonly expires?: string
}

/** What is wrong with the request at this index, from 0. */
export type RequestFault = { readonly index: number; readonly message: string }

/** The number of keys that are checked at a time, and that are created at a time. */
const keysChecked = 500
const keysCreated = 50

export const createKeyCreation = (parts: AdministrationParts) => {
  const { store, clock } = parts
  const plans = createPlans(parts)
  const { orderOf, plan, planOnce } = plans

  return {
    /** Creates a key for the subscriber of that name, and the subscriber if there is none. @throws InputError */
    createKey: async (
      subscriber: string,
      tier: string,
      more: Pick<KeyRequest, 'limit' | 'expires'> = {},
    ): Promise<IssuedKey> => {
      // Without an external id there is always a new one.
      const { add } = await plan(orderOf({ subscriber, tier, ...more }))
      const { existed: _, ...issued } = await add()
      await announceChange(store, issued.id, clock.now())
      return issued as IssuedKey
    },
    /** The faults of requests; with any fault none of them may be created. Reads the store and changes nothing. */
    faultsOf: (requests: readonly KeyRequest[], isApplied = false): Promise<RequestFault[]> =>
      faultsOf(parts, plans, requests, isApplied),
    /**
     * Creates keys without faults by `faultsOf`, a few at a time; yields those that are in the store. An external id that has a
     * key keeps it, so that an interrupted run can be repeated as a whole.
     * @param show receives each few before they are stored; when it rejects, they are not stored
     * @throws InputError, StoreError
     */
    async *createKeys(
      requests: readonly KeyRequest[],
      show: (planned: readonly CreatedKey[]) => Promise<void> = async () => {},
    ): AsyncGenerator<CreatedKey[]> {
      for (let from = 0; from < requests.length; from += keysCreated) {
        const part = requests.slice(from, from + keysCreated)
        const plans = await Promise.all(part.map(async request => planOnce(request)))
        await show(plans.map(({ planned }) => planned))
        const outcomes = await Promise.allSettled(plans.map(({ add }) => add()))
        const created = outcomes.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []))
        const [first] = created
        // With any change, gateways forget which keys were unknown. One that existed may be valid again, with lost records written.
        const announced = first ? await settled(announceChange(store, first.id, clock.now())) : undefined
        yield created
        const failed = outcomes.find(each => each.status === 'rejected') ?? announced
        if (failed?.status === 'rejected') throw failed.reason
      }
    },
    /** The known subscriber whose name is nearly this new one, as after a typing error. */
    nearlyNamed: async (subscriberName: string): Promise<string | undefined> => {
      const name = subscriberNameOf(subscriberName)
      const names = (await store.listSubscribers()).map(subscriber => subscriber.name)
      if (names.includes(name)) return undefined
      const folded = names.map(foldName)
      const nearest = closestMatch(foldName(name), folded, {
        maxDistance: Math.min(3, Math.floor(name.length / 4)),
      })
      return nearest === undefined ? undefined : names[folded.indexOf(nearest)]
    },
  }
}

/** How a request becomes a key that can be added. */
const createPlans = ({ store, tiers, calendar, clock }: AdministrationParts) => {
  /** A validated request. @throws InputError */
  const orderOf = ({ subscriber, tier, externalId, limit, expires, ...terms }: KeyRequest) => {
    tierLimitOf(tiers, tier)
    if (limit !== undefined) limitIn(String(limit))
    return {
      name: subscriberNameOf(subscriber),
      tier,
      limit: limit ?? null,
      terms: { restrictions: null, rates: null, ...termsIn(terms) },
      externalId: externalId === undefined ? null : externalIdOf(externalId),
      expiresAt: expires === undefined ? null : expiryIn(expires, calendar, clock.now()),
    }
  }
  const refuseRevoked = (subscriber: Subscriber | undefined): void => {
    if (subscriber && subscriber.revokedAt !== null)
      throw new InputError(
        `subscriber ${quoted(subscriber.name, longestName)} is revoked; \`abohawa subscribers revoke --undo ${subscriber.id}\` first`,
      )
  }
  const ensureSubscriber = (id: string, name: string): Promise<Subscriber> =>
    store.ensureSubscriber({ id, name, createdAt: clock.now(), revokedAt: null })
  const factsOf = (record: KeyRecord, holder: Subscriber): KeyFacts => {
    const { id, subscriber, tier, limit, externalId, expiresAt, restrictions, rates } = listedKey(
      record,
      holder,
      tiers,
      clock.now(),
    )
    return { id, subscriber, tier, limit, externalId, expiresAt, restrictions, rates }
  }
  const plan = async (order: ReturnType<typeof orderOf>): Promise<Planned> => {
    const { name, tier, limit, externalId, expiresAt, terms } = order
    const createdAt = clock.now()
    const subscriber = await ensureSubscriber(`sub_${randomBase62(12)}`, name)
    refuseRevoked(subscriber)
    const key = createKey(prefixOf(tier))
    const record: KeyRecord = {
      id: `key_${randomBase62(12)}`,
      hash: hashOf(key),
      subscriberId: subscriber.id,
      tier,
      limit,
      createdAt,
      revokedAt: null,
      expiresAt,
      externalId,
      ...terms,
      previousHashes: [],
    }
    const planned: CreatedKey = { ...factsOf(record, subscriber), key, existed: false }
    const add = async (): Promise<CreatedKey> => {
      const there = await store.addKey(record)
      return there ? existing(there, name) : planned
    }
    return { planned, add }
  }
  /** Writes the record of a subscriber that a failover lost, but only under the name that has its id. @throws InputError */
  const restoredSubscriber = async ({ id, subscriberId }: KeyRecord, name: string): Promise<Subscriber> => {
    if ((await store.findSubscriberId(name)) === subscriberId) return ensureSubscriber(subscriberId, name)
    throw new InputError(
      `the record of subscriber ${subscriberId} of key ${id} is missing, and ${quoted(name, longestName)} is not known as its name; restore it with \`abohawa store import\` of an earlier export`,
    )
  }
  const existing = async (record: KeyRecord, name: string): Promise<CreatedKey> => {
    const subscriberRecord =
      (await store.findSubscriber(record.subscriberId)) ?? (await restoredSubscriber(record, name))
    return { ...factsOf(record, subscriberRecord), key: null, existed: true }
  }
  /** A request whose key exists needs no validation: its expiry may be past by now. */
  const planOnce = async (request: KeyRequest): Promise<Planned> => {
    const there =
      request.externalId === undefined
        ? undefined
        : await store.findByExternalId(externalIdOf(request.externalId))
    // Storing it again only lists a key that an earlier run left unlisted.
    if (!there) return plan(orderOf(request))
    const planned = await existing((await store.addKey(there)) ?? there, subscriberNameOf(request.subscriber))
    return { planned, add: async () => planned }
  }
  return { orderOf, refuseRevoked, plan, planOnce }
}

const faultsOf = async (
  { store }: AdministrationParts,
  { orderOf, refuseRevoked }: ReturnType<typeof createPlans>,
  requests: readonly KeyRequest[],
  isApplied: boolean,
): Promise<RequestFault[]> => {
  const faults: RequestFault[] = []
  const seen = new Set<string>()
  const subscriberNamed = subscribersOf(store)
  const check = async (request: KeyRequest): Promise<void> => {
    const externalId = request.externalId === undefined ? null : externalIdOf(request.externalId)
    const there = externalId === null ? undefined : await store.findByExternalId(externalId)
    const name = subscriberNameOf(request.subscriber)
    const subscriber = await subscriberNamed(name)
    // A name is known also where a failover lost the subscriber.
    if (there && there.subscriberId !== (subscriber?.id ?? (await store.findSubscriberId(name))))
      throw new InputError(
        `external id ${quoted(externalId ?? '', longestName)} belongs to ${there.id}, a key of another subscriber`,
      )
    if (there) {
      termsIn(request, there)
      if (isApplied) checkKind(there, request.tier)
      return
    }
    orderOf(request)
    refuseRevoked(subscriber)
  }
  for (const [index, { externalId }] of requests.entries()) {
    if (externalId === undefined) continue
    const bare = nameForm(externalId)
    if (seen.has(bare))
      faults.push({
        index,
        message: `an earlier request has the external id ${quoted(externalId, longestName)} too`,
      })
    seen.add(bare)
  }
  for (let from = 0; from < requests.length; from += keysChecked)
    await Promise.all(
      requests.slice(from, from + keysChecked).map(async (request, i) => {
        await check(request).catch((error: unknown) => {
          if (!(error instanceof InputError)) throw error
          faults.push({ index: from + i, message: error.message })
        })
      }),
    )
  return faults.sort((one, other) => one.index - other.index)
}

const settled = async (step: Promise<void>) => (await Promise.allSettled([step]))[0]
