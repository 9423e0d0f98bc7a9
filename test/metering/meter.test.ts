import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { createCalendar } from '../../src/calendar.ts'
import { createMeter, type LostUnits } from '../../src/metering/meter.ts'
import { type Deal, type MeteredDay, settleForMs } from '../../src/metering/partition.ts'
import { shareOf } from '../../src/metering/share.ts'
import { openEmbeddedStore } from '../../src/stores/embedded.ts'
import { StoreError } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'
import { type Fate, unreliable } from './unreliable-store.ts'

const calendar = createCalendar('Asia/Dhaka')

// Some meters on one store, each an instance; what they are asked for and what they gave.
const setUp = (
  instances: number,
  limits: Record<string, number>,
  whenStoreIsDown: 'share' | 'refuse' = 'share',
) => {
  const clock = manualClock('2026-11-21T17:59:00Z')
  const real = openEmbeddedStore(':memory:', clock)
  const store = unreliable(real)
  const near: unknown[] = []
  const lost: LostUnits[] = []
  let alone = 0
  const meters = Array.from({ length: instances }, () =>
    createMeter({
      store,
      whenStoreIsDown,
      instances: () => instances,
      dayOf: calendar.dayOf,
      clock,
      observer: {
        storeAway: () => {},
        storeBack: merged => {
          alone += merged
        },
        unitsLost: each => lost.push(...each),
        nearLimit: news => near.push(news),
      },
    }),
  )
  const dayNow = (): MeteredDay => {
    const endsAt = calendar.nextMidnight(clock.now())
    return { day: calendar.dayOf(clock.now()), endsAt, keepUntil: endsAt + 86_400_000 * 2 }
  }
  const asked = new Map<string, number>()
  const given = new Map<string, Deal[]>()
  const refused: unknown[] = []
  const underWay = new Set<Promise<void>>()
  const add = <Value>(map: Map<string, Value[]>, name: string, value: Value) =>
    map.set(name, [...(map.get(name) ?? []), value])

  return {
    clock,
    real,
    store,
    meters,
    near,
    lost,
    asked,
    given,
    refused,
    /** Units that were dealt without the store and are counted by now. */
    alone: () => alone,
    ask: (instance: number, keyId: string): void => {
      const metered = dayNow()
      const name = `${keyId} ${metered.day}`
      asked.set(name, (asked.get(name) ?? 0) + 1)
      const answer = (meters[instance % instances] ?? meters[0])
        ?.take(keyId, limits[keyId] ?? 0, metered)
        .then(
          deal => {
            add(given, name, deal)
          },
          error => {
            if (!(error instanceof StoreError)) throw error
            refused.push(error)
          },
        )
        .finally(() => underWay.delete(answer as Promise<void>))
      underWay.add(answer as Promise<void>)
    },
    // As the timers of every instance do, at most half a second apart.
    pass: async (ms: number): Promise<void> => {
      for (let left = ms; left > 0; left -= 500) {
        clock.advance(Math.min(500, left))
        const looks = Promise.all(meters.map(meter => meter.look()))
        let done = false
        void looks.then(() => {
          done = true
        })
        await until('all have looked', async () => done || (await store.decide(0, 'answered')), 60_000, 0)
      }
    },
    finish: async (): Promise<void> => {
      const isOver = () => underWay.size === 0 && store.out() === 0
      await until('all is answered', async () => isOver() || (await store.decide(0, 'answered')), 60_000, 0)
    },
    admitted: (name: string) => (given.get(name) ?? []).filter(({ allowed }) => allowed).length,
    usedOn: async (name: string) => {
      const [keyId = '', day = ''] = name.split(' ')
      return (await real.usedOn(keyId, [day]))[0]
    },
  }
}

const limits = { small: 5, middle: 40, large: 900 }
// So that outages come while something is left.
const roomy = { small: 20, middle: 300, large: 9_000, unseen: 400 }
const fates = fc.constantFrom<Fate[]>('answered', 'lost', 'unanswered', 'late')
type Step =
  | { do: 'ask'; instance: number; key: string; times: number }
  | { do: 'decide'; which: number; fate: Fate }
  | { do: 'land'; which: number }
  | { do: 'down'; fate: Fate }
  | { do: 'up' }
  | { do: 'deafen' }
  | { do: 'pass'; ms: number }
  | { do: 'jump'; days: number }
