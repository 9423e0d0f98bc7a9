// The meter over an unreliable store: exact limits while the store is healthy, local allowances in an outage, and exact counts
// afterwards. Random schedules of requests, faults and time are played against several instances.

import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { createMeter, type KnownUsage, type LostUnits } from '../../src/keys/meter.ts'
import { allowanceOf, type QuotaDecision, reconcileForMs } from '../../src/keys/outage.ts'
import { localDays } from '../../src/keys/window.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { StoreError } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'
import { type Fate, unreliable } from './unreliable-store.ts'

const calendar = createCalendar('Asia/Dhaka')

// Several meters on one store, each an instance, with their requests and decisions.
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
  let admittedLocally = 0
  const meters = Array.from({ length: instances }, () =>
    createMeter({
      store,
      whenStoreIsDown,
      instances: () => instances,
      // Kept longer than the clock jumps.
      windows: localDays(calendar, 86_400_000 * 400),
      keepUsageForMs: 86_400_000 * 400,
      clock,
      observer: {
        storeAway: () => {},
        storeBack: units => {
          admittedLocally += units
        },
        unitsLost: each => lost.push(...each),
        nearLimit: event => near.push(event),
      },
    }),
  )
  const requested = new Map<string, number>()
  const decisions = new Map<string, QuotaDecision[]>()
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
    requested,
    decisions,
    refused,
    /** Units that were admitted locally and have been reported to the store. */
    admittedLocally: () => admittedLocally,
    request: (instance: number, keyId: string): void => {
      const name = `${keyId} ${calendar.dayOf(clock.now())}`
      requested.set(name, (requested.get(name) ?? 0) + 1)
      const answer = (meters[instance % instances] ?? meters[0])
        ?.consume({ keyId, limit: limits[keyId] ?? 0 }, clock.now())
        .then(
          decision => {
            add(decisions, name, decision)
          },
          error => {
            if (!(error instanceof StoreError)) throw error
            refused.push(error)
          },
        )
        .finally(() => underWay.delete(answer as Promise<void>))
      underWay.add(answer as Promise<void>)
    },
    // The timers of every instance fire at most half a second apart.
    pass: async (ms: number): Promise<void> => {
      for (let left = ms; left > 0; left -= 500) {
        clock.advance(Math.min(500, left))
        const probes = Promise.all(meters.map(meter => meter.probe()))
        let done = false
        void probes.then(() => {
          done = true
        })
        await until('all have probed', async () => done || (await store.decide(0, 'answered')), 60_000, 0)
      }
    },
    finish: async (): Promise<void> => {
      const isOver = () => underWay.size === 0 && store.inFlight() === 0
      await until('all is answered', async () => isOver() || (await store.decide(0, 'answered')), 60_000, 0)
    },
    admitted: (name: string) => (decisions.get(name) ?? []).filter(({ allowed }) => allowed).length,
    usedOn: async (name: string) => {
      const [keyId = '', day = ''] = name.split(' ')
      return (await real.usedOn(keyId, [day]))[0]
    },
  }
}

const limits = { small: 5, middle: 40, large: 900 }
// High limits, so that units are left when an outage comes.
const roomy = { small: 20, middle: 300, large: 9_000, unseen: 400 }
const fates = fc.constantFrom<Fate[]>('answered', 'lost', 'unanswered', 'late')
type Step =
  | { do: 'request'; instance: number; key: string; times: number }
  | { do: 'decide'; which: number; fate: Fate }
  | { do: 'land'; which: number }
  | { do: 'down'; fate: Fate }
  | { do: 'up' }
  | { do: 'loseMessages' }
  | { do: 'pass'; ms: number }
  | { do: 'jump'; days: number }
