// Without it cells that nobody wants could be loaded before those in demand.

import t from 'tap'
import { createDemand } from '../../src/cache/demand.ts'
import { minuteMs } from '../../src/common/calendar.ts'

const noon = Date.parse('2026-11-21T12:00:00Z')
const halfLifeMs = 30 * minuteMs

t.test('each request counts one, and half as much after each half an hour', async t => {
  const demand = createDemand<string>()
  t.equal(demand.scoreOf('a', noon), 0)
  for (let i = 0; i < 4; i++) demand.record('a', 'A', noon + i * 300)
  t.equal(demand.scoreOf('a', noon), 4)
  t.equal(demand.scoreOf('a', noon + halfLifeMs), 2)
  t.equal(demand.scoreOf('a', noon + 2 * halfLifeMs), 1)
  t.equal(demand.scoreOf('a', noon - halfLifeMs), 4, 'no more in a clock that is behind')
  demand.record('a', 'A', noon + halfLifeMs)
  t.equal(demand.of('a')?.score, 3)
})

t.test('keys are known in the order of their last request, to the second', async t => {
  const demand = createDemand<string>()
  for (const [i, key] of ['a', 'b', 'c', 'a', 'b'].entries()) demand.record(key, key, noon + i * 1_000)
  t.strictSame(demand.latest(2), ['b', 'a'])
  const since = (ms: number) => demand.since(noon + ms).map(({ key }) => key)
  t.strictSame(since(0), ['b', 'a', 'c'])
  t.strictSame(since(3_000), ['b', 'a'])
  t.strictSame(since(3_001), ['b'])
  demand.record('a', 'a', noon + 3_999)
  t.strictSame(since(3_000), ['b', 'a'], 'within its second it keeps its place')
  demand.record('a', 'a', noon + 4_000)
  t.strictSame(since(4_000), ['a'], 'and after it no longer')
  const again = createDemand<string>()
  for (const [i, key] of ['a', 'b', 'c', 'd', 'b', 'a', 'c'].entries())
    again.record(key, key, noon + i * 1_000)
  t.strictSame(again.latest(9), ['c', 'a', 'b', 'd'], 'wherever it was before')
})

t.test('the keys with most requests are those of a sort of all, whatever their order and ties', async t => {
  const demand = createDemand<string>()
  for (let i = 0; i < 400; i++)
    for (let times = 0; times <= (i * 37) % 7; times++) demand.record(`${i}`, `${i}`, noon + i)
  const now = noon + halfLifeMs
  const sorted = demand
    .since(noon + 100)
    .map(({ key }) => demand.scoreOf(key, now))
    .sort((one, other) => other - one)
  for (const most of [1, 50, 300, 1_000]) {
    const found = demand.most(most, noon + 100, now)
    t.strictSame(
      found.map(({ score }) => score),
      sorted.slice(0, most),
    )
    t.equal(new Set(found.map(({ subject }) => subject)).size, Math.min(most, 300))
  }
  const even = createDemand<string>()
  for (const key of ['a', 'b', 'c']) even.record(key, key, noon)
  t.strictSame(
    even.most(2, noon, noon).map(({ subject }) => subject),
    ['c', 'b'],
    'among equals the latest',
  )
  for (let times = 0; times < 2; times++) even.record('d', 'd', noon)
  t.strictSame(
    even.most(2, noon, noon).map(({ subject }) => subject),
    ['d', 'c'],
    'and fewer of them after one with more',
  )
})

t.test('the last two consumers are known, and each key has its own', async t => {
  const demand = createDemand<string>()
  for (const [i, consumer] of ['one', 'two', 'two', 'three', undefined].entries())
    demand.record('a', 'A', noon + i * 1_000, consumer)
  t.strictSame(demand.recentConsumers(noon), ['three', 'two'])
  t.strictSame(demand.recentConsumers(noon + 3_000), ['three'])
  t.equal(demand.of('a')?.consumer, undefined, 'the last request was nobody’s')
})

t.test('a clock that is set back leaves nothing that was requested later than now', async t => {
  const demand = createDemand<string>()
  demand.record('a', 'A', noon, 'one')
  demand.record('b', 'B', noon - halfLifeMs, 'two')
  t.equal(demand.of('a')?.lastRequestedAt, noon - halfLifeMs)
  t.strictSame(demand.recentConsumers(noon - halfLifeMs + 1), [])
  t.strictSame(
    demand.since(noon - halfLifeMs).map(({ key }) => key),
    ['b', 'a'],
  )
})

t.test('of more than 50,000 keys the one that was requested longest ago is forgotten', async t => {
  const demand = createDemand<number>()
  for (let i = 0; i < 50_000; i++) demand.record(`${i}`, i, noon + i)
  for (const i of [0, 50_000, 50_001]) demand.record(`${i}`, i, noon + 50_000)
  const known = [0, 1, 2, 3].filter(i => demand.of(`${i}`))
  t.strictSame(known, [0, 3], 'and never one that was requested again')
  t.equal(demand.since(noon).length, 50_000)
})
