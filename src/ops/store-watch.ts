// Asks the store how it is, when metrics are read: whether it answers, and what memory Redis uses. Bounded in time, so that
// a store that hangs does not hold up a scrape.

import { messageOf } from '../errors.ts'
import type { Store, StoreMemory } from '../stores/store.ts'
import type { Log } from './log.ts'

export type StoreFacts = {
  readonly kind: Store['kind']
  readonly up: boolean
  /** Undefined for the embedded store, and where Redis does not say. */
  readonly memory: StoreMemory | undefined
}

const answersWithinMs = 2_000
// INFO is not free for a busy Redis, and several may scrape.
const memoryEveryMs = 10_000

export const createStoreWatch = (
  store: Pick<Store, 'kind' | 'ping' | 'memory'>,
  log: Log,
): (() => Promise<StoreFacts>) => {
  let memory: StoreMemory | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let isRefusalLogged = false

  const readMemory = async (): Promise<void> => {
    if (performance.now() - readAt < memoryEveryMs) return
    readAt = performance.now()
    try {
      memory = await within(answersWithinMs, store.memory())
      isRefusalLogged = false
    } catch (error) {
      memory = undefined
      if (!isRefusalLogged) log.warn({ reason: messageOf(error) }, 'memory of Redis is not known')
      isRefusalLogged = true
    }
  }

  return async () => {
    const up = await within(answersWithinMs, store.ping()).then(
      () => true,
      () => false,
    )
    // The figure of a Redis that does not answer is none.
    if (up) await readMemory()
    else {
      memory = undefined
      readAt = Number.NEGATIVE_INFINITY
    }
    return { kind: store.kind, up, memory }
  }
}

const within = async <Result>(ms: number, result: Promise<Result>): Promise<Result> => {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
  result.then(resolve, reject)
  return promise.finally(() => clearTimeout(timer))
}