const requesting = fc.record({
  do: fc.constant('request' as const),
  instance: fc.nat(2),
  key: fc.constantFrom(...Object.keys(roomy)),
  times: fc.integer({ min: 1, max: 90 }),
})
const passing = fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(100, 700, 2_500, 61_000) })
const jumping = fc.record({ do: fc.constant('jump' as const), days: fc.constantFrom(-2, -1, 1, 2) })
const deciding = fc.record({ do: fc.constant('decide' as const), which: fc.nat(3), fate: fates })
const anything: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: requesting },
  { weight: 5, arbitrary: deciding },
  { weight: 2, arbitrary: passing },
  { weight: 1, arbitrary: jumping },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('loseMessages' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('land' as const), which: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('down' as const), fate: fates }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('up' as const) }) },
)
const healthy: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: requesting },
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
  // Every instance has used every key but one.
  for (const key of Object.keys(limits)) for (const instance of [0, 1, 2]) scene.request(instance, key)
  await turn()
  await scene.finish()
  for (const step of steps) {
    if (step.do === 'request') for (let i = 0; i < step.times; i++) scene.request(step.instance, step.key)
    else if (step.do === 'decide') await scene.store.decide(step.which, step.fate)
    else if (step.do === 'land') await scene.store.land(step.which)
    else if (step.do === 'down') await scene.store.down(step.fate)
    else if (step.do === 'up') scene.store.up()
    else if (step.do === 'loseMessages') scene.store.loseMessages()
    else if (step.do === 'jump') scene.clock.advance(step.days * 86_400_000)
    else await scene.pass(step.ms)
    await turn()
  }
  scene.store.up()
  await scene.finish()
  await scene.pass(reconcileForMs * 3)
  await scene.finish()
  return scene
}

// A batch under way when messages are lost is counted afterwards; then the store is away.
const countedAfterTheLoss: Step[] = [
  { do: 'request', instance: 0, key: 'small', times: 16 },
  // One more turn of the event loop, in which the batch is sent.
  { do: 'up' },
  { do: 'loseMessages' },
  { do: 'request', instance: 1, key: 'small', times: 2 },
  { do: 'down', fate: 'answered' },
]
// An instance admits locally what it has an allowance for, far more than these.
const admittedInAnOutage: Step[] = [
  { do: 'down', fate: 'lost' },
  { do: 'request', instance: 0, key: 'middle', times: 60 },
  { do: 'request', instance: 1, key: 'large', times: 60 },
]

// Three quotas of one day and one of the next, by all instances.
const exhaustedOnTwoDays: Step[] = [
  { do: 'request', instance: 0, key: 'small', times: 40 },
  ...[0, 1, 2, 0].map(instance => ({ do: 'request' as const, instance, key: 'middle', times: 90 })),
  ...[2, 1, 0, 2, 1].map(instance => ({ do: 'request' as const, instance, key: 'unseen', times: 90 })),
  { do: 'jump', days: 1 },
  { do: 'request', instance: 1, key: 'small', times: 12 },
  { do: 'request', instance: 2, key: 'small', times: 12 },
]

t.test('whatever happens, nobody gets more than the limit, and the counts are right afterwards', async t => {
  let admittedLocally = 0
  await fc.assert(
    fc.asyncProperty(fc.array(anything, { maxLength: 40 }), async steps => {
      const scene = await play(steps)
      for (const [name] of scene.requested) {
        const limit = roomy[name.split(' ')[0] as keyof typeof roomy]
        const admitted = scene.admitted(name)
        if (admitted > limit) throw new Error(`${admitted} of ${limit} for ${name}`)
        const counted = await scene.usedOn(name)
        if (counted !== admitted) throw new Error(`${admitted} admitted, ${counted} counted for ${name}`)
      }
      admittedLocally += scene.admittedLocally()
      await scene.real.close()
    }),
    { numRuns: 200, examples: [[countedAfterTheLoss], [admittedInAnOutage]] },
  )
  t.ok(admittedLocally >= 120, `${admittedLocally} units were admitted locally`)
})

t.test('while the store is healthy exactly the limit is decisions, and each count once', async t => {
  let exhausted = 0
  await fc.assert(
    fc.asyncProperty(fc.array(healthy, { maxLength: 40 }), async steps => {
      const scene = await play(steps)
      for (const [name, requested] of scene.requested) {
        const limit = roomy[name.split(' ')[0] as keyof typeof roomy]
        const expected = Math.min(limit, requested)
        const remaining = (scene.decisions.get(name) ?? []).flatMap(({ allowed, remaining }) =>
          allowed ? [remaining] : [],
        )
        const counts = remaining.sort((a, b) => b - a)
        const right = Array.from({ length: expected }, (_, i) => limit - 1 - i)
        if (counts.join() !== right.join()) throw new Error(`${name}: ${counts} and not ${right}`)
        if (requested > limit) exhausted += 1
      }
      if (scene.refused.length > 0) throw new Error('a healthy store refused')
      await scene.real.close()
    }),
    { numRuns: 120, examples: [[exhaustedOnTwoDays]] },
  )
  t.ok(exhausted >= 4, `${exhausted} quotas were exhausted`)
  t.pass('each of them exactly')
})