const asking = fc.record({
  do: fc.constant('ask' as const),
  instance: fc.nat(2),
  key: fc.constantFrom(...Object.keys(roomy)),
  times: fc.integer({ min: 1, max: 90 }),
})
const passing = fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(100, 700, 2_500, 61_000) })
const jumping = fc.record({ do: fc.constant('jump' as const), days: fc.constantFrom(-2, -1, 1, 2) })
const deciding = fc.record({ do: fc.constant('decide' as const), which: fc.nat(3), fate: fates })
const anything: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: asking },
  { weight: 5, arbitrary: deciding },
  { weight: 2, arbitrary: passing },
  { weight: 1, arbitrary: jumping },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('deafen' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('land' as const), which: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('down' as const), fate: fates }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('up' as const) }) },
)
const healthy: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: asking },
  {
    weight: 4,
    arbitrary: fc.record({
      ...{ do: fc.constant('decide' as const) },
      which: fc.nat(3),
      fate: fc.constant<Fate>('answered'),
    }),
  },
  { weight: 1, arbitrary: passing },
  { weight: 1, arbitrary: jumping },
)

const play = async (steps: readonly Step[]) => {
  const scene = setUp(3, roomy)
  // Every instance has seen every key but one.
  for (const key of Object.keys(limits)) for (const instance of [0, 1, 2]) scene.ask(instance, key)
  await turn()
  await scene.finish()
  for (const step of steps) {
    if (step.do === 'ask') for (let i = 0; i < step.times; i++) scene.ask(step.instance, step.key)
    else if (step.do === 'decide') await scene.store.decide(step.which, step.fate)
    else if (step.do === 'land') await scene.store.land(step.which)
    else if (step.do === 'down') await scene.store.down(step.fate)
    else if (step.do === 'up') scene.store.up()
    else if (step.do === 'deafen') scene.store.deafen()
    else if (step.do === 'jump') scene.clock.advance(step.days * 86_400_000)
    else await scene.pass(step.ms)
    await turn()
  }
  scene.store.up()
  await scene.finish()
  await scene.pass(settleForMs * 3)
  await scene.finish()
  return scene
}

t.test('whatever happens, nobody gets more than the limit, and the counts are right afterwards', async t => {
  let alone = 0
  await fc.assert(
    fc.asyncProperty(fc.array(anything, { maxLength: 40 }), async steps => {
      const scene = await play(steps)
      for (const [name] of scene.asked) {
        const limit = roomy[name.split(' ')[0] as keyof typeof roomy]
        const admitted = scene.admitted(name)
        if (admitted > limit) throw new Error(`${admitted} of ${limit} for ${name}`)
        const counted = await scene.usedOn(name)
        if (counted !== admitted) throw new Error(`${admitted} admitted, ${counted} counted for ${name}`)
      }
      alone += scene.alone()
      await scene.real.close()
    }),
    { numRuns: 300 },
  )
  t.ok(alone > 100, `${alone} units were dealt without the store`)
})

t.test('while the store is healthy exactly the limit is given, and each count once', async t => {
  let exhausted = 0
  await fc.assert(
    fc.asyncProperty(fc.array(healthy, { maxLength: 40 }), async steps => {
      const scene = await play(steps)
      for (const [name, asked] of scene.asked) {
        const limit = roomy[name.split(' ')[0] as keyof typeof roomy]
        const expected = Math.min(limit, asked)
        const remaining = (scene.given.get(name) ?? []).flatMap(deal =>
          deal.allowed ? [deal.remaining] : [],
        )
        const counts = remaining.sort((a, b) => b - a)
        const right = Array.from({ length: expected }, (_, i) => limit - 1 - i)
        if (counts.join() !== right.join()) throw new Error(`${name}: ${counts} and not ${right}`)
        if (asked > limit) exhausted += 1
      }
      if (scene.refused.length > 0) throw new Error('a healthy store refused')
      await scene.real.close()
    }),
    { numRuns: 200 },
  )
  t.ok(exhausted > 50, `${exhausted} quotas were exhausted`)
  t.pass('each of them exactly')
})

