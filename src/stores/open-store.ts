// Chooses the store: Redis if a URL is configured, else the embedded store. The client for Redis is loaded only then.

import { resolve } from 'node:path'
import type { Clock } from '../clock.ts'
import { openEmbeddedStore } from './embedded.ts'
import type { RecordObserver } from './records.ts'
import type { RedisObserver, RedisOptions } from './redis-connection.ts'
import type { Store } from './store.ts'
import { exposedStoreFile } from './store-file.ts'

export type StoreOptions = {
  readonly redis: Omit<RedisOptions, 'url'> & { readonly url: string | null }
  readonly store: { readonly path: string }
}

export type StoreObserver = RedisObserver & {
  /** Called with a file of the embedded store that other users of the machine may read or write. */
  storeExposed?(path: string): void
}

/** The name of the store for messages. */
export const storeName = ({ redis: { url, mode, sentinelMaster }, store }: StoreOptions): string => {
  if (url === null) return resolve(store.path)
  const { host } = new URL(url)
  return mode === 'sentinel' ? `${sentinelMaster} at ${host}` : host
}

/** @throws InputError when the store can't be opened */
export const openStore = async (
  { redis, store }: StoreOptions,
  clock: Clock,
  observer: StoreObserver & Partial<RecordObserver>,
): Promise<Store> => {
  const { url } = redis
  if (url === null) {
    const path = store.path === ':memory:' ? store.path : resolve(store.path)
    const opened = openEmbeddedStore(path, clock, observer)
    const exposed = exposedStoreFile(path)
    if (exposed !== undefined) observer.storeExposed?.(exposed)
    return opened
  }
  const { openRedisStore } = await import('./redis.ts')
  return openRedisStore({ ...redis, url }, observer)
}