t.test('requests that arrive while a batch is in flight share the next one', async t => {
  const scene = setUp(1, limits)
  for (let i = 0; i < 100; i++) scene.request(0, i % 2 ? 'large' : 'middle')
  await turn()
  t.equal(scene.store.inFlight(), 1, 'one batch for all requests of one turn')
  for (let i = 0; i < 200; i++) scene.request(0, 'large')
  await turn()
  t.equal(scene.store.inFlight(), 1, 'and one at a time')
  await scene.store.decide(0, 'answered')
  await turn()
  t.equal(scene.store.inFlight(), 1)
  await scene.store.decide(0, 'answered')
  await turn()
  t.equal(scene.admitted('large 2026-11-21'), 250)
  t.equal(scene.admitted('middle 2026-11-21'), 40)
  const order = (scene.decisions.get('large 2026-11-21') ?? []).map(({ remaining }) => remaining)
  t.strictSame(
    order,
    Array.from({ length: 250 }, (_, i) => 899 - i),
    'in order of arrival',
  )
})

t.test('few requests of turns that follow each other share a batch', async t => {
  // A batch grows for a millisecond at most (batch-growth.test.ts), and a turn of a busy machine may take longer.
  const stopped = performance.now()
  t.intercept(performance, 'now', { value: () => stopped })
  const scene = setUp(1, limits)
  const inFlightAfter = async (requests: readonly number[]): Promise<number[]> => {
    const inFlight: number[] = []
    for (const many of requests) {
      for (let i = 0; i < many; i++) scene.request(0, 'large')
      await turn()
      inFlight.push(scene.store.inFlight())
    }
    await scene.store.decide(0, 'answered')
    await turn()
    return inFlight
  }
  t.strictSame(await inFlightAfter([1, 0]), [0, 1], 'sent after the first turn that brings none')
  t.strictSame(await inFlightAfter([1, 1, 1, 0]), [0, 0, 0, 1])
  t.strictSame(
    await inFlightAfter(Array(17).fill(1)),
    [...Array(15).fill(0), 1, 1],
    'and after sixteen in any case',
  )
  await turn()
  await turn()
  await scene.store.decide(0, 'answered')
  t.strictSame(await inFlightAfter([1, 31]), [0, 1], 'or once they are many')
  t.strictSame(await inFlightAfter([32]), [1])
  await scene.finish()
  t.equal(scene.admitted('large 2026-11-21'), 85)
})

t.test('a limit that is lowered while a batch is in flight leaves no negative rest', async t => {
  const tiers = { ...limits }
  const scene = setUp(1, tiers)
  for (let i = 0; i < 500; i++) scene.request(0, 'large')
  await turn()
  await turn()
  t.equal(scene.store.inFlight(), 1)
  tiers.large = 100
  for (let i = 0; i < 3; i++) scene.request(0, 'large')
  await turn()
  await scene.store.decide(0, 'answered')
  await turn()
  await scene.finish()
  const decisions = scene.decisions.get('large 2026-11-21') ?? []
  t.strictSame(
    decisions.map(({ remaining }) => remaining),
    [...Array.from({ length: 500 }, (_, i) => 899 - i), 0, 0, 0],
    'the limit of a batch is that of its requests',
  )
  t.strictSame(new Set(decisions.slice(500).map(({ allowed }) => allowed)), new Set([false]))
})