t.test('all that asks while a trip is out shares the next one', async t => {
  const scene = setUp(1, limits)
  for (let i = 0; i < 100; i++) scene.ask(0, i % 2 ? 'large' : 'middle')
  await turn()
  t.equal(scene.store.out(), 1, 'one trip for all that came in one turn')
  for (let i = 0; i < 200; i++) scene.ask(0, 'large')
  await turn()
  t.equal(scene.store.out(), 1, 'and one at a time')
  await scene.store.decide(0, 'answered')
  await turn()
  t.equal(scene.store.out(), 1)
  await scene.store.decide(0, 'answered')
  await turn()
  t.equal(scene.admitted('large 2026-11-21'), 250)
  t.equal(scene.admitted('middle 2026-11-21'), 40)
  const order = (scene.given.get('large 2026-11-21') ?? []).map(({ remaining }) => remaining)
  t.strictSame(
    order,
    Array.from({ length: 250 }, (_, i) => 899 - i),
    'in the order of asking',
  )
})

t.test('a lost answer of a store that is there is asked for again, and nothing is counted twice', async t => {
  const scene = setUp(2, limits)
  for (let i = 0; i < 10; i++) scene.ask(0, 'middle')
  await turn()
  await scene.store.decide(0, 'unanswered')
  for (let i = 0; i < 3; i++) await turn()
  t.equal(scene.store.out(), 1, 'the same again')
  await scene.finish()
  t.equal(scene.admitted('middle 2026-11-21'), 10)
  t.equal(await scene.usedOn('middle 2026-11-21'), 10)
  t.equal(scene.meters[0]?.state(), 'counting')
})

t.test('shares of an outage are dealt, told afterwards, and the rest waits for it', async t => {
  const scene = setUp(3, limits)
  for (const instance of [0, 1, 2]) scene.ask(instance, 'large')
  await turn()
  await scene.finish()
  await scene.store.down('lost')
  for (let i = 0; i < 1_000; i++) for (const instance of [0, 1]) scene.ask(instance, 'large')
  for (let i = 0; i < 5; i++) await turn()
  const share = shareOf(900, 3, 3)
  t.ok(share > 280 && share < 300, `a share is ${share}`)
  const dealt = scene.admitted('large 2026-11-21') - 3
  t.ok(dealt >= 2 * share - 4 && dealt <= 2 * share, `${dealt} dealt by two of three instances`)
  t.equal(
    scene.refused.length,
    2_000 - dealt,
    'the others are errors: nobody knows that the quota is exhausted',
  )
  t.equal(scene.meters[0]?.state(), 'away')

  scene.store.up()
  await scene.pass(500)
  t.equal(scene.meters[0]?.state(), 'settling')
  t.equal(await scene.usedOn('large 2026-11-21'), 3 + dealt)
  scene.ask(2, 'large')
  await turn()
  await scene.finish()
  t.equal(scene.admitted('large 2026-11-21'), 4 + dealt, 'who has not spent its share goes on')
  await scene.pass(settleForMs)
  t.equal(scene.meters[0]?.state(), 'counting')
  for (let i = 0; i < 900; i++) scene.ask(0, 'large')
  await turn()
  await scene.finish()
  t.equal(scene.admitted('large 2026-11-21'), 900)
  t.equal(await scene.usedOn('large 2026-11-21'), 900)
})

t.test('a day that begins during an outage has its shares too', async t => {
  const scene = setUp(2, limits)
  scene.ask(0, 'large')
  await turn()
  await scene.finish()
  await scene.store.down('lost')
  scene.ask(0, 'large')
  for (let i = 0; i < 3; i++) await turn()
  await scene.pass(61_000)
  for (let i = 0; i < 900; i++) scene.ask(0, 'large')
  for (let i = 0; i < 3; i++) await turn()
  t.equal(scene.admitted('large 2026-11-22'), shareOf(900, 0, 2))
})

t.test('an exhausted quota stays a 429 in an outage, an unknown key is an error', async t => {
  const scene = setUp(1, limits)
  for (let i = 0; i < 6; i++) scene.ask(0, 'small')
  await turn()
  await scene.finish()
  await scene.store.down('lost')
  scene.ask(0, 'small')
  scene.ask(0, 'middle')
  for (let i = 0; i < 3; i++) await turn()
  t.strictSame(scene.given.get('small 2026-11-21')?.at(-1), { allowed: false, remaining: 0 })
  t.equal(scene.refused.length, 1)
})

