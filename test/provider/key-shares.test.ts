// Without it one key could take a whole budget window, or be throttled while there is room.

import fc from 'fast-check'
import t from 'tap'
import { boundedFor, throttledUntil, windowsAround } from '../../src/provider/spending-windows.ts'
import { roomOf } from '../../src/stores/fair-share.ts'
import { openBudget } from './budget-set-up.ts'

const settings = { reserve: 0.1, keyShare: 0.25, outageShare: null }
const morning = Date.parse('2026-11-21T06:00:00Z')
const [day] = windowsAround({ minute: null, hour: null, day: 10_000 }, morning, 0)
if (!day) throw new Error('there is no window')

t.test('the bounds of a day at six in the morning, and of one of which a part is set aside', async t => {
  t.match(boundedFor('cold', day, settings, 3_000, morning), {
    limit: 10_000_000,
    shares: { soloLimit: 9_500_000, share: 2_500_000, pacedLimit: 2_250_000 },
  })
  t.match(boundedFor('refresh', day, settings, 3_000, morning), {
    limit: 9_000_000,
    shares: { soloLimit: 9_000_000, share: 2_500_000, pacedLimit: 2_250_000 },
  })
  const unbounded = boundedFor('cold', day, { ...settings, keyShare: 1 }, 3_000, morning)
  t.equal(unbounded.shares, undefined, 'a share of 1 bounds nobody')
  const shared = { ...settings, outageShare: 0.05 }
  t.match(boundedFor('cold', day, shared, 3_000, morning), {
    limit: 9_500_000,
    outageReserve: 500_000,
    shares: { soloLimit: 9_025_000, share: 2_375_000, pacedLimit: 2_137_500 },
  })
  t.match(boundedFor('refresh', day, shared, 3_000, morning), { limit: 8_550_000, outageReserve: 450_000 })
  const [minute] = windowsAround({ minute: 59, hour: null, day: null }, morning, 0)
  if (!minute) throw new Error('there is no window')
  const small = boundedFor('cold', minute, shared, 3_000, morning)
  t.match(small, { limit: 59_000, outageReserve: 0 }, 'of a small limit nothing is set aside')
  const just = { ...minute, limit: 60_000 }
  t.match(boundedFor('cold', just, shared, 3_000, morning), { limit: 57_000, outageReserve: 3_000 })
  const kept = boundedFor('cold', just, settings, 3_000, morning)
  t.match(kept, { shares: { soloLimit: 57_000 } }, 'nor kept back, but for one cell')
  for (const [at, pacedLimit] of [
    [day.beginsAt - 1, 0],
    [day.endsAt + 3_600_000, 9_000_000],
  ] as const)
    t.match(boundedFor('cold', day, settings, 3_000, at), { shares: { pacedLimit } })
})

t.test(
  'a window of few points is no smaller than its limit, and each consumer has a point of it',
  async t => {
    for (const minute of [3, 6, 10, 30, 60, 600])
      for (const isAlone of [true, false]) {
        const [window] = windowsAround({ minute, hour: null, day: null }, morning, 0)
        if (!window) throw new Error('there is no window')
        const { limit, shares } = boundedFor('cold', window, settings, 3_000, window.beginsAt)
        t.ok(roomOf({ limit, used: 0, usedBy: 0, isAlone }, shares, 3_000) >= 3_000, `${minute} ${isAlone}`)
        const kept = limit - (shares?.soloLimit ?? 0)
        t.ok(kept === 0 || kept >= 3_000)
      }
  },
)

t.test('whatever is spent, some is left for another, and nobody passes the limit', async () => {
  fc.assert(
    fc.property(fc.nat(10_000), fc.nat(10_000), fc.boolean(), (first, others, isAlone) => {
      const { limit, shares } = boundedFor('cold', day, settings, 3_000, morning)
      const usedBy = first * 1_000
      const used = usedBy + (isAlone ? 0 : others * 1_000)
      const room = Math.max(0, roomOf({ limit, used, usedBy, isAlone }, shares, 3_000))
      const after = used + room
      if (used <= limit && after > limit) throw new Error('the limit is passed')
      const newcomer = roomOf({ limit, used: after, usedBy: 0, isAlone: false }, shares, 3_000)
      if (used <= limit * 0.9 && newcomer < 3_000) throw new Error('nothing is left')
      const isPaced = after <= (shares?.pacedLimit ?? 0)
      if (!isAlone && !isPaced && usedBy + room > Math.max(usedBy, limit * 0.25))
        throw new Error('more than its share')
    }),
    { numRuns: 5_000 },
  )
})

t.test('a consumer goes on when the day has gone on for long enough, or is over', async t => {
  const at = (used: number) =>
    new Date(throttledUntil([day], settings, () => used, 3_000, morning) ?? 0).toISOString()
  t.equal(at(4_497_000), '2026-11-21T12:00:00.000Z', 'half of nine tenths')
  t.equal(at(9_400_000), '2026-11-22T00:00:00.000Z')
  t.equal(at(0), '2026-11-21T06:00:00.001Z')
  const [next] = windowsAround({ minute: null, hour: null, day: 10_000 }, day.endsAt, 0)
  if (!next) throw new Error('there is no window')
  t.equal(
    throttledUntil([next], settings, () => 1, 3_000, morning),
    morning + 250,
    'requests in flight fill a day that comes',
  )
  const both = throttledUntil([next, day], settings, () => 4_497_000, 3_000, morning)
  t.equal(both, Date.parse('2026-11-21T12:00:00Z'), 'the last of several')
  const without = throttledUntil([], settings, () => 0, 3_000, morning)
  t.equal(without, null)
})

