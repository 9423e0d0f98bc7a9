// Without it reports could count responses twice, on the wrong day, or not at all after an outage.

import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { numberOf } from '../../src/keys/key-index.ts'
import { createUsageDetail } from '../../src/keys/usage-detail.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { StoreError } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'
import { heldIntervals } from './held-intervals.ts'

const calendar = createCalendar('Asia/Dhaka')
const beforeMidnight = Date.parse('2026-11-21T17:59:59.999Z')
const answer = { keyId: 'key_1', endpoint: 'weather' as const, status: 200, arrivedAt: beforeMidnight }

const setUp = (t: Test, onWritten?: Parameters<typeof createUsageDetail>[3]) => {
  const clock = manualClock(beforeMidnight)
  const store = openEmbeddedStore(':memory:', clock)
  const state = { away: false, lostPartition: -1, calls: 0, written: 0 }
  const partitionOf = (keyId: string): number => (keyId.startsWith('key_far') ? 1 : 0)
  const addDetail: typeof store.addDetail = async entries => {
    state.calls += 1
    if (state.away) throw new StoreError('away')
    // As on a cluster: the other partitions have their part.
    const taken = entries.filter(({ keyId }) => partitionOf(keyId) !== state.lostPartition)
    state.written += taken.length
    await store.addDetail(taken)
    if (taken.length < entries.length) throw new StoreError('away')
  }
  const detail = createUsageDetail({ addDetail, partitionOf }, calendar, clock, onWritten)
  t.teardown(async () => {
    await detail.close()
    await store.close()
  })
  const counts = async (day = '2026-11-21', keyId = 'key_1') => {
    const found = await store.detailOn(keyId, day)
    return Object.fromEntries(found.map(each => [`${each.endpoint} ${each.statusClass}`, each.count]))
  }
  return { clock, store, state, detail, counts }
}

t.test('answers are counted on the local day they arrived on, and forgotten two days after it', async t => {
  const { clock, store, state, detail, counts } = setUp(t)
  for (const status of [101, 200, 204, 304, 404, 429, 499, 500, 600]) detail.count({ ...answer, status })
  detail.count({ ...answer, arrivedAt: beforeMidnight + 1 })
  detail.count({ ...answer, endpoint: 'other', keyId: 'key_2' })
  await detail.flush()
  t.equal(state.written, 8, 'answers that are counted together are written together')
  detail.count(answer)
  await detail.close()
  const ofClasses = { 'weather 2xx': 3, 'weather 3xx': 1, 'weather 4xx': 3, 'weather 5xx': 1 }
  const expected = { 'weather 1xx': 1, ...ofClasses, 'weather other': 1 }
  t.strictSame(await counts(), expected)
  t.strictSame(await counts('2026-11-22'), { 'weather 2xx': 1 })
  t.strictSame(await counts('2026-11-21', 'key_2'), { 'other 2xx': 1 })
  clock.set('2026-11-23T17:59:59.999Z')
  await store.addDetail([])
  t.strictSame(await counts(), expected)
  clock.advance(1)
  await store.addDetail([])
  t.strictSame(await counts(), {})
  t.strictSame(await counts('2026-11-22'), { 'weather 2xx': 1 })
})

t.test('two keys whose ids have one number are counted apart', async t => {
  const { detail, counts } = setUp(t)
  const [one, other] = ['key_332789_aa', 'key_529192_aa'] as const
  t.equal(numberOf(one), numberOf(other))
  for (const keyId of [one, other, one]) detail.count({ ...answer, keyId })
  await detail.flush()
  t.strictSame(await counts('2026-11-21', one), { 'weather 2xx': 2 })
  t.strictSame(await counts('2026-11-21', other), { 'weather 2xx': 1 })
})

t.test('loaded cells are counted today, and are no requests', async t => {
  const written: unknown[] = []
  const { detail, counts } = setUp(t, requests => written.push(requests.map(({ count }) => count)))
  detail.countLoad('key_1')
  detail.count(answer)
  detail.count(answer)
  await detail.flush()
  t.strictSame(await counts(), { 'cells loaded other': 1, 'weather 2xx': 2 })
  t.strictSame(written, [[2]])
})

