// The last day of use of a key: the latest day with a count, as far back as counts are kept and the key is there.

import t from 'tap'
import { createCalendar, utcDayMs } from '../../src/common/calendar.ts'
import { createAdministration } from '../../src/keys/administration.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { sampleKey, sampleSubscriber } from '../support/key-records.ts'
import { manualClock } from '../support/manual-clock.ts'

const days = ['2026-11-21', '2026-11-20', '2026-10-05', '2025-10-30']

t.test('the last day of use is the latest one with a count', async t => {
  const clock = manualClock('2026-11-21T12:00:00Z')
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const calendar = createCalendar('Asia/Dhaka')
  const administration = createAdministration({ store, tiers: { starter: 9 }, calendar, clock })
  await store.ensureSubscriber(sampleSubscriber)
  const createdAt = clock.now() - 395 * utcDayMs
  await store.addKey({ ...sampleKey('old'), createdAt })
  await store.addKey({ ...sampleKey('young'), createdAt: clock.now() - utcDayMs })
  const usage = async (id = 'old') => {
    const { lastUsedOn, usedToday } = await administration.showKey(id)
    return [lastUsedOn, usedToday]
  }
  t.strictSame(await usage(), [null, 0])
  for (const day of days.toReversed()) {
    await store.raiseUsed('young', day, 5, clock.now() + utcDayMs)
    await store.raiseUsed('old', day, 7, clock.now() + utcDayMs)
    t.strictSame(await usage(), [day, day === days[0] ? 7 : 0])
    t.strictSame(await usage('young'), day < '2026-11-20' ? [null, 0] : [day, day === days[0] ? 5 : 0])
  }
})
