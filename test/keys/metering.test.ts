// Without it gateways could disagree about midnight, or their local allowances together exceed a limit.

import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { createFollowingClock } from '../../src/common/clock.ts'
import { stepOf } from '../../src/keys/count.ts'
import { allowanceOf } from '../../src/keys/local-allowance.ts'
import { createFleetSize, openMetering } from '../../src/keys/metering.ts'
import { localDays } from '../../src/keys/window.ts'
import { type Store, StoreError } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { heldIntervals } from './held-intervals.ts'
import { calendar, consume, storeInMemory } from './meters.ts'

/** A store whose clock is `aheadMs` ahead and whose replies take `wayMs` each way. */
const clockOfStore = (aheadMs: number, wayMs: number, isOfThisMachine = false) => {
  const elapsed = manualClock(0)
  const clock = { ...manualClock(), elapsed: elapsed.now }
  const state = { aheadMs, wayMs, away: false }
  const time = async () => {
    if (state.away) throw new StoreError('away')
    pass(state.wayMs)
    const time = clock.now() + state.aheadMs
    pass(state.wayMs)
    return time
  }
  const pass = (ms: number) => {
    clock.advance(ms)
    elapsed.advance(ms)
  }
  const storeClock = createFollowingClock(time, clock, isOfThisMachine ? clock.now : clock.elapsed)
  /** Measures it when the store has changed. @returns the offset afterwards */
  const measure = async (change: Partial<typeof state> = {}) => {
    Object.assign(state, change)
    await storeClock.measure()
    return storeClock.offsetMs()
  }
  return { clock, pass, storeClock, measure }
}

for (const [aheadMs, wayMs] of [
  [90_000, 0],
  [-90_000, 40],
  [300, 125],
] as const)
  t.test(`the clock follows a store that is ${aheadMs} ms ahead and ${wayMs} ms away`, async t => {
    const { clock, pass, storeClock, measure } = clockOfStore(aheadMs, wayMs)
    clock.advance(3_600_000)
    t.equal(storeClock.now(), clock.now(), 'the same before the first measurement')
    t.equal(await measure(), aheadMs)
    pass(1_234)
    t.equal(storeClock.now(), clock.now() + aheadMs)
  })

t.test('a difference within the time of the reply counts as none', async t => {
  t.equal(await clockOfStore(100, 100).measure(), 0)
})

t.test('a slow reply, or none, measures nothing and keeps the former offset', async t => {
  const { storeClock, measure } = clockOfStore(5_000, 126)
  await measure()
  t.notOk(storeClock.isMeasured(), 'a reply after 252 ms')
  await measure({ away: true, wayMs: 0 })
  t.notOk(storeClock.isMeasured(), 'no reply')
  t.equal(await measure({ away: false }), 5_000)
  t.ok(storeClock.isMeasured())
  t.equal(await measure({ aheadMs: 9_000, wayMs: 126 }), 5_000)
  t.equal(await measure({ away: true }), 5_000)
  t.ok(storeClock.isMeasured(), 'it stays so')
  t.equal(await measure({ away: false, wayMs: 125 }), 9_000)
})

t.test("the store's clock goes on when this machine's clock is set, and is measured again", async t => {
  for (const stepMs of [86_400_000, -86_400_000]) {
    const { clock, pass, storeClock, measure } = clockOfStore(5_000, 0)
    await measure()
    const before = storeClock.now()
    clock.advance(stepMs)
    pass(10)
    t.equal(storeClock.now(), before + 10)
    t.equal(
      storeClock.offsetMs(),
      5_000 - stepMs,
      'how far this machine is off is known without a measurement',
    )
    t.notOk(storeClock.isMeasured())
    t.equal(await measure({ aheadMs: 5_000 - stepMs }), 5_000 - stepMs)
    t.ok(storeClock.isMeasured())
    t.equal(storeClock.now(), before + 10)
  }
})

t.test('after a suspension of the machine the store decides', async t => {
  const { clock, storeClock, measure } = clockOfStore(5_000, 0)
  await measure()
  clock.advance(3_600_000)
  t.notOk(storeClock.isMeasured())
  await measure()
  t.equal(storeClock.now(), clock.now() + 5_000)
})

t.test('the clock of an embedded store is the one of this machine, also when that is set', async t => {
  const { clock, storeClock, measure } = clockOfStore(0, 0, true)
  await measure()
  clock.advance(86_400_000)
  t.equal(storeClock.now(), clock.now())
  t.ok(storeClock.isMeasured())
})