t.test(
  'a batch whose reply was lost is sent again while the store answers, and nothing is counted twice',
  async t => {
    const scene = setUp(2, limits)
    for (let i = 0; i < 10; i++) scene.request(0, 'middle')
    await turn()
    await scene.store.decide(0, 'unanswered')
    for (let i = 0; i < 3; i++) await turn()
    t.equal(scene.store.inFlight(), 1, 'the same batch again')
    await scene.finish()
    t.equal(scene.admitted('middle 2026-11-21'), 10)
    t.equal(await scene.usedOn('middle 2026-11-21'), 10)
    t.equal(scene.meters[0]?.state(), 'counting')
  },
)

t.test(
  'in an outage the local allowance is admitted, then reconciled, and the rest of the quota is left',
  async t => {
    const scene = setUp(3, limits)
    for (const instance of [0, 1, 2]) scene.request(instance, 'large')
    await turn()
    await scene.finish()
    await scene.store.down('lost')
    for (let i = 0; i < 1_000; i++) for (const instance of [0, 1]) scene.request(instance, 'large')
    for (let i = 0; i < 5; i++) await turn()
    const allowance = allowanceOf(900, 3, 3)
    t.ok(allowance > 280 && allowance < 300, `an allowance is ${allowance}`)
    const admitted = scene.admitted('large 2026-11-21') - 3
    t.ok(
      admitted >= 2 * allowance - 4 && admitted <= 2 * allowance,
      `${admitted} admitted by two of three instances`,
    )
    t.equal(
      scene.refused.length,
      2_000 - admitted,
      'the others are errors: nobody knows that the quota is exhausted',
    )
    t.equal(scene.meters[0]?.state(), 'away')

    scene.store.up()
    await scene.pass(500)
    t.equal(scene.meters[0]?.state(), 'reconciling')
    t.equal(await scene.usedOn('large 2026-11-21'), 3 + admitted)
    scene.request(2, 'large')
    await turn()
    await scene.finish()
    t.equal(
      scene.admitted('large 2026-11-21'),
      4 + admitted,
      'an instance that has not spent its allowance goes on',
    )
    await scene.pass(reconcileForMs)
    t.equal(scene.meters[0]?.state(), 'counting')
    for (let i = 0; i < 900; i++) scene.request(0, 'large')
    await turn()
    await scene.finish()
    t.equal(scene.admitted('large 2026-11-21'), 900)
    t.equal(await scene.usedOn('large 2026-11-21'), 900)
  },
)

t.test('a clock that is set back while counts are reconciled does not prolong it', async t => {
  const scene = setUp(1, limits)
  scene.request(0, 'large')
  await turn()
  await scene.finish()
  await scene.store.down('lost')
  scene.request(0, 'large')
  await turn()
  scene.store.up()
  await scene.pass(500)
  t.equal(scene.meters[0]?.state(), 'reconciling')
  scene.clock.advance(-3_600_000)
  await scene.pass(reconcileForMs)
  t.equal(scene.meters[0]?.state(), 'counting')
})

t.test('a day that begins during an outage has its local allowance too', async t => {
  const scene = setUp(2, limits)
  scene.request(0, 'large')
  await turn()
  await scene.finish()
  await scene.store.down('lost')
  scene.request(0, 'large')
  for (let i = 0; i < 3; i++) await turn()
  await scene.pass(61_000)
  for (let i = 0; i < 900; i++) scene.request(0, 'large')
  for (let i = 0; i < 3; i++) await turn()
  t.equal(scene.admitted('large 2026-11-22'), allowanceOf(900, 0, 2))
})

t.test('an exhausted quota stays a 429 in an outage, an unknown key is an error', async t => {
  const scene = setUp(1, limits)
  for (let i = 0; i < 6; i++) scene.request(0, 'small')
  await turn()
  await scene.finish()
  await scene.store.down('lost')
  scene.request(0, 'small')
  scene.request(0, 'middle')
  for (let i = 0; i < 3; i++) await turn()
  t.strictSame(scene.decisions.get('small 2026-11-21')?.at(-1), { allowed: false, remaining: 0 })
  t.equal(scene.refused.length, 1)
})

