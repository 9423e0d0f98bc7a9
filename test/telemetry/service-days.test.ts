// Without it the status page could show wrong availability, or lose days with a restart.

import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { StoreError } from '../../src/stores/store.ts'
import { openServiceDays } from '../../src/telemetry/service-days.ts'
import { maxOutages, mergedRecord, noRecord, readRecord, united } from '../../src/telemetry/service-record.ts'
import { manualClock } from '../support/manual-clock.ts'

const minute = 60_000
const hour = 60 * minute
const calendar = createCalendar('Asia/Dhaka')
const key = 'service-days'

const setUp = (t: Test) => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const instance = (own: Partial<typeof store> = {}) => {
    const sums = { all: 0, errors: 0 }
    let on: { outage: 'provider' | 'store'; since: number }[] = []
    const days = openServiceDays({
      store: { ...store, ...own },
      instance: randomUUID(),
      answered: () => ({ ...sums }),
      outages: () => on,
      calendar,
      clock,
    })
    t.teardown(days.close)
    return {
      ...days,
      answer: (all: number, errors = 0) => {
        sums.all += all
        sums.errors += errors
      },
      out: (...outages: typeof on) => {
        on = outages
      },
    }
  }
  return { clock, store, instance }
}

t.test('answers of two instances add up, and outlast both', async t => {
  const { clock, instance } = setUp(t)
  const [one, other] = [instance(), instance()]
  one.answer(600, 1)
  other.answer(400)
  await one.read()
  await other.read()
  clock.advance(minute)
  const [today, yesterday] = (await one.read()).days
  t.hasStrict(today, { day: '2026-11-21', availability: 0.999 })
  t.hasStrict(yesterday, {
    day: '2026-11-20',
    availability: null,
    outageMinutes: { provider: null, store: null },
  })
  one.answer(1_000, 9)
  await one.close()
  await other.close()
  clock.advance(24 * hour)
  const next = instance()
  const days = (await next.read()).days
  t.equal(days.length, 30)
  t.hasStrict(days.slice(0, 2), [
    { day: '2026-11-22', availability: null },
    { day: '2026-11-21', availability: 0.995 },
  ])
})

t.test('an outage counts once, however many see it, in the days that it touches', async t => {
  const { clock, instance } = setUp(t)
  const [one, other] = [instance(), instance()]
  // Ten minutes before midnight in Dhaka.
  clock.set('2026-11-21T17:50:00Z')
  const since = clock.now()
  one.out({ outage: 'provider', since })
  await one.read()
  clock.advance(5 * minute)
  other.out({ outage: 'provider', since: since + 2 * minute })
  await one.read()
  await other.read()
  clock.advance(25 * minute)
  await one.read()
  one.out()
  await other.read()
  other.out({ outage: 'store', since: clock.now() - 90_000 })
  clock.advance(minute)
  await one.read()
  const [today, before] = (await other.read()).days
  t.has(today, { day: '2026-11-22', outageMinutes: { provider: 20, store: 3 } }, 'minutes that began count')
  t.hasStrict(before, { day: '2026-11-21', outageMinutes: { provider: 10, store: 0 } })
})

t.test('what the store did not take is added later, once', async t => {
  const { clock, store, instance } = setUp(t)
  let isAway = true
  const failing = instance({
    readBytes: (...given) =>
      isAway ? Promise.reject(new StoreError('it is away')) : store.readBytes(...given),
  })
  failing.answer(100, 50)
  t.match((await failing.read()).days, [{ availability: 0.5 }], 'it is shown all the same')
  await store.acquireLease(key, 'another', 60_000)
  isAway = false
  failing.answer(100)
  clock.advance(minute)
  t.match((await failing.read()).days, [{ availability: 0.75 }], 'while another instance writes')
  t.equal(await store.readBytes(key), undefined)
  await store.releaseLease(key, 'another')
  clock.advance(minute)
  await failing.read()
  t.strictSame(readRecord((await store.readBytes(key)) as Buffer).answers, {
    '2026-11-21': { all: 200, errors: 50 },
  })
  clock.advance(minute)
  t.match((await failing.read()).days, [{ availability: 0.75 }])
})

t.test('a write that fails once it is in the store is not repeated', async t => {
  const { clock, store, instance } = setUp(t)
  let isCut = true
  const failing = instance({
    writeBytes: async (...given) => {
      const isWritten = await store.writeBytes(...given)
      if (isCut) throw new StoreError('the connection is cut')
      return isWritten
    },
  })
  const other = instance()
  failing.answer(100, 10)
  await failing.read()
  isCut = false
  other.answer(50)
  await other.read()
  failing.answer(50, 10)
  clock.advance(minute)
  t.match((await failing.read()).days, [{ availability: 0.9 }])
  t.strictSame(readRecord((await store.readBytes(key)) as Buffer).answers, {
    '2026-11-21': { all: 200, errors: 20 },
  })
})

t.test('a write that fails before it is in the store is repeated', async t => {
  const { clock, store, instance } = setUp(t)
  let isAway = true
  const failing = instance({
    writeBytes: async (...given) => {
      if (isAway) throw new StoreError('it is away')
      return store.writeBytes(...given)
    },
  })
  failing.answer(100, 10)
  await failing.read()
  isAway = false
  clock.advance(minute)
  t.match((await failing.read()).days, [{ availability: 0.9 }])
  t.match(readRecord((await store.readBytes(key)) as Buffer).answers, { '2026-11-21': { all: 100 } })
})

