// An outage of Redis as a store's caller sees it: how long commands take until they succeed again, and which events the
// observer of the connection got.

import type { Store } from '../../src/stores/store.ts'
import { until } from './until.ts'
import { workedMs } from './work-time.ts'

/**
 * Writes a cell until the store works again; returns the time of the slowest command in ms. The value is written each time,
 * because a failover may lose the last write.
 */
export const slowestUntilItWorks = async (store: Store): Promise<number> => {
  let slowest = 0
  await until('the store works again', async () => {
    const startedAt = workedMs()
    try {
      return await store.writeBytes('cell', Buffer.from('y'), Date.now() + 3_600_000)
    } finally {
      slowest = Math.max(slowest, workedMs() - startedAt)
    }
  })
  return slowest
}

/** Collects the events of a connection as `away: <reason>` and `back`. */
export const recordingObserver = (events: string[]) => ({
  redisAway: (reason: string) => void events.push(`away: ${reason}`),
  redisBack: () => void events.push('back'),
})

/** The events without their reasons. */
export const inTurn = (events: readonly string[]): string => events.map(word => word.split(':')[0]).join(' ')

/** Away and back once; a process that was itself delayed may lose its connection a second time. */
export const wentAndCameBack = /^away back( away back)*$/