t.test(
  'with `refuse` nothing is admitted locally, and counting goes on as soon as the store is back',
  async t => {
    const scene = setUp(2, limits, 'refuse')
    for (const instance of [0, 1]) scene.request(instance, 'large')
    for (let i = 0; i < 5; i++) scene.request(0, 'small')
    await turn()
    await scene.finish()
    await scene.store.down('lost')
    for (let i = 0; i < 10; i++) for (const instance of [0, 1]) scene.request(instance, 'large')
    scene.request(0, 'small')
    for (let i = 0; i < 5; i++) await turn()
    t.equal(scene.refused.length, 20)
    t.strictSame(
      scene.decisions.get('small 2026-11-21')?.at(-1),
      { allowed: false, remaining: 0 },
      'known as exhausted',
    )
    t.equal(scene.meters[0]?.state(), 'away')
    scene.store.up()
    await scene.pass(500)
    t.equal(scene.meters[0]?.state(), 'counting', 'there is nothing to reconcile')
    for (let i = 0; i < 1_000; i++) scene.request(i, 'large')
    await turn()
    await scene.finish()
    t.equal(scene.admitted('large 2026-11-21'), 900)
    t.equal(await scene.usedOn('large 2026-11-21'), 900)
    t.equal(scene.admittedLocally(), 0)
  },
)

t.test('with `refuse` lost messages change nothing', async t => {
  const scene = setUp(2, limits, 'refuse')
  scene.request(0, 'large')
  await turn()
  await scene.finish()
  await scene.store.down('lost')
  scene.store.up()
  t.equal(scene.meters[0]?.state(), 'counting')
})

t.test(
  'after lost messages an instance reads a count unknown to it, and admits its allowance of that',
  async t => {
    const scene = setUp(3, limits)
    for (const instance of [0, 1, 2]) scene.request(instance, 'middle')
    await turn()
    await scene.finish()
    scene.store.loseMessages()
    for (const instance of [0, 1, 2]) for (let i = 0; i < 900; i++) scene.request(instance, 'large')
    await turn()
    await scene.finish()
    // The first instance to request had the largest allowance.
    const decisions = scene.admitted('large 2026-11-21')
    t.ok(decisions > allowanceOf(900, 0, 3) && decisions <= 3 * allowanceOf(900, 0, 3), `${decisions} of 900`)
    t.equal(scene.meters[0]?.state(), 'reconciling')
    await scene.pass(reconcileForMs + 1_000)
    for (let i = 0; i < 900; i++) scene.request(i, 'large')
    await turn()
    await scene.finish()
    t.equal(scene.admitted('large 2026-11-21'), 900)
    t.equal(await scene.usedOn('large 2026-11-21'), 900)
  },
)

t.test('without messages the counts of others are read, once a second, and bound the allowances', async t => {
  const scene = setUp(2, limits)
  scene.store.mute()
  const request = async (instance: number, times: number) => {
    for (let i = 0; i < times; i++) scene.request(instance, 'large')
    await turn()
    await turn()
    if (scene.store.inFlight() > 0) await scene.finish()
  }
  await request(0, 1)
  await request(1, 800)
  const known = async () => {
    for await (const [each] of scene.meters[0]?.usageAt(scene.clock.now()) ?? []) return each?.used
    return undefined
  }
  t.equal(await known(), 1)
  await until('the count of the other is read', async () => {
    await scene.pass(500)
    return (await known()) === 801
  })
  t.equal(scene.meters[0]?.state(), 'counting', 'without a pause')
  await scene.store.down('lost')
  await request(0, 200)
  t.equal(scene.admitted('large 2026-11-21') - 801, allowanceOf(900, 801, 2))
  scene.store.up()
  await scene.pass(reconcileForMs + 1_000)
  t.equal(await scene.usedOn('large 2026-11-21'), scene.admitted('large 2026-11-21'))
})

t.test('80 and 100 per cent are observed once a day, by the instance that reaches them', async t => {
  const scene = setUp(3, limits)
  for (let i = 0; i < 60; i++) {
    scene.request(i, 'middle')
    await turn()
    await scene.finish()
  }
  t.match(scene.near, [
    { keyId: 'middle', day: '2026-11-21', limit: 40, percent: 80, used: 32 },
    { percent: 100, used: 40 },
  ])
  t.equal(scene.near.length, 2)
})