const claim = (consumer: string, points: number) => [{ consumer, points }]

t.test('a failed request gives its consumers back what it did not cost', async t => {
  const { budget } = openBudget(t, { limits: { minute: null, hour: null, day: 1_200 } })
  await budget.reserve(0, 'cold', [...claim('first', 0), ...claim('other', 1)])
  const failed = await budget.reserve(0, 'cold', claim('first', 100))
  t.match(failed, { points: 0, claims: [{ points: 100, throttledUntil: null }] })
  t.match((await budget.reserve(0, 'cold', claim('first', 1))).claims, [{ points: 0 }])
  await failed.settle('unsent')
  const again = await budget.reserve(0, 'cold', claim('first', 120))
  t.match(again.claims, [{ points: 100 }])
  t.equal(again.claims[0]?.throttledUntil, Date.parse('2026-11-21T06:48:00Z'))
  await again.settle('failed')
  const last = await budget.reserve(0, 'cold', claim('first', 120))
  t.match(last.claims, [{ points: 99 }], 'an error weighs 1')
})

t.test('where nobody has room it is no matter of shares', async t => {
  const limits = { minute: 600, hour: null, day: 1_200 }
  const { budget, clock } = openBudget(t, { limits }, '2026-11-21T06:10:05Z')
  for (let minute = 0; minute < 2; minute++) {
    const { claims } = await budget.reserve(0, 'cold', [...claim('other', 0), ...claim('first', 50)])
    t.match(claims[1], { points: 50 })
    if (minute === 0) clock.advance(60_000)
  }
  const held = await budget.reserve(0, 'cold', claim('first', 1))
  t.ok(held.claims[0]?.throttledUntil, 'its share of the day is used up')
  t.equal((await budget.reserve(200, 'cold')).points, 150)
  t.match(await budget.reserve(0, 'cold', claim('first', 1)), {
    claims: [{ points: 0, throttledUntil: null }],
    retryAt: Date.parse('2026-11-21T06:12:02Z'),
  })
})

t.test('while the store is away each gateway shares its part among consumers', async t => {
  const limits = { minute: null, hour: null, day: 1_200 }
  const options = { limits, instances: () => 2, outageShare: 0.5 }
  const { budget, state } = openBudget(t, options, '2026-11-21T00:10:10Z')
  await budget.reconcile()
  state.fault = 'before'
  await budget.reserve(0, 'cold', claim('first', 1))
  await budget.reserve(0, 'cold', claim('other', 1))
  const most = await budget.reserve(0, 'cold', claim('first', 500))
  const [first] = most.claims
  t.equal(first?.points, 24, 'with its first a quarter of 100 cells, half of what is set aside')
  t.ok(first?.throttledUntil)
  await most.settle('unsent')
  const again = await budget.reserve(0, 'cold', claim('first', 500))
  t.match(again.claims, [{ points: 24 }], 'what was not sent is given back')
  await again.settle('unsent')
  const whole = await budget.reserve(0, 'cold', claim('first', 24))
  t.match(whole.claims, [{ points: 24, throttledUntil: null }], 'nobody waits who got all')
  t.match((await budget.reserve(0, 'cold', claim('other', 20))).claims, [
    { points: 20, throttledUntil: null },
  ])
})

t.test('while the store is away a consumer alone, and the time of day, count as with the store', async t => {
  const limits = { minute: null, hour: null, day: 1_200 }
  const both = [...claim('first', 500), ...claim('other', 500)]
  for (const [at, claims, expected] of [
    ['2026-11-21T00:00:10Z', claim('first', 500), [95]],
    ['2026-11-21T00:00:10Z', both, [25, 25]],
    ['2026-11-21T12:00:00Z', both, [45, 25]],
  ] as const) {
    const { budget, state } = openBudget(t, { limits, instances: () => 2, outageShare: 0.5 }, at)
    await budget.reconcile()
    state.fault = 'before'
    const granted = await budget.reserve(0, 'cold', claims)
    t.strictSame(
      granted.claims.map(({ points }) => points),
      expected,
    )
  }
})

t.test('an outage of the store is over for a consumer when it is over for all', async t => {
  const options = { limits: { minute: 600, hour: 3_000, day: null }, outageShare: 0.5 }
  const { budget, state, clock } = openBudget(t, options, '2026-11-21T05:05:10Z')
  await budget.reserve(0, 'cold', [...claim('other', 1), ...claim('any', 10)])
  state.fault = 'before'
  const during = await budget.reserve(0, 'cold', claim('any', 1))
  t.match(during.claims, [{ points: 1, throttledUntil: null }], 'no share is used up')
  const more = await budget.reserve(0, 'cold', [...claim('other', 1), ...claim('any', 190)])
  const { points = 0, throttledUntil = 0 } = more.claims[1] ?? {}
  t.ok(points > 0 && points < 190 && throttledUntil, 'of its part it shares')
  t.equal(throttledUntil, clock.now() + 1_000, 'until the store may be back')
  state.fault = null
  clock.advance(1_000)
  t.match((await budget.reserve(0, 'cold', claim('any', 1))).claims, [{ points: 1, throttledUntil: null }])
})