t.test('what comes during a write is kept with what that write lost, and is written on close', async t => {
  const { state, detail, counts } = setUp(t)
  state.away = true
  detail.count(answer)
  const failed = detail.flush()
  detail.count(answer)
  await failed
  state.away = false
  const flushed = detail.flush()
  detail.count({ ...answer, status: 404 })
  await detail.close()
  await flushed
  t.equal(state.written, 2, 'one counter for each kind of answer')
  t.strictSame(await counts(), { 'weather 2xx': 2, 'weather 4xx': 1 })
  const { calls } = state
  await detail.flush()
  t.equal(state.calls, calls, 'without counts the store is asked for nothing')
})

t.test('a partition that is away keeps its counts, and those of the others are written once', async t => {
  const { state, detail, counts } = setUp(t)
  for (const lost of [1, 0, -1]) {
    state.lostPartition = lost
    for (const keyId of ['key_1', 'key_far']) detail.count({ ...answer, keyId })
    await detail.flush()
  }
  t.strictSame(await counts(), { 'weather 2xx': 3 })
  t.strictSame(await counts('2026-11-21', 'key_far'), { 'weather 2xx': 3 })
})

t.test('counts are written every second until the end', async t => {
  const intervals = heldIntervals(t)
  const { state, detail } = setUp(t)
  t.match(intervals, [{ ms: 1_000, isOver: false }])
  detail.count(answer)
  intervals[0]?.work()
  t.equal(state.calls, 1)
  await detail.close()
  t.ok(intervals[0]?.isOver)
})

t.test('counts that could not be handed over go with the next, and no more than the bound', async t => {
  const { state, detail, counts } = setUp(t)
  state.away = true
  detail.count(answer)
  await detail.flush()
  detail.count(answer)
  for (let i = 0; i < 12_000; i++) detail.count({ ...answer, keyId: `key_x${i}` })
  detail.count(answer)
  await detail.flush()
  state.away = false
  await detail.flush()
  t.strictSame(await counts(), { 'weather 2xx': 3 })
  t.equal(state.written, 10_000)
  for (let i = 0; i < 10_000; i++) detail.count({ ...answer, keyId: `key_${i}` })
  // A part of 200 is written in each turn of the event loop; the interval is much longer.
  for (let i = 0; i < 100; i++) await turn()
  t.equal(state.written, 20_000, 'at the bound they go without waiting for the interval')
})

t.test('where as many come while others are written, they are written next', async t => {
  const { state, detail } = setUp(t)
  for (let i = 0; i < 20_000; i++) detail.count({ ...answer, keyId: `key_${i}` })
  t.ok(state.written < 10_000, 'the first are being written')
  await detail.flush()
  t.ok(state.written > 10_000, 'before the next second')
})

t.test('while the store is away and the bound is reached, further keys write nothing', async t => {
  const { state, detail } = setUp(t)
  state.away = true
  const count = async (from: number, many: number) => {
    for (let i = from; i < from + many; i++) detail.count({ ...answer, keyId: `key_${i}` })
    await turn()
  }
  for (let i = 0; i < 9_999; i++) detail.count({ ...answer, keyId: `key_${i}` })
  t.equal(state.calls, 0)
  await count(9_999, 1)
  const { calls } = state
  t.ok(calls > 0, 'at the bound')
  for (let i = 0; i < 100; i++) await count(10_000 + i, 1)
  // On a slow machine the interval may come meanwhile.
  t.ok(state.calls - calls < 10, `${state.calls - calls} writes`)
})

t.test('counters stay from flush to flush, and count each answer once', async t => {
  const { state, detail, counts } = setUp(t)
  for (let i = 0; i < 3; i++) {
    detail.count(answer)
    detail.count({ ...answer, status: 404 })
    await detail.flush()
  }
  await detail.flush()
  t.equal(state.written, 6, 'without those that counted nothing')
  detail.count(answer)
  await detail.flush()
  t.strictSame(await counts(), { 'weather 2xx': 4, 'weather 4xx': 3 })
})

t.test('of a flush that fails on its way, what was written is not written again', async t => {
  const { state, detail, counts } = setUp(t)
  for (let i = 0; i < 500; i++) detail.count({ ...answer, keyId: `key_${i}` })
  const flushed = detail.flush()
  await until('a part of it is written', () => state.written > 0)
  state.away = true
  await flushed
  t.ok(state.written < 500, `${state.written} were written before`)
  state.away = false
  await detail.flush()
  t.equal(state.written, 500)
  for (const keyId of ['key_0', 'key_499']) t.strictSame(await counts(undefined, keyId), { 'weather 2xx': 1 })
})