t.test('the end waits for another instance that writes now', async t => {
  const { store, instance } = setUp(t)
  let tries = 0
  const leaving = instance({
    acquireLease: async (...given) => {
      tries += 1
      if (tries === 2) await store.releaseLease(key, 'another')
      return store.acquireLease(...given)
    },
  })
  leaving.answer(100)
  await store.acquireLease(key, 'another', 60_000)
  await leaving.close()
  t.match(readRecord((await store.readBytes(key)) as Buffer).answers, { '2026-11-21': { all: 100 } })
})

t.test('thirty days are shown, and twice as many are kept', async t => {
  const { clock, store, instance } = setUp(t)
  const one = instance()
  one.answer(10)
  one.out({ outage: 'provider', since: clock.now() - hour })
  await one.read()
  one.out()
  clock.advance(29 * 24 * hour)
  one.answer(10)
  t.hasStrict((await one.read()).days.at(-1), {
    day: '2026-11-21',
    availability: 1,
    outageMinutes: { provider: 60 },
  })
  for (let i = 0; i < 61; i++) {
    clock.advance(24 * hour)
    one.answer(10)
    await one.read()
  }
  const { answers } = readRecord((await store.readBytes(key)) as Buffer)
  t.strictSame([Object.keys(answers).length, Object.keys(answers)[0]], [60, '2026-12-22'])
})

for (const days of [40, -40])
  t.test(`one clock that is off by ${days} days takes nothing from the record`, async t => {
    const { clock, store, instance } = setUp(t)
    const one = instance()
    one.answer(1_000, 9)
    one.out({ outage: 'provider', since: clock.now() - hour })
    await one.read()
    one.out()
    const right = clock.now()
    clock.set(right + days * 24 * hour)
    const odd = instance()
    odd.answer(10)
    await odd.close()
    t.equal(Object.keys(readRecord((await store.readBytes(key)) as Buffer).answers).length, 2)
    clock.set(right + minute)
    t.match((await one.read()).days, [{ availability: 0.991, outageMinutes: { provider: 60 } }])
  })

t.test('a damaged record is none, and is written anew', async t => {
  const { clock, store, instance } = setUp(t)
  for (const text of [
    ...['', '{', '[]', '{}', 'null', '{"answers":{},"outages":{"provider":[],"store":[[2,1]]}}'],
    '{"answers":{"today":{"all":1,"errors":0}},"outages":{"provider":[],"store":[]}}',
    '{"answers":{"2026-11-21":{"all":-1,"errors":0}},"outages":{"provider":[],"store":[]}}',
  ])
    t.equal(readRecord(Buffer.from(text)), noRecord, text)
  t.equal(readRecord('wrong_type'), noRecord)
  await store.writeBytes(key, Buffer.from('\0'), clock.now() + hour)
  const one = instance()
  one.answer(4, 1)
  t.match((await one.read()).days, [{ availability: 0.75 }])
  t.match(readRecord((await store.readBytes(key)) as Buffer), { answers: { '2026-11-21': { all: 4 } } })
})

t.test('intervals are united whatever their order', async t => {
  t.strictSame(
    united([
      [5, 6],
      [1, 3],
      [2, 4],
      [4, 5],
    ]),
    [[1, 6]],
  )
  const interval = fc.tuple(fc.nat(1_000), fc.nat(20)).map(([from, length]) => [from, from + length] as const)
  const covered = (intervals: readonly (readonly [number, number])[]) =>
    new Set(intervals.flatMap(([from, to]) => Array.from({ length: to - from }, (_, i) => from + i)))
  fc.assert(
    fc.property(fc.array(interval), intervals => {
      const found = united(intervals)
      return (
        found.every(([from], i) => from > (found[i - 1]?.[1] ?? -1)) &&
        covered(found).symmetricDifference(covered(intervals)).size === 0
      )
    }),
  )
})

t.test(
  'of too many outages near ones are joined, and days whose outages are forgotten are not known',
  async t => {
    const { clock, store, instance } = setUp(t)
    const now = clock.now()
    const day = 24 * hour
    const recordOf = (provider: readonly (readonly [number, number])[]) => ({
      ...noRecord,
      outages: { provider, store: [] },
    })
    // Ten days ago, five hours; today, six hours of 20 s away and 20 s back.
    const long = [now - 10 * day, now - 10 * day + 5 * hour] as const
    const flaps = Array.from({ length: 540 }, (_, i) => now - 6 * hour + i * 40_000).map(
      from => [from, from + 20_000] as const,
    )
    const { outages, outagesSince } = mergedRecord(recordOf([long]), recordOf(flaps))
    t.strictSame([outages.provider.length, outages.provider[0]], [maxOutages, long])
    t.equal(outagesSince.provider, 0)
    const lengthOf = (all: readonly (readonly [number, number])[]) =>
      all.reduce((sum, [from, to]) => sum + to - from, 0)
    t.equal(lengthOf(outages.provider) - lengthOf([long, ...flaps]), 41 * 20_000, 'no more than has to be')

    // An outage each half hour for eleven days.
    const apart = Array.from({ length: 528 }, (_, i) => now - 11 * day + i * 30 * minute).map(
      from => [from, from + minute] as const,
    )
    const merged = mergedRecord(recordOf([long]), recordOf(apart))
    t.equal(merged.outages.provider.length, maxOutages)
    const bytes = Buffer.from(
      JSON.stringify({ ...merged, answers: { '2026-11-10': { all: 10, errors: 0 } } }),
    )
    await store.writeBytes(key, bytes, now + day)
    const days = (await instance().read()).days
    const on = (name: string) => days.find(each => each.day === name)
    t.match(on('2026-11-10'), { availability: 1, outageMinutes: { provider: null, store: 0 } })
    t.match(on('2026-11-19'), { outageMinutes: { provider: 48 } })
  },
)
