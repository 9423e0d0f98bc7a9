// An outage of Redis as a store's caller sees it: how long commands take until they succeed again, and which events the
// observer of the connection got.

import type { Test } from 'tap'
import type { Store } from '../../src/stores/store.ts'
import { until } from './until.ts'
import { messagesArrive } from './usage-instance.ts'
import { workedMs } from './work-time.ts'

/**
 * Writes a cell until the store works again; returns the time of the slowest command in ms. The value is written each time,
 * because a failover may lose the last write.
 */
const slowestUntilItWorks = async (store: Store): Promise<number> => {
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

/** The master of a store fails: commands fail in time until a replica has taken over, and messages arrive again. */
export const checkFailover = async (
  t: Test,
  { store, events }: { store: Store; events: readonly string[] },
  fail: () => unknown,
  atMostMs = 1_500,
): Promise<void> => {
  await store.writeBytes('cell', Buffer.from('x'), Date.now() + 3_600_000)
  await messagesArrive(store)
  await fail()
  const from = workedMs()
  await t.rejects(store.readBytes('cell'), { name: 'StoreError' })
  const first = workedMs() - from
  const slowest = Math.max(first, await slowestUntilItWorks(store))
  t.comment(`works again after ${workedMs() - from} ms, slowest command ${slowest} ms`)
  t.ok(slowest < atMostMs, `the slowest command took ${slowest} ms`)
  await until('its return is reported', async () => events.at(-1) === 'back')
  await store.ping()
  await messagesArrive(store)
  t.match(inTurn(events), wentAndCameBack, events.join('; '))
}