t.test(
  'units admitted locally are counted as reconciled once, however often the store failed before',
  async t => {
    const scene = setUp(1, limits)
    scene.request(0, 'large')
    await turn()
    await scene.finish()
    await scene.store.down('lost')
    for (let i = 0; i < 10; i++) scene.request(0, 'large')
    for (let i = 0; i < 3; i++) await turn()
    t.equal(scene.admitted('large 2026-11-21'), 11)
    for (let probe = 0; probe < 20; probe++) await scene.pass(500)
    scene.store.up()
    await scene.pass(reconcileForMs + 1_000)
    t.equal(scene.meters[0]?.state(), 'counting')
    t.equal(await scene.usedOn('large 2026-11-21'), 11)
    t.equal(scene.admittedLocally(), 10)
  },
)

t.test('a clock that jumps two days ahead and back loses no unit', async t => {
  const scene = setUp(2, limits)
  for (let i = 0; i < 300; i++) scene.request(i, 'large')
  await turn()
  await scene.finish()
  for (let jump = 1; jump <= 3; jump++) {
    scene.clock.advance(2 * 86_400_000)
    await scene.pass(500)
    for (let i = 0; i < 10; i++) scene.request(i, 'large')
    await turn()
    await scene.finish()
    scene.clock.advance(-2 * 86_400_000 - 500)
    await scene.pass(500)
    scene.clock.advance(-500)
    for (let i = 0; i < 20; i++) scene.request(i, 'large')
    await turn()
    await scene.finish()
    t.equal(scene.admitted('large 2026-11-21'), 300 + jump * 20)
    t.equal(await scene.usedOn('large 2026-11-21'), 300 + jump * 20)
    t.equal(await scene.usedOn('large 2026-11-23'), jump * 10)
  }
  for (let i = 0; i < 900; i++) scene.request(i, 'large')
  await turn()
  await scene.finish()
  t.equal(scene.admitted('large 2026-11-21'), 900, 'and the limit holds')
})

t.test(
  'units admitted locally before the clock jumped ahead are reported, although the store was away',
  async t => {
    const scene = setUp(2, limits)
    for (let i = 0; i < 100; i++) scene.request(i, 'large')
    await turn()
    await scene.finish()
    await scene.store.down('lost')
    for (let i = 0; i < 40; i++) scene.request(i, 'large')
    for (let i = 0; i < 3; i++) await turn()
    scene.clock.advance(2 * 86_400_000)
    await scene.pass(500)
    scene.clock.advance(-2 * 86_400_000 - 500)
    await scene.pass(500)
    scene.clock.advance(-500)
    for (let i = 0; i < 40; i++) scene.request(i, 'large')
    for (let i = 0; i < 3; i++) await turn()
    t.equal(scene.refused.length, 0, 'allowances go on where they were')
    t.equal(scene.admitted('large 2026-11-21'), 180)
    scene.store.up()
    await scene.pass(reconcileForMs + 1_000)
    t.equal(await scene.usedOn('large 2026-11-21'), 180)
  },
)

t.test('a day that was counted already before a jump back does not restart in an outage', async t => {
  const scene = setUp(1, limits)
  const requestMany = async (times: number) => {
    for (let i = 0; i < times; i++) scene.request(0, 'large')
    for (let i = 0; i < 3; i++) await turn()
    if (scene.store.inFlight() > 0) await scene.finish()
  }
  await requestMany(1)
  scene.clock.advance(2 * 86_400_000)
  await requestMany(500)
  scene.clock.advance(2 * 86_400_000)
  await scene.pass(500)
  scene.clock.set('2026-11-21T17:59:00Z')
  await requestMany(1)
  await scene.store.down('lost')
  await requestMany(1)
  scene.clock.advance(2 * 86_400_000)
  await requestMany(900)
  t.ok(scene.admitted('large 2026-11-23') <= 900, `${scene.admitted('large 2026-11-23')} of 900`)
  scene.store.up()
  await scene.pass(reconcileForMs + 1_000)
  t.equal(await scene.usedOn('large 2026-11-23'), scene.admitted('large 2026-11-23'))
})

