// Without it, a search over very many keys could block the event loop.

import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { createKeyPanel } from '../../src/operate/key-panel.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { sampleKey } from '../support/key-records.ts'
import { manualClock } from '../support/manual-clock.ts'

t.test('a search reads keys in parts, and looks up no key but those that it shows', async t => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(store.close)
  const names = ['Padma', 'Meghna', 'Jamuna']
  for (const [i, name] of names.entries())
    await store.ensureSubscriber({ id: `sub_${i}`, name, createdAt: 1, revokedAt: null })
  for (let i = 0; i < 300; i++) await store.addKey({ ...sampleKey(`key_${i}`), subscriberId: `sub_${i % 3}` })
  let found = 0
  const inTurn = { keys: 0, most: 0 }
  const panel = createKeyPanel({
    store: {
      ...store,
      keysWithSubscribers: async from => {
        const part = await store.keysWithSubscribers(from)
        if (inTurn.keys === 0)
          setImmediate(() => {
            inTurn.keys = 0
          })
        inTurn.keys += part.keys.length
        inTurn.most = Math.max(inTurn.most, inTurn.keys)
        return part
      },
      findKey: id => {
        found += 1
        return store.findKey(id)
      },
      findSubscriber: async () => {
        throw new Error('a search has the names')
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
  t.hasStrict(await panel('KEY_299'), { isWhole: true, keys: [{ keyId: 'key_299', subscriber: 'Jamuna' }] })
  t.equal(found, 1)
  t.equal(inTurn.most, 200, 'of three hundred in a turn of the event loop')
  const { keys, isWhole } = await panel('MEGH')
  t.strictSame([...new Set(keys.map(({ subscriber }) => subscriber))], ['Meghna'])
  t.strictSame([keys.length, isWhole, found], [50, false, 51], 'of a hundred')
})
