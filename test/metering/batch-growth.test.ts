// How long a batch waits for more requests: as long as turns of the event loop bring some, within bounds of turns and of time.

import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { type Count, createPartition } from '../../src/metering/partition.ts'
import type { UsageStore } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'

/** The units of the first batch where each turn brings one more request and takes so long. */
const unitsOfFirst = async (turnMs: number): Promise<number | undefined> => {
  const clock = manualClock('2026-11-21T12:00:00Z')
  let now = 0
  let first: number | undefined
  const commit: UsageStore['commit'] = async ({ entries }) => {
    first ??= entries[0]?.units
    return entries.map(({ units }) => ({ granted: units, before: 0, used: units }))
  }
  const partition = createPartition(
    {
      instance: 'one',
      store: { commit, countsOf: async () => [], time: async () => clock.now() },
      whenStoreIsDown: 'share',
      instances: () => 1,
      dayOf: () => '2026-11-21',
      newestDay: () => '2026-11-21',
      clock,
      observer: { stopped: () => {}, resumed: () => {}, counted: () => {} },
    },
    () => now,
  )
  const count: Count = {
    keyId: 'key_1',
    metered: { day: '2026-11-21', endsAt: Number.POSITIVE_INFINITY, keepUntil: Number.POSITIVE_INFINITY },
    limit: 1_000,
    admitted: 0,
    confirmed: 0,
    lastKnown: undefined,
  }
  const admitted: Promise<unknown>[] = []
  for (let turns = 0; first === undefined && turns < 100; turns++) {
    admitted.push(partition.admit(count, 1_000))
    await turn()
    now += turnMs
  }
  await Promise.all(admitted)
  return first
}

t.test('a batch grows for sixteen turns while each brings more', async t => {
  t.equal(await unitsOfFirst(0), 16)
})

t.test('it grows for a millisecond at most, however few the turns', async t => {
  const units = (await unitsOfFirst(0.4)) ?? 0
  t.ok(units > 1 && units <= 4, `${units} units`)
  t.equal(await unitsOfFirst(5), 2, 'long turns bring those of the next one at most')
})
