// Chooses the store: Redis if a URL is configured, else the embedded store. The client for Redis is loaded only then. A
// gateway makes its store; commands open one that is there.

import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Clock } from '../common/clock.ts'
import { InputError } from '../common/errors.ts'
import type { RecordObserver } from './records.ts'
import type { RedisObserver } from './redis/connection.ts'
import type { RedisOptions } from './redis/place.ts'
import { openEmbeddedStore } from './sqlite/embedded-store.ts'
import { exposedStoreFile } from './sqlite/store-file.ts'
import type { Store } from './store.ts'

export type StoreOptions = {
  readonly redis: Omit<RedisOptions, 'url'> & { readonly url: string | null }
  readonly store: { readonly path: string }
}

export type StoreObserver = RedisObserver & {
  /** Called with a file of the embedded store that other users of the machine may read or write. */
  storeExposed?(path: string): void
}

/** The name of the store for messages, without the secrets of a URL. */
export const storeName = ({ redis, store }: StoreOptions): string => {
  if (redis.url === null) return store.path === ':memory:' ? store.path : resolve(store.path)
  const { protocol, host, pathname } = new URL(redis.url)
  const master = redis.mode === 'sentinel' ? `master ${redis.sentinelMaster}, ` : ''
  return `${protocol}//${host}${pathname === '/' ? '' : pathname} (${master}prefix ${redis.prefix})`
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
  const { openRedisStore } = await import('./redis/redis-store.ts')
  return openRedisStore({ ...redis, url }, observer)
}

/**
 * Opens a store that a gateway or a key has used, and makes none: a command in the wrong folder would make an empty one.
 * @param make the command that makes one, for the sentence
 * @throws InputError also when it was never used
 */
export const openUsedStore = async (
  options: StoreOptions,
  clock: Clock,
  observer: StoreObserver & Partial<RecordObserver>,
  make = 'keys create',
): Promise<Store> => {
  if (options.redis.url === null) usedStoreFile(options, make)
  const opened = await openStore(options, clock, observer)
  try {
    // The change records of keys begin with the first start of a gateway.
    if ((await opened.countKeys()) > 0) return opened
    if ((await opened.changeRecordsAfter('keys', 0)).records.length > 0) return opened
    throw unusedIn(options, make)
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** The path of the embedded store's file. @throws InputError when there is none */
export const usedStoreFile = (options: StoreOptions, make = 'keys create'): string => {
  const path = resolve(options.store.path)
  if (!statSync(path, { throwIfNoEntry: false })?.size) throw unusedIn(options, make)
  return path
}

const unusedIn = (options: StoreOptions, make: string): InputError =>
  new InputError(
    `there is no store yet at ${storeName(options)}; give the configuration of the gateway with --config, start the gateway first, or create the store with \`abohawa ${make} --create-store\``,
  )
