// The dashboard's search over very many keys: in small parts, so that the event loop is free in between.

import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { createKeyPanel } from '../../src/operate/key-panel.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { sampleKey } from '../support/key-records.ts'
import { manualClock } from '../support/manual-clock.ts'

t.test('a search reads fifty keys in a turn of the event loop, and the names of their holders', async t => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(store.close)
  const names = ['Padma', 'Meghna', 'Jamuna']
  for (const [i, name] of names.entries())
    await store.ensureSubscriber({ id: `sub_${i}`, name, createdAt: 1, revokedAt: null })
  for (let i = 0; i < 300; i++) await store.addKey({ ...sampleKey(`key_${i}`), subscriberId: `sub_${i % 3}` })
  const parts: number[] = []
  let turns = 0
  const panel = createKeyPanel({
    store: {
      ...store,
      listKeys: async (from, count) => {
        const keys = await store.listKeys(from, count)
        parts.push(keys.length)
        setImmediate(() => {
          turns += 1
        })
        return keys
      },
    },
    dayUsage: async () => {
      throw new Error('a search does not read it')
    },
    activities: { of: () => undefined },
    tiers: () => ({}),
    calendar: createCalendar('Asia/Dhaka'),
    now: clock.now,
  })
  t.match(await panel('key_299'), { isWhole: true, keys: [{ keyId: 'key_299', subscriber: 'Jamuna' }] })
  t.strictSame(parts, Array(6).fill(50))
  t.ok(turns >= 5, `${turns} turns`)
  t.equal((await panel('MEGH')).keys[0]?.subscriber, 'Meghna')
})
