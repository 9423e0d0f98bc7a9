// Faults that are planted in the product, one at a time, to see whether the checker finds them: a text of one file and what
// replaces it, and which promises it breaks.

import type { PromiseNumber } from '../promises.ts'

export type Sabotage = {
  /** What the fault is. */
  readonly name: string
  readonly file: string
  readonly text: string
  readonly replacement: string
  /** The promises of which it breaks at least one. */
  readonly promise: readonly PromiseNumber[]
}

export const sabotages: readonly Sabotage[] = [
  {
    name: 'a hard purge is lost',
    file: 'src/cache/purges.ts',
    text: 'known.unshift(purge)',
    replacement: '',
    promise: [15],
  },
  {
    name: 'all bodies have one tag',
    file: 'src/edge/representation.ts',
    text: "hash('sha256', bytes, 'base64url').slice(0, tagLength)",
    replacement: "'A'.repeat(tagLength)",
    promise: [5],
  },
  {
    name: 'a revoked key is accepted',
    file: 'src/metering/authentication.ts',
    text: "if (found.key.revokedAt !== null) return { refusal: 'key-revoked' }",
    replacement: '',
    promise: [10],
  },
  {
    name: 'the hours begin an hour early',
    file: 'src/answer.ts',
    text: 'text.hourly(timeline, readAt, hourlyHours)',
    replacement: 'text.hourly(timeline, readAt - 3_600_000, hourlyHours)',
    promise: [4],
  },
  {
    name: 'a limit is a request higher',
    file: 'src/metering/authentication.ts',
    text: 'client: { keyId, subscriberId, tier, limit } }',
    replacement: 'client: { keyId, subscriberId, tier, limit: limit + 1 } }',
    promise: [2, 6, 7, 11],
  },
  {
    name: 'the budget grants whatever is wanted',
    file: 'src/stores/redis/spending-scripts.ts',
    text: 'granted = math.max(granted, 0)',
    replacement: 'granted = floor(tonumber(ARGV[1]) / unit) * unit',
    promise: [12],
  },
  {
    name: 'the quota ends at midnight UTC',
    file: 'src/metering/metering.ts',
    text: 'resetAfter: calendar.nextMidnight',
    replacement: 'resetAfter: (instant: number) => (Math.floor(instant / 86_400_000) + 1) * 86_400_000',
    promise: [9],
  },
  {
    name: 'the weather of the cell to the north',
    file: 'src/answer.ts',
    text: 'grid.cellOf(latitude, longitude)',
    replacement: 'grid.cellOf(latitude + 0.25, longitude)',
    promise: [3],
  },
]
