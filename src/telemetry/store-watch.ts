// The state of the store for metrics and status: whether it answers, how fast, and the size of its data. Bounded in time, so that a store
// that hangs does not delay a scrape.

import { messageOf } from '../common/errors.ts'
import type { Store, StoreSize } from '../stores/store.ts'
import type { Log } from './log.ts'

export type StoreFacts = {
  readonly kind: Store['kind']
  /** The round trip of a ping; null while the store does not answer. */
  readonly latencyMs: number | null
  /** Why the store does not answer; null while it does. */
  readonly fault: string | null
  /** Undefined while the store does not answer, and where Redis refuses INFO. */
  readonly size: StoreSize | undefined
}

const answersWithinMs = 2_000
// INFO is not free for a busy Redis, and several may scrape.
const sizeEveryMs = 10_000

/** @param now in ms, from any beginning */
export const createStoreWatch = (
  store: Pick<Store, 'kind' | 'ping' | 'size'>,
  log: Pick<Log, 'error' | 'warn' | 'info'>,
  now = () => performance.now(),
): (() => Promise<StoreFacts>) => {
  let size: Promise<StoreSize | undefined> | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let isRefusalLogged = false
  let evictsKeys = false

  const noteEviction = ({ eviction }: StoreSize): void => {
    const isOn = eviction?.takesKeys ?? false
    if (isOn === evictsKeys) return
    evictsKeys = isOn
    const next = 'set maxmemory-policy to noeviction; docs/runbook.md#abohawaredisevictskeys'
    if (isOn) log.error({ ...eviction, next }, 'Redis may evict API keys')
    else log.info({ ...eviction }, 'Redis no longer evicts API keys')
  }

  const readSize = async (): Promise<StoreSize | undefined> => {
    try {
      const read = await within(answersWithinMs, store.size())
      isRefusalLogged = false
      noteEviction(read)
      return read
    } catch (error) {
      if (!isRefusalLogged) log.warn({ reason: messageOf(error) }, 'Redis memory unknown')
      isRefusalLogged = true
      return undefined
    }
  }

  return async () => {
    const { kind } = store
    const startedAt = performance.now()
    try {
      await within(answersWithinMs, store.ping())
    } catch (error) {
      // A Redis that does not answer has no size.
      size = undefined
      return { kind, latencyMs: null, fault: messageOf(error), size: undefined }
    }
    const latencyMs = Number((performance.now() - startedAt).toFixed(2))
    const at = now()
    if (!size || at - readAt >= sizeEveryMs) {
      readAt = at
      size = readSize()
    }
    return { kind, latencyMs, fault: null, size: await size }
  }
}

const within = async <Result>(ms: number, result: Promise<Result>): Promise<Result> => {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
  result.then(resolve, reject)
  return promise.finally(() => clearTimeout(timer))
}