t.test('units admitted locally are reported on close, or else listed as lost', async t => {
  for (const comesBack of [true, false]) {
    const scene = setUp(1, limits)
    for (const key of ['large', 'middle']) scene.request(0, key)
    await turn()
    await scene.finish()
    await scene.store.down('lost')
    for (let i = 0; i < 10; i++) scene.request(0, 'large')
    scene.request(0, 'middle')
    for (let i = 0; i < 3; i++) await turn()
    let isClosed = false
    const closed = scene.meters[0]?.close().then(() => {
      isClosed = true
    })
    // One probe has failed.
    for (let i = 0; i < 10; i++) await turn()
    t.notOk(isClosed, 'it waits')
    if (comesBack) scene.store.up()
    await until(
      'the meter is closed',
      async () => isClosed || (await scene.store.decide(0, 'answered')),
      60_000,
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

t.test('a day is dropped from the store once, an hour after its end, and again when that failed', async t => {
  const clock = manualClock('2026-11-21T18:59:59Z')
  const real = openEmbeddedStore(':memory:', clock)
  const dropped: string[] = []
  let fails = true
  const meter = createMeter({
    store: {
      ...real,
      dropDays: async ({ countsBefore, sumsBefore }) => {
        dropped.push(`${countsBefore} ${sumsBefore}`)
        if (fails) throw new StoreError('away')
      },
    },
    whenStoreIsDown: 'refuse',
    instances: () => 1,
    windows: localDays(calendar, 86_400_000 * 2),
    keepUsageForMs: 86_400_000 * 2,
    clock,
    observer: { storeAway: () => {}, storeBack: () => {}, unitsLost: () => {}, nearLimit: () => {} },
  })
  t.teardown(() => real.close())
  for (let i = 0; i < 2; i++) await meter.probe()
  t.strictSame(dropped, ['2026-11-21 2026-11-20', '2026-11-21 2026-11-20'], 'it tries again')
  fails = false
  for (let i = 0; i < 3; i++) await meter.probe()
  t.equal(dropped.length, 3)
  clock.advance(1_000)
  for (let i = 0; i < 3; i++) await meter.probe()
  t.strictSame(dropped.slice(3), ['2026-11-22 2026-11-20'])
})

t.test('very many counts are listed and forgotten some at a time', async t => {
  const clock = manualClock('2026-11-21T12:00:00Z')
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const quiet = { storeAway: () => {}, storeBack: () => {}, unitsLost: () => {}, nearLimit: () => {} }
  const meter = createMeter({
    store,
    whenStoreIsDown: 'share',
    instances: () => 1,
    windows: localDays(calendar, 86_400_000),
    keepUsageForMs: 86_400_000,
    clock,
    observer: quiet,
  })
  const [keys, day] = [5_000, clock.now()]
  await Promise.all(
    Array.from({ length: keys }, (_, i) => meter.consume({ keyId: `key_${i}`, limit: 9 }, day)),
  )
  const listed = async () => {
    const parts: { keyIds: string[]; turn: number }[] = []
    const turns = countTurns(t)
    for await (const part of meter.usageAt(day))
      parts.push({ keyIds: part.map(({ keyId }) => keyId), turn: turns() })
    return parts
  }
  const parts = await listed()
  t.strictSame(
    parts.map(({ keyIds }) => keyIds.length),
    [2_000, 2_000, 1_000],
  )
  t.equal(new Set(parts.flatMap(({ keyIds }) => keyIds)).size, keys)
  t.equal(new Set(parts.map(({ turn }) => turn)).size, 3, 'in a turn of the event loop each')

  const left = async () => (await listed()).flatMap(({ keyIds }) => keyIds)
  clock.set(calendar.nextMidnight(day) + 3_599_999)
  await meter.probe()
  t.equal((await left()).length, keys, 'none before an hour has passed')
  clock.advance(1)
  // The first to be visited has a request under way: it stays, and the others go.
  const [first = ''] = parts[0]?.keyIds ?? []
  const late = meter.consume({ keyId: first, limit: 9 }, day)
  await meter.probe()
  t.equal((await left()).length, 3_001)
  t.match(await late, { allowed: true, remaining: 7 })
  await meter.probe()
  t.equal((await left()).length, 1_001)
  await meter.probe()
  t.strictSame(await left(), [first])
  await meter.probe()
  t.strictSame(await left(), [])
  t.match(await store.usedOn(first, ['2026-11-21']), [2])
})

/** Returns how many turns of the event loop have ended since. */
const countTurns = (t: Test): (() => number) => {
  let turns = 0
  let next = setImmediate(function count() {
    turns += 1
    next = setImmediate(count)
  })
  t.teardown(() => clearImmediate(next))
  return () => turns
}

t.test('usage is what the fleet has used of a day, as far as it is known', async t => {
  const scene = setUp(2, limits)
  const usedBy = async (instance: number, at: number) => {
    const all: KnownUsage[] = []
    for await (const part of scene.meters[instance]?.usageAt(at) ?? []) all.push(...part)
    return all
  }
  const [today, tomorrow] = [scene.clock.now(), scene.clock.now() + 86_400_000]
  for (const [instance, times] of [30, 20].entries()) {
    for (let i = 0; i < times; i++) scene.request(instance, 'large')
    await turn()
    await scene.finish()
  }
  for (const instance of [0, 1])
    t.strictSame(await usedBy(instance, today), [{ keyId: 'large', used: 50, limit: 900 }])
  t.strictSame(await usedBy(0, tomorrow), [])
  await scene.store.down('lost')
  for (let i = 0; i < 5; i++) scene.request(0, 'large')
  await turn()
  await scene.finish()
  t.match(await usedBy(0, today), [{ used: 55 }], 'with what was admitted without the store')
})

// Counts the members that Maps hand out in each turn of the event loop: the collections that the meter walks over are Maps.
const watchWalks = (t: Test) => {
  const iterator = Object.getPrototypeOf(new Map().values()) as { next: () => IteratorResult<unknown> }
  const { next } = iterator
  const walks = { total: 0, maxInOneTurn: 0 }
  let inThisTurn = 0
  const endTurn = (): void => {
    walks.total += inThisTurn
    walks.maxInOneTurn = Math.max(walks.maxInOneTurn, inThisTurn)
    inThisTurn = 0
  }
  iterator.next = function () {
    // Ahead of what the walk itself leaves for the next turn.
    if (inThisTurn === 0) setImmediate(endTurn)
    inThisTurn += 1
    return next.call(this)
  }
  t.teardown(() => {
    iterator.next = next
  })
  return walks
}

for (const isBack of [true, false])
  t.test(
    `very many counts are ${isBack ? 'reported' : 'listed as lost'} on close some at a time`,
    async t => {
      const clock = manualClock('2026-11-21T12:00:00Z')
      const real = openEmbeddedStore(':memory:', clock)
      t.teardown(() => real.close())
      let isAway = true
      let reported = 0
      let lost: readonly LostUnits[] = []
      const meter = createMeter({
        store: {
          ...real,
          commit: async batch => {
            if (isAway) throw new StoreError('away')
            for (const { admitted } of batch.entries) reported += admitted
            return real.commit(batch)
          },
        },
        whenStoreIsDown: 'share',
        instances: () => 1,
        windows: localDays(calendar, 86_400_000),
        keepUsageForMs: 86_400_000,
        clock,
        observer: {
          storeAway: () => {},
          storeBack: () => {},
          unitsLost: units => {
            lost = units
          },
          nearLimit: () => {},
        },
      })
      await t.rejects(meter.consume({ keyId: 'before', limit: 9 }, clock.now()))
      // A day that begins while the store is away has its local allowance.
      clock.set(calendar.nextMidnight(clock.now()) + 1)
      const keys = isBack ? 200_000 : 20_000
      const decisions = await Promise.all(
        Array.from({ length: keys }, (_, i) => meter.consume({ keyId: `key_${i}`, limit: 9 }, clock.now())),
      )
      t.ok(decisions.every(({ allowed }) => allowed))
      isAway = !isBack
      const walks = watchWalks(t)
      await meter.close()
      await turn()
      t.strictSame([reported, lost.length], isBack ? [keys, 0] : [0, keys])
      t.ok(walks.total >= keys, `${walks.total} in all`)
      // Of 2,000 a turn takes some ms.
      t.ok(walks.maxInOneTurn <= 2_100, `${walks.maxInOneTurn} in one turn`)
    },
  )
