// An outage of Redis as a store's caller sees it.

import type { Test } from 'tap'
import type { Store } from '../../src/stores/store.ts'
import { until } from '../support/until.ts'
import { messagesArrive } from './usage-instance.ts'

/** Collects the events of a connection as `away: <reason>` and `back`. */
export const recordingObserver = (events: string[]) => ({
  redisAway: (reason: string) => void events.push(`away: ${reason}`),
  redisBack: () => void events.push('back'),
})

/** The events without their reasons. */
export const inTurn = (events: readonly string[]): string => events.map(word => word.split(':')[0]).join(' ')

/** Away and back once; a process that was itself delayed may lose its connection a second time. */
export const wentAndCameBack = /^away back( away back)*$/

/**
 * The master of a store fails: a command is refused instead of waiting for the replica that takes over, later ones succeed, and
 * messages arrive again.
 */
export const checkFailover = async (
  t: Test,
  { store, events }: { store: Store; events: readonly string[] },
  fail: () => unknown,
): Promise<void> => {
  // Written each time: a failover may lose the last write.
  const write = () => store.writeBytes('cell', Buffer.from('y'), Date.now() + 3_600_000)
  await write()
  await messagesArrive(store)
  await fail()
  await t.rejects(store.readBytes('cell'), { name: 'StoreError' })
  await until('the store works again', write)
  await until('its return is reported', async () => events.at(-1) === 'back')
  await store.ping()
  await messagesArrive(store)
  t.match(inTurn(events), wentAndCameBack, events.join('; '))
}
