// Timelines through a real store: which metadata is accepted, and how refused bytes are reported.

import t, { type Test } from 'tap'
import { createTimelineCodec, entryOf } from '../../src/cache/entry-codec.ts'
import { createSharedTier } from '../../src/cache/tiers.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { plausibleTimeline } from '../weather/sample-timeline.ts'

const key = 'q:23.7,90.4'

const setUp = (t: Test) => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(store.close)
  const calendar = createCalendar('Asia/Dhaka')
  const codec = createTimelineCodec({ hourlyHours: 48, calendar, clock })
  const reported: string[] = []
  const tier = createSharedTier({ name: 'embedded', store, longestUseMs: () => 86_400_000 }, codec, {
    onSharedTierFailure: step => reported.push(step),
    onEntryRefused: (reason, key) => reported.push(`${reason} ${key}`),
  })
  const entry = (generation: number) => entryOf(key, plausibleTimeline(), { generation, run: null }, 48)
  return { clock, store, codec, tier, reported, entry }
}

t.test('an entry comes back as it was kept', async t => {
  const { tier, entry, reported } = setUp(t)
  await tier.set(key, entry(3))
  t.strictSame(await tier.get(key), entry(3))
  t.strictSame(await tier.get(key, metadata => metadata.generation === 3), entry(3))
  t.equal(await tier.get(key, () => false), undefined)
  t.equal(await tier.get('q:23.8,90.4'), undefined)
  t.strictSame(reported, [])
})

t.test(
  'an entry moved to another key, and one from before the clock was put back, are reported and count as a miss',
  async t => {
    const { clock, store, tier, entry, reported } = setUp(t)
    await tier.set(key, entry(3))
    const bytes = await store.readBytes(key)
    await store.writeBytes('q:23.8,90.4', bytes as Buffer, clock.now() + 60_000)
    t.equal(await tier.get('q:23.8,90.4'), undefined)
    t.equal(await tier.get('q:23.8,90.4', () => true), undefined)
    clock.advance(-3_600_000)
    t.equal(await tier.get(key), undefined)
    t.strictSame(reported, ['key q:23.8,90.4', 'key q:23.8,90.4', `instant ${key}`])
  },
)

t.test('more bytes than an entry has are not fetched', async t => {
  const { clock, codec, store, tier, reported } = setUp(t)
  t.ok(codec.maxBytes < 50_000, `${codec.maxBytes} bytes`)
  await store.writeBytes(key, Buffer.alloc(codec.maxBytes + 1, 3), clock.now() + 60_000)
  t.equal(await tier.get(key), undefined)
  t.strictSame(reported, [`too_large ${key}`])
})

t.test('an entry whose values are no weather is refused, whatever its checksum says', t => {
  const { codec } = setUp(t)
  for (const [index, value] of [
    [0, 71],
    [3 * 60, 2],
    [3 * 60, 0.5],
  ] as const) {
    const timeline = plausibleTimeline()
    timeline.values[index] = value
    const entry = entryOf(key, timeline, { generation: 0, run: null }, 48)
    t.strictSame(codec.decode(codec.encode(entry, key), key), { refused: 'out_of_range' }, `${value}`)
  }
  const timeline = plausibleTimeline()
  timeline.values[0] = Number.NaN
  const entry = entryOf(key, timeline, { generation: 0, run: null }, 48)
  t.strictSame(codec.decode(codec.encode(entry, key), key), entry)
  t.end()
})