t.test(
  'where nobody shall deal alone nobody does, and counting goes on as soon as the store is back',
  async t => {
    const scene = setUp(2, limits, 'refuse')
    for (const instance of [0, 1]) scene.ask(instance, 'large')
    for (let i = 0; i < 5; i++) scene.ask(0, 'small')
    await turn()
    await scene.finish()
    await scene.store.down('lost')
    for (let i = 0; i < 10; i++) for (const instance of [0, 1]) scene.ask(instance, 'large')
    scene.ask(0, 'small')
    for (let i = 0; i < 5; i++) await turn()
    t.equal(scene.refused.length, 20)
    t.strictSame(
      scene.given.get('small 2026-11-21')?.at(-1),
      { allowed: false, remaining: 0 },
      'known as exhausted',
    )
    t.equal(scene.meters[0]?.state(), 'away')
    scene.store.up()
    await scene.pass(500)
    t.equal(scene.meters[0]?.state(), 'counting', 'there is nothing to settle')
    for (let i = 0; i < 1_000; i++) scene.ask(i, 'large')
    await turn()
    await scene.finish()
    t.equal(scene.admitted('large 2026-11-21'), 900)
    t.equal(await scene.usedOn('large 2026-11-21'), 900)
    t.equal(scene.alone(), 0)
  },
)

t.test('news that may be missed change nothing where nobody deals alone', async t => {
  const scene = setUp(2, limits, 'refuse')
  scene.ask(0, 'large')
  await turn()
  await scene.finish()
  await scene.store.down('lost')
  scene.store.up()
  t.equal(scene.meters[0]?.state(), 'counting')
})

t.test(
  'who missed news asks the store about a count it does not know, and takes its share of it',
  async t => {
    const scene = setUp(3, limits)
    for (const instance of [0, 1, 2]) scene.ask(instance, 'middle')
    await turn()
    await scene.finish()
    scene.store.deafen()
    for (const instance of [0, 1, 2]) for (let i = 0; i < 900; i++) scene.ask(instance, 'large')
    await turn()
    await scene.finish()
    // The first to ask had the largest share of it.
    const given = scene.admitted('large 2026-11-21')
    t.ok(given > shareOf(900, 0, 3) && given <= 3 * shareOf(900, 0, 3), `${given} of 900`)
    t.equal(scene.meters[0]?.state(), 'settling')
    await scene.pass(settleForMs)
    for (let i = 0; i < 900; i++) scene.ask(i, 'large')
    await turn()
    await scene.finish()
    t.equal(scene.admitted('large 2026-11-21'), 900)
    t.equal(await scene.usedOn('large 2026-11-21'), 900)
  },
)

t.test('80 and 100 per cent are told once a day, by whoever passes them', async t => {
  const scene = setUp(3, limits)
  for (let i = 0; i < 60; i++) {
    scene.ask(i, 'middle')
    await turn()
    await scene.finish()
  }
  t.match(scene.near, [
    { keyId: 'middle', day: '2026-11-21', limit: 40, percent: 80, used: 32 },
    { percent: 100, used: 40 },
  ])
  t.equal(scene.near.length, 2)
})

t.test('units dealt alone are told of once, however often the store failed before it took them', async t => {
  const scene = setUp(1, limits)
  scene.ask(0, 'large')
  await turn()
  await scene.finish()
  await scene.store.down('lost')
  for (let i = 0; i < 10; i++) scene.ask(0, 'large')
  for (let i = 0; i < 3; i++) await turn()
  t.equal(scene.admitted('large 2026-11-21'), 11)
  for (let probe = 0; probe < 20; probe++) await scene.pass(500)
  scene.store.up()
  await scene.pass(settleForMs + 1_000)
  t.equal(scene.meters[0]?.state(), 'counting')
  t.equal(await scene.usedOn('large 2026-11-21'), 11)
  t.equal(scene.alone(), 10)
})

