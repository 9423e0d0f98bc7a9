// Without it, the status could name the wrong keys as those with most requests or loads.

import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { createDayUsage, topKeys } from '../../src/operate/day-usage.ts'
import { manualClock } from '../support/manual-clock.ts'

t.test('a key that loaded much and asks seldom is there too, below those that ask often', async t => {
  const counts = Array.from({ length: 50 }, (_, i) => ({ keyId: `key_${i}`, used: i * 100 }))
  counts.push({ keyId: 'key_greedy', used: 7 })
  const loads = [
    { keyId: 'key_1', cells: 1, share: 0.0003 },
    { keyId: 'key_49', cells: 40, share: 0.012 },
    { keyId: 'key_greedy', cells: 900, share: 0.27 },
    ...Array.from({ length: 5 }, (_, i) => ({ keyId: `key_2${i}`, cells: 30 + i, share: 0.01 })),
  ]
  const top = topKeys(counts, loads)
  t.strictSame(
    top.map(({ keyId }) => keyId),
    [
      ...['key_49', 'key_48', 'key_47', 'key_46', 'key_45', 'key_44', 'key_43', 'key_42', 'key_41', 'key_40'],
      ...['key_24', 'key_23', 'key_22', 'key_greedy'],
    ],
    'ten by requests, and of the five by cells those that are not among them',
  )
  t.strictSame(top[0], { keyId: 'key_49', requests: 4_900, cellsLoaded: 40, shareOfDay: 0.012 })
  t.strictSame(top[1], { keyId: 'key_48', requests: 4_800, cellsLoaded: 0, shareOfDay: null })
  t.strictSame(top.at(-1), { keyId: 'key_greedy', requests: 7, cellsLoaded: 900, shareOfDay: 0.27 })
})

t.test('what took long to collect is kept for a while, and not into the next day', async t => {
  const clock = manualClock()
  let used = 100
  const dayUsage = createDayUsage({
    meter: {
      async *usageAt() {
        yield [{ keyId: 'key_1', used, limit: 1_000 }]
        // It is kept for twenty times as long.
        await pause(500)
        yield []
      },
    },
    storeClock: clock,
    loads: { all: () => [] },
    read: async () => null,
    calendar: createCalendar('Asia/Dhaka'),
  })
  t.match((await dayUsage()).top, [{ used: 100 }])
  used = 2
  t.match((await dayUsage()).top, [{ used: 100 }])
  clock.advance(86_400_000)
  t.match((await dayUsage()).top, [{ used: 2 }])
})

t.test('a key without a request of its day, and none at all', async t => {
  t.strictSame(topKeys([], [{ keyId: 'key_1', cells: 2, share: null }]), [
    { keyId: 'key_1', requests: 0, cellsLoaded: 2, shareOfDay: null },
  ])
  t.strictSame(topKeys([], []), [])
})