const meteringOf = (
  t: Test,
  kind: 'embedded' | 'redis',
  processes: number,
  aheadMs = 0,
  change: (real: Store) => Partial<Store> = () => ({}),
) => {
  // No time passes, whatever the clock is set to.
  const clock = { ...manualClock('2026-11-21T12:00:00Z'), elapsed: () => 0 }
  const real = storeInMemory(t, clock)
  const time = async () => clock.now() + aheadMs
  const store = { ...real, kind, time, ...change(real) } as Store
  const observer = { storeAway: () => {}, storeBack: () => {}, unitsLost: () => {}, nearLimit: () => {} }
  const settings = { timeZone: 'Asia/Dhaka', keepUsageForMs: 86_400_000, whenStoreIsDown: 'share' } as const
  const metering = openMetering({ ...settings, processes }, { store, clock, observer })
  t.teardown(metering.close)
  return { metering, clock, store }
}

t.test('once it has started, the day is that of the store', async t => {
  const { metering, clock } = meteringOf(t, 'redis', 1, 7 * 3_600_000)
  await metering.start()
  t.equal(metering.meter.now(), clock.now() + 7 * 3_600_000)
  t.equal(metering.meter.resetAfter(metering.meter.now()), Date.parse('2026-11-22T18:00:00Z'))
})

t.test("when this machine's clock is set, the day of Redis stays and the day of a file follows", async t => {
  for (const [kind, movedMs] of [
    ['redis', 0],
    ['embedded', 86_400_000],
  ] as const) {
    const { metering, clock } = meteringOf(t, kind, 1)
    await metering.start()
    const before = metering.meter.now()
    clock.advance(86_400_000)
    t.equal(metering.meter.now() - before, movedMs, kind)
  }
})

t.test('a file that can be read but not written still says what is left of a key', async t => {
  let isFull = true
  const { metering, clock } = meteringOf(t, 'embedded', 1, 0, ({ commit }) => ({
    commit: batch => (isFull ? Promise.reject(new StoreError('full')) : commit(batch)),
  }))
  const asked = consume(metering.meter, { keyId: 'key_1', limit: 1_000 }, clock.now())
  t.match(await asked, { allowed: true })
  isFull = false
})

t.test('while it runs the store is probed, and its clock is measured until it is known', async t => {
  const intervals = heldIntervals(t)
  const asked = { time: 0, dropDays: 0 }
  let isAway = true
  const { metering, clock } = meteringOf(t, 'redis', 1, 0, () => ({
    time: async () => {
      asked.time += 1
      if (isAway) throw new StoreError('away')
      return clock.now() + 5_000
    },
    dropDays: async () => {
      asked.dropDays += 1
    },
  }))
  await metering.start()
  t.match(intervals, [{ ms: 250 }, { ms: 30_000 }])
  const [probe, measure] = intervals.map(({ work }) => work)
  isAway = false
  probe?.()
  await turn()
  t.strictSame(asked, { time: 2, dropDays: 1 })
  t.equal(metering.storeClock.offsetMs(), 5_000)
  probe?.()
  t.equal(asked.time, 2, 'a known clock is measured by its own interval')
  measure?.()
  t.equal(asked.time, 3)
  await metering.close()
  t.ok(intervals.every(({ isOver }) => isOver))
})

t.test('a close reports units that went back', async t => {
  const { metering, clock, store } = meteringOf(t, 'embedded', 1)
  const client = { keyId: 'key_1', limit: 9 }
  await consume(metering.meter, client, clock.now(), 3)
  metering.meter.refund(client, clock.now(), 1)
  await metering.close()
  t.strictSame(await store.usedOn('key_1', ['2026-11-21']), [2])
})

t.test('the processes of one file share it from the start, and of Redis those that are counted', async t => {
  const sizes = (kind: 'embedded' | 'redis') => {
    const { metering, clock } = meteringOf(t, kind, 3)
    const before = metering.instances()
    for (const instances of [2, 5]) {
      metering.onHeartbeat(instances)
      clock.advance(6_000)
    }
    return [before, metering.instances()]
  }
  t.strictSame(sizes('embedded'), [3, 5])
  t.strictSame(sizes('redis'), [undefined, 5])
  t.equal(meteringOf(t, 'embedded', 1).metering.instances(), 1)
})