t.test('a clock that jumps two days ahead and back loses no unit', async t => {
  const scene = setUp(2, limits)
  for (let i = 0; i < 300; i++) scene.ask(i, 'large')
  await turn()
  await scene.finish()
  for (let jump = 1; jump <= 3; jump++) {
    scene.clock.advance(2 * 86_400_000)
    await scene.pass(500)
    for (let i = 0; i < 10; i++) scene.ask(i, 'large')
    await turn()
    await scene.finish()
    scene.clock.advance(-2 * 86_400_000 - 500)
    await scene.pass(500)
    scene.clock.advance(-500)
    for (let i = 0; i < 20; i++) scene.ask(i, 'large')
    await turn()
    await scene.finish()
    t.equal(scene.admitted('large 2026-11-21'), 300 + jump * 20)
    t.equal(await scene.usedOn('large 2026-11-21'), 300 + jump * 20)
    t.equal(await scene.usedOn('large 2026-11-23'), jump * 10)
  }
  for (let i = 0; i < 900; i++) scene.ask(i, 'large')
  await turn()
  await scene.finish()
  t.equal(scene.admitted('large 2026-11-21'), 900, 'and the limit holds')
})

t.test('units dealt alone before the clock jumped ahead are told, although the store was away', async t => {
  const scene = setUp(2, limits)
  for (let i = 0; i < 100; i++) scene.ask(i, 'large')
  await turn()
  await scene.finish()
  await scene.store.down('lost')
  for (let i = 0; i < 40; i++) scene.ask(i, 'large')
  for (let i = 0; i < 3; i++) await turn()
  scene.clock.advance(2 * 86_400_000)
  await scene.pass(500)
  scene.clock.advance(-2 * 86_400_000 - 500)
  await scene.pass(500)
  scene.clock.advance(-500)
  for (let i = 0; i < 40; i++) scene.ask(i, 'large')
  for (let i = 0; i < 3; i++) await turn()
  t.equal(scene.refused.length, 0, 'shares go on where they were')
  t.equal(scene.admitted('large 2026-11-21'), 180)
  scene.store.up()
  await scene.pass(settleForMs + 1_000)
  t.equal(await scene.usedOn('large 2026-11-21'), 180)
})

t.test('a day that was counted already before a jump back does not begin anew in an outage', async t => {
  const scene = setUp(1, limits)
  const askAll = async (times: number) => {
    for (let i = 0; i < times; i++) scene.ask(0, 'large')
    for (let i = 0; i < 3; i++) await turn()
    if (scene.store.out() > 0) await scene.finish()
  }
  await askAll(1)
  scene.clock.advance(2 * 86_400_000)
  await askAll(500)
  scene.clock.advance(2 * 86_400_000)
  await scene.pass(500)
  scene.clock.set('2026-11-21T17:59:00Z')
  await askAll(1)
  await scene.store.down('lost')
  await askAll(1)
  scene.clock.advance(2 * 86_400_000)
  await askAll(900)
  t.ok(scene.admitted('large 2026-11-23') <= 900, `${scene.admitted('large 2026-11-23')} of 900`)
  scene.store.up()
  await scene.pass(settleForMs + 1_000)
  t.equal(await scene.usedOn('large 2026-11-23'), scene.admitted('large 2026-11-23'))
})

t.test('units dealt alone are told at the end, or else named', async t => {
  for (const comesBack of [true, false]) {
    const scene = setUp(1, limits)
    for (const key of ['large', 'middle']) scene.ask(0, key)
    await turn()
    await scene.finish()
    await scene.store.down('lost')
    for (let i = 0; i < 10; i++) scene.ask(0, 'large')
    scene.ask(0, 'middle')
    for (let i = 0; i < 3; i++) await turn()
    let isClosed = false
    const closed = scene.meters[0]?.close().then(() => {
      isClosed = true
    })
    // It has asked in vain once.
    for (let i = 0; i < 10; i++) await turn()
    t.notOk(isClosed, 'it waits')
    if (comesBack) scene.store.up()
    await until(
      'the meter is closed',
      async () => isClosed || (await scene.store.decide(0, 'answered')),
      60_000,
      0,
    )
    await closed
    const lost = [
      { keyId: 'large', day: '2026-11-21', units: 10 },
      { keyId: 'middle', day: '2026-11-21', units: 1 },
    ]
    t.strictSame(scene.lost, comesBack ? [] : lost)
    t.equal(await scene.usedOn('large 2026-11-21'), comesBack ? 11 : 1)
  }
})
