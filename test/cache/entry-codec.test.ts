// Without it damaged or foreign bytes in the store could be served as weather.

import t, { type Test } from 'tap'
import { createTimelineCodec, entryOf } from '../../src/cache/entry-codec.ts'
import { cacheNamespacesIn } from '../../src/cache/namespaces.ts'
import { createSharedTier } from '../../src/cache/tiers.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { plausibleTimeline } from '../weather/sample-timeline.ts'

const key = 'q:23.7,90.4'
const other = 'q:23.8,90.4'

const setUp = (t: Test) => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(store.close)
  const codec = createTimelineCodec({ hourlyHours: 48, calendar: createCalendar('Asia/Dhaka'), clock })
  const reported: string[] = []
  const tier = createSharedTier({ name: 'embedded', store, longestUseMs: () => 1_000 }, codec, {
    onSharedTierFailure: step => reported.push(step),
    onEntryRefused: (reason, key) => reported.push(`${reason} ${key}`),
  })
  return { clock, store, codec, tier, reported }
}
const entryWith = (generation: number, timeline = plausibleTimeline()) =>
  entryOf(key, timeline, { generation, run: null }, 48)

t.test('an entry comes back as it was kept, and one of another place or time is reported', async t => {
  const { clock, store, tier, reported } = setUp(t)
  const entry = entryWith(3)
  await tier.set(key, entry)
  clock.advance(2_000)
  t.strictSame(await tier.get(key), entry, 'kept to the end of its timeline')
  t.strictSame(await tier.get(key, metadata => metadata.generation === 3), entry)
  t.equal(await tier.get(key, () => false), undefined)
  t.equal(await tier.get(other), undefined)
  t.strictSame(reported, [])

  const bytes = await store.readBytes(key)
  await store.writeBytes(other, bytes as Buffer, clock.now() + 60_000)
  t.equal(await tier.get(other), undefined)
  t.equal(await tier.get(other, () => true), undefined)
  clock.advance(-3_600_000)
  t.equal(await tier.get(key), undefined)
  t.strictSame(reported, [`key ${other}`, `key ${other}`, `instant ${key}`])
})

t.test('more bytes than an entry has are not fetched', async t => {
  const { clock, codec, store, tier, reported } = setUp(t)
  t.ok(codec.maxBytes < 50_000, `${codec.maxBytes} bytes`)
  await store.writeBytes(key, Buffer.alloc(codec.maxBytes + 1, 3), clock.now() + 60_000)
  t.equal(await tier.get(key), undefined)
  t.strictSame(reported, [`too_large ${key}`])
})

t.test('an entry whose values are no weather is refused, whatever its checksum says', async t => {
  const { codec } = setUp(t)
  for (const [index, value] of [
    [0, 71],
    [180, 2],
    [180, 0.5],
    [0, Number.NaN],
  ] as const) {
    const timeline = plausibleTimeline()
    timeline.values[index] = value
    const entry = entryWith(0, timeline)
    const expected = Number.isNaN(value) ? entry : { refused: 'out_of_range' }
    t.strictSame(codec.decode(codec.encode(entry, key), key), expected, `${value}`)
  }
})

t.test('the namespace changes with the provider request, and with nothing else', async t => {
  const namespaceWith = (env: Record<string, string>) =>
    cacheNamespacesIn(loadConfig({ files: [], env }))[0]?.namespace
  // A change of this text empties the caches of all gateways: right only where cached timelines can no longer be used.
  const namespace = '3853e9ed4134'
  t.equal(namespaceWith({}), namespace)
  for (const [name, value, isSame] of [
    ['ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST', '7', true],
    // Timelines of another horizon answer as far as they reach.
    ['ABOHAWA_WEATHER__HOURLY_HOURS', '168', true],
    ['ABOHAWA_CACHE__STALE_FOR', '30h', true],
    ['ABOHAWA_PROVIDER__BASE_URL', 'https://customer-api.open-meteo.com', false],
    ['ABOHAWA_QUOTA__TIME_ZONE', 'Asia/Kathmandu', false],
  ] as const)
    t.equal(namespaceWith({ [name]: value }) === namespace, isSame, name)
})