t.test(
  'the counts of a day are kept after its end for as long as wished, and for an hour at least',
  async t => {
    const noon = Date.parse('2026-11-21T12:00:00Z')
    for (const [keepForMs, keptMs] of [
      [0, 3_600_000],
      [86_400_000, 86_400_000],
    ] as const) {
      const { endsAt, keepUntil } = localDays(calendar, keepForMs).at(noon)
      t.strictSame([endsAt, keepUntil - endsAt], [Date.parse('2026-11-21T18:00:00Z'), keptMs])
    }
  },
)

/** The size of a fleet after heartbeats, each so many ms after the one before it. */
const fleetSize = () => {
  const clock = manualClock()
  const size = createFleetSize(clock)
  const beat = (afterMs: number, instances: number) => {
    clock.advance(afterMs)
    size.onHeartbeat(instances)
    return size.atMost()
  }
  /** Heartbeats every five seconds, for a minute. */
  const minuteOf = (instances: number) => {
    for (let i = 0; i < 12; i++) beat(5_000, instances)
    return size.atMost()
  }
  return { clock, size, beat, minuteOf }
}

t.test('the size is unknown until the others can count this instance', async t => {
  const { clock, size, beat } = fleetSize()
  t.equal(size.atMost(), undefined, 'no heartbeat yet')
  beat(60_000, 3)
  t.equal(beat(5_999, 3), undefined)
  clock.advance(60_000)
  t.equal(size.atMost(), undefined, 'time alone proves nothing: the store may be away')
  t.equal(beat(0, 4), 4)
  clock.advance(3_600_000)
  t.equal(size.atMost(), 4, 'while heartbeats fail the last ones stand')
  const other = fleetSize()
  other.beat(0, 1)
  t.equal(other.beat(-86_400_000, 1), undefined, 'a jump of the clock does not make it known')
})

t.test('the size is the most of the last minute, and at least 1', async t => {
  const { beat, minuteOf } = fleetSize()
  beat(0, 5)
  t.equal(beat(6_000, 2), 5)
  t.equal(minuteOf(1), 1)
  t.equal(minuteOf(0), 1, 'this one')
})

t.test('a heartbeat counts for a minute, of which a long gap is six seconds', async t => {
  const { beat } = fleetSize()
  beat(0, 1)
  beat(6_000, 5)
  for (let i = 0; i < 9; i++) beat(70_000, 1)
  t.equal(beat(5_999, 1), 5)
  t.equal(beat(1, 1), 1)
})

t.test('after an outage, or a jump of the clock, the former size stands for a minute more', async t => {
  for (const jumpMs of [70_000, 86_400_000, -3_600_000]) {
    const { beat, minuteOf } = fleetSize()
    beat(0, 3)
    beat(6_000, 3)
    // The heartbeats of the others come within seconds, as far as the store stays.
    t.equal(beat(jumpMs, 1), 3, `${jumpMs} ms`)
    t.equal(minuteOf(2), 2, `${jumpMs} ms`)
  }
})

t.test('a count is published some 64 times on its way to the limit, or at every unit', async t => {
  t.strictSame([0, 1, 64, 65, 10_000].map(stepOf), [1, 1, 1, 2, 157])
})

t.test('all allowances and the unpublished units fit into the rest of the quota', async t => {
  const property = fc.property(
    fc.integer({ min: 1, max: 1_000_000 }),
    fc.integer({ min: 1, max: 50 }),
    fc.nat(),
    fc.array(fc.nat(), { minLength: 1, maxLength: 50 }),
    (limit, instances, spent, behind) => {
      const used = spent % (limit + 1)
      // Each instance may have missed less than two steps.
      const most = 2 * stepOf(limit) - 1
      const allowances = Array.from({ length: instances }, (_, i) =>
        allowanceOf(limit, Math.max(0, used - ((behind[i % behind.length] ?? 0) % (most + 1))), instances),
      )
      return used + allowances.reduce((sum, allowance) => sum + allowance, 0) <= limit
    },
  )
  t.doesNotThrow(() => fc.assert(property, { numRuns: 1_000 }))
})

t.test('the allowance of a fresh count is nearly all of a large limit, of an exhausted one 0', async t => {
  t.equal(allowanceOf(10_000, 0, 1), 10_000 - 2 * 157)
  t.equal(allowanceOf(10_000, 0, 4), Math.floor((10_000 - 2 * 157) / 4))
  for (const used of [10_000, 12_000]) t.equal(allowanceOf(10_000, used, 4), 0)
  t.equal(allowanceOf(2, 0, 1), 0, 'of two units nothing is certain')
})
