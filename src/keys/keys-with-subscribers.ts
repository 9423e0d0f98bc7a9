// Keys beside their subscribers. A store may have very many keys, so they are read in parts.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { KeyStore, KeyWithSubscriber, Subscriber } from '../stores/store.ts'
import { type CountedSubscriber, listedSubscriber } from './listed-key.ts'

const subscribersPerTurn = 500

/** In parts, about oldest first, with a turn of the event loop for each. @throws StoreError */
export async function* allKeysWithSubscribers({
  keysWithSubscribers,
}: Pick<KeyStore, 'keysWithSubscribers'>): AsyncGenerator<readonly KeyWithSubscriber[]> {
  for (let from: number | null = 0; from !== null; await nextTurn()) {
    const { keys, next } = await keysWithSubscribers(from)
    yield keys
    from = next
  }
}

/** The number of keys by the id of their subscriber. @throws StoreError */
export const keysBySubscriber = async (
  store: Pick<KeyStore, 'keysWithSubscribers'>,
): Promise<Map<string, number>> => {
  const keys = new Map<string, number>()
  for await (const part of allKeysWithSubscribers(store))
    for (const { subscriberId } of part) keys.set(subscriberId, (keys.get(subscriberId) ?? 0) + 1)
  return keys
}

/** All subscribers in parts, oldest first, with a turn of the event loop for each. @throws StoreError */
export async function* countedSubscribers(
  store: Pick<KeyStore, 'keysWithSubscribers' | 'listSubscribers'>,
): AsyncGenerator<CountedSubscriber[]> {
  const keys = await keysBySubscriber(store)
  const all = await store.listSubscribers()
  for (let from = 0; from < all.length; from += subscribersPerTurn) {
    const part = all.slice(from, from + subscribersPerTurn)
    yield part.map(each => ({ ...listedSubscriber(each), keys: keys.get(each.id) ?? 0 }))
    await nextTurn()
  }
}

/** Looks subscribers up by id or name, each once; undefined for a missing or damaged one. */
export const subscribersOf = (store: Pick<KeyStore, 'findSubscriber'>) => {
  const known = new Map<string, Promise<Subscriber | undefined>>()
  return (idOrName: string): Promise<Subscriber | undefined> => {
    const subscriber = known.get(idOrName) ?? store.findSubscriber(idOrName)
    known.set(idOrName, subscriber)
    return subscriber
  }
}
