// A partition on a store that a test makes up, and a count of one key in it.

import { createPartition, type PartitionParts } from '../../src/keys/meter.ts'
import type { Count } from '../../src/keys/outage.ts'
import { manualClock } from '../support/manual-clock.ts'

/** @param now the time by which a batch grows, in ms */
export const oneCount = (store: PartitionParts['store'], now?: () => number) => {
  const count: Count = {
    keyId: 'key_1',
    window: {
      name: '2026-11-21',
      startsAt: 0,
      endsAt: Number.POSITIVE_INFINITY,
      keepUntil: Number.POSITIVE_INFINITY,
    },
    limit: 1_000,
    step: 16,
    admitted: 0,
    confirmed: 0,
    lastKnown: undefined,
  }
  const partition = createPartition(
    {
      instance: 'one',
      store,
      whenStoreIsDown: 'share',
      instances: () => 1,
      latestStart: () => 0,
      counts: () => [count].values(),
      clock: manualClock('2026-11-21T12:00:00Z'),
      observer: { stopped: () => {}, resumed: () => {}, counted: () => {} },
    },
    now,
  )
  return { partition, admit: () => partition.admit(count, 1_000) }
}
