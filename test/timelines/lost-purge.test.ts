// Instances that began before and after the record of a purge was lost: both serve what the other one loads, and neither reads the
// log of purges for each entry.

import t, { type Test } from 'tap'
import { createCalendar, hourMs, utcDayMs } from '../../src/calendar.ts'
import { createSampleWeather } from '../../src/load/what-if/sample-weather.ts'
import { openEmbeddedStore } from '../../src/stores/embedded/embedded-store.ts'
import { orderPurge } from '../../src/timelines/purge-log.ts'
import { createTimelines, type TimelinesOptions, type TimelinesParts } from '../../src/timelines/timelines.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { usualHorizon } from '../../src/weather/horizon.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'

const calendar = createCalendar('Asia/Dhaka')
const grid = createGrid(0.1)
const [dhaka, khulna] = [grid.cellOf(23.71, 90.41), grid.cellOf(22.8, 89.5)]
const namespace = 'n'
const hourlyHours = 24
const nothing = () => {}

const options: TimelinesOptions = {
  freshness: 'age',
  freshForMs: hourMs,
  freshSpread: 0,
  freshForAtMostMs: 4 * hourMs,
  refreshAheadForMs: 60_000,
  staleForMs: 12 * hourMs,
  settleForMs: 600_000,
  spreadOverMs: 60_000,
  retryAfterMs: 1_000,
  retryAfterAtMostMs: 60_000,
  refusedForMs: hourMs,
  waitForMs: 5_000,
  leaseForMs: 2_000,
  demandForMs: hourMs,
  batch: 100,
  memoryBytes: 10_000_000,
  maxCells: 10_000,
  weightPerLoad: 4,
  namespace,
  hourlyHours,
}

/** An instance that knows a purge, whose record is lost by now, and how to start others. */
const setUp = async (t: Test) => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(store.close)
  const weather = createSampleWeather(usualHorizon, hourlyHours, calendar)
  let isLost = false
  const start = async () => {
    const counts = { loads: 0, reads: 0, purges: 0 }
    const onPurge = () => {
      counts.purges += 1
    }
    const timelines = createTimelines(options, {
      provider: {
        load: async () => {
          counts.loads += 1
          return weather.timelineAt(clock.now())
        },
        expedite: nothing,
        heldBack: () => undefined,
      },
      breaker: { isProbeDue: () => false },
      store: {
        ...store,
        changeRecordsAfter: async (topic: string, number: number) => {
          counts.reads += 1
          return isLost ? { records: [], complete: false } : store.changeRecordsAfter(topic, number)
        },
      },
      grid,
      pinned: () => [],
      recentRuns: () => [],
      stretch: () => 1,
      isLimitLifted: () => false,
      account: () => 'a',
      settings: () => '',
      report: () => '',
      calendar,
      clock,
      observer: new Proxy({ onPurge }, { get: (of, name) => Reflect.get(of, name) ?? nothing }),
    } as unknown as TimelinesParts)
    await timelines.start(0)
    t.teardown(timelines.close)
    const read = async (cell = dhaka) => {
      const { outcome } = await timelines.read(cell)
      return outcome
    }
    return { counts, read }
  }
  const former = await start()
  await orderPurge(store, { namespace, cells: [], now: clock.now() }, { kind: 'hard', scope: { all: true } })
  await until('it knows of the purge', () => former.counts.purges > 0)
  isLost = true
  clock.advance(4 * utcDayMs)
  return { clock, start, former }
}

t.test('what was loaded after the record was lost is served by those that knew the purge', async t => {
  const { clock, start, former } = await setUp(t)
  const next = await start()
  for (let round = 1; round <= 3; round++) {
    t.equal(await next.read(), 'miss')
    clock.advance(1_000)
    t.equal(await former.read(), 'hit')
    t.strictSame([next.counts.loads, former.counts.loads], [round, 0])
    clock.advance(17 * hourMs)
  }
})

t.test('an entry that names a lost purge has the log read once, and not for each entry', async t => {
  const { start, former } = await setUp(t)
  await former.read()
  await former.read(khulna)
  const next = await start()
  const readsFor = async (cell: typeof dhaka) => {
    const before = next.counts.reads
    t.equal(await next.read(cell), 'hit')
    return next.counts.reads - before
  }
  t.ok((await readsFor(dhaka)) >= 2, 'it may be new')
  // One of its own, which comes every half a second.
  t.ok((await readsFor(khulna)) <= 1)
  t.equal(next.counts.loads, 0)
})
