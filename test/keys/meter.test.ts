// Without it a key could get more than its limit, or lose units, when the store is away or the clock jumps.

import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { QuotaDecision } from '../../src/keys/count.ts'
import { allowanceOf } from '../../src/keys/local-allowance.ts'
import type { KnownUsage, LostUnits } from '../../src/keys/meter.ts'
import { reconcileForMs } from '../../src/keys/reconciliation.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { StoreError } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'
import { calendar, consume, meterOn, newCount, oneCount, storeInMemory } from './meters.ts'
import { type Fate, unreliable } from './unreliable-store.ts'

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
    meterOn(store, clock, {
      whenStoreIsDown,
      instances: () => instances,
      // Kept longer than the clock jumps.
      keepUsageForMs: 86_400_000 * 400,
      observer: {
        storeBack: units => {
          admittedLocally += units
        },
        unitsLost: each => lost.push(...each),
        nearLimit: event => near.push(event),
      },
    }),
  )
  const requested = new Map<string, number>()
  const decisions = new Map<string, (QuotaDecision & { readonly units: number })[]>()
  const refused: unknown[] = []
  const underWay = new Set<Promise<unknown>>()
  const decided = (name: string, decision: QuotaDecision & { readonly units: number }): void => {
    const before = decisions.get(name)
    if (before) before.push(decision)
    else decisions.set(name, [decision])
  }

  const request = (instance: number, keyId: string, units = 1, isReturned = false): void => {
    const name = `${keyId} ${calendar.dayOf(clock.now())}`
    requested.set(name, (requested.get(name) ?? 0) + units)
    const meter = meters[instance % instances] ?? meters[0]
    if (!meter) return
    const client = { keyId, limit: limits[keyId] ?? 0 }
    const arrivedAt = clock.now()
    const answer = consume(meter, client, arrivedAt, units)
      .then(
        decision => {
          const returned = isReturned && decision.allowed ? meter.refund(client, arrivedAt, units) : 0
          decided(name, { ...decision, units: units - returned })
        },
        error => {
          if (!(error instanceof StoreError)) throw error
          refused.push(error)
        },
      )
      .finally(() => underWay.delete(answer))
    underWay.add(answer)
  }
  const finish = async (): Promise<void> => {
    const isOver = () => underWay.size === 0 && store.inFlight() === 0
    await until('all is answered', async () => isOver() || (await store.decide(0, 'answered')), {
      everyMs: 0,
    })
  }
  /** Sends requests to one instance, or to all in turn, and waits for their decisions. */
  const ask = async (to: number | 'all', keyId: string, times: number): Promise<void> => {
    for (let i = 0; i < times; i++) request(to === 'all' ? i : to, keyId)
    await turn()
    await finish()
  }
  return {
    ...{ clock, real, store, meters, near, lost, requested, decisions, refused, request, finish, ask },
    /** Units that were admitted locally and have been reported to the store. */
    admittedLocally: () => admittedLocally,
    // The timers of every instance fire at most half a second apart.
    pass: async (ms: number): Promise<void> => {
      for (let left = ms; left > 0; left -= 500) {
        clock.advance(Math.min(500, left))
        const probes = Promise.all(meters.map(meter => meter.probe()))
        let done = false
        void probes.then(() => {
          done = true
        })
        await until('all have probed', async () => done || (await store.decide(0, 'answered')), {
          everyMs: 0,
        })
      }
    },
    /** Units. */
    admitted: (name: string) =>
      (decisions.get(name) ?? []).reduce((sum, { allowed, units }) => sum + (allowed ? units : 0), 0),
    usedOn: async (name: string) => {
      const [keyId = '', day = ''] = name.split(' ')
      return (await real.usedOn(keyId, [day]))[0]
    },
    state: () => meters[0]?.state(),
  }
}

const limits = { small: 5, middle: 40, large: 900 }
// High limits, so that units are left when an outage comes.
const roomy = { small: 20, middle: 300, large: 9_000, unseen: 400 }
const fates = fc.constantFrom<Fate[]>('answered', 'lost', 'unanswered', 'late')
type Step =
  | { do: 'request'; instance: number; key: string; times: number; units?: number; isReturned?: boolean }
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
  units: fc.constantFrom(1, 1, 1, 0, 2, 7, 100),
})
const passing = fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(100, 700, 2_500, 61_000) })
const jumping = fc.record({ do: fc.constant('jump' as const), days: fc.constantFrom(-2, -1, 1, 2) })
const deciding = fc.record({ do: fc.constant('decide' as const), which: fc.nat(3), fate: fates })
const anything: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: requesting },
  { weight: 2, arbitrary: requesting.map(step => ({ ...step, isReturned: true })) },
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
  { weight: 4, arbitrary: deciding.map(step => ({ ...step, fate: 'answered' as const })) },
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
    if (step.do === 'request')
      for (let i = 0; i < step.times; i++) scene.request(step.instance, step.key, step.units, step.isReturned)
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

const sends = (instance: number, key: string, times: number): Step => ({
  do: 'request',
  instance,
  key,
  times,
})
const eachSends = (times: number) => [0, 1, 2].map(instance => sends(instance, 'large', times))
const [up, down]: [Step, Step] = [{ do: 'up' }, { do: 'down', fate: 'lost' }]
const probe: Step = { do: 'pass', ms: 700 }
const jump = (days: number): Step => ({ do: 'jump', days })
// Cases that chance may miss.
const examples: Step[][] = [
  // A batch under way when messages are lost is counted afterwards; then the store is away.
  [
    sends(0, 'small', 16),
    // One more turn of the event loop, in which the batch is sent.
    ...[up, { do: 'loseMessages' } as const, sends(1, 'small', 2), { do: 'down', fate: 'answered' } as const],
  ],
  // An instance admits locally what it has an allowance for, far more than these.
  [down, sends(0, 'middle', 60), sends(1, 'large', 60)],
  // A clock that jumps two days ahead and back.
  [
    ...eachSends(300),
    ...[1, 2, 3].flatMap(() => [jump(2), probe, ...eachSends(10), jump(-2), probe, ...eachSends(20)]),
    ...eachSends(9_000),
  ],
  // The same while the store is away.
  [...eachSends(100), down, ...eachSends(40), jump(2), probe, jump(-2), probe, ...eachSends(40), up, probe],
  // A day that was counted already before a jump back does not restart in an outage.
  [
    ...[jump(2), ...eachSends(1_700), jump(2), probe, jump(-4), ...eachSends(1), down],
    ...[...eachSends(1), jump(2), ...eachSends(9_000)],
  ],
]
// Three quotas of one day and one of the next, by all instances.
const exhaustedOnTwoDays: Step[] = [
  sends(0, 'small', 40),
  ...[0, 1, 2, 0].map(instance => sends(instance, 'middle', 90)),
  ...[2, 1, 0, 2, 1].map(instance => sends(instance, 'unseen', 90)),
  ...[jump(1), sends(1, 'small', 12), sends(2, 'small', 12)],
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
    { numRuns: 200, examples: examples.map(steps => [steps]) },
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
        const decided = scene.decisions.get(name) ?? []
        // Each takes its units from where the one before left off.
        const granted = decided.filter(({ allowed, units }) => allowed && units > 0)
        const counts = granted.toSorted((a, b) => b.remaining - a.remaining)
        let left = limit
        for (const { units, remaining } of counts) {
          left -= units
          if (remaining !== left) throw new Error(`${name}: ${remaining} left and not ${left}`)
        }
        const refused = decided.filter(({ allowed }) => !allowed)
        if (refused.some(({ units, remaining }) => units <= remaining || remaining < left))
          throw new Error(`${name}: refused although enough was left`)
        if (refused.length === 0 && limit - left !== expected) throw new Error(`${name}: ${left} left`)
        if (requested > limit) exhausted += 1
      }
      if (scene.refused.length > 0) throw new Error('a healthy store refused')
      await scene.real.close()
    }),
    { numRuns: 120, examples: [[exhaustedOnTwoDays]] },
  )
  t.ok(exhausted >= 4, `${exhausted} quotas were exhausted`)
})

const large = 'large 2026-11-21'

t.test('requests that arrive while a batch is in flight share the next one', async t => {
  const scene = setUp(1, limits)
  for (let i = 0; i < 100; i++) scene.request(0, i % 2 ? 'large' : 'middle')
  await turn()
  t.equal(scene.store.inFlight(), 1, 'one batch for all requests of one turn')
  for (let i = 0; i < 200; i++) scene.request(0, 'large')
  await turn()
  for (let batch = 0; batch < 2; batch++) {
    t.equal(scene.store.inFlight(), 1, 'and one at a time')
    await scene.store.decide(0, 'answered')
    await turn()
  }
  t.strictSame([scene.admitted(large), scene.admitted('middle 2026-11-21')], [250, 40])
  const order = scene.decisions.get(large)?.map(({ remaining }) => remaining)
  const inOrder = Array.from({ length: 250 }, (_, i) => 899 - i)
  t.strictSame(order, inOrder, 'in order of arrival')
})

t.test('a request of several units has all of them or none, in order of arrival', async t => {
  const scene = setUp(1, limits)
  // In flight while the others arrive.
  scene.request(0, 'middle')
  await turn()
  await turn()
  for (const units of [1, 10, 10, 0, 30, 1, 1, 18, 17]) scene.request(0, 'middle', units)
  for (let i = 0; i < 3; i++) scene.request(0, 'large')
  await scene.finish()
  t.strictSame(
    scene.decisions
      .get('middle 2026-11-21')
      ?.map(({ units, allowed, remaining }) => [units, allowed, remaining]),
    [
      [1, true, 39],
      [1, true, 38],
      [10, true, 28],
      [10, true, 18],
      [0, true, 18],
      [30, false, 18],
      [1, true, 17],
      [1, true, 16],
      [18, false, 16],
      [17, false, 16],
    ],
  )
  t.equal(scene.admitted(large), 3, 'another key is not held up')
  await scene.ask(0, 'middle', 16)
  scene.request(0, 'middle', 0)
  await scene.finish()
  const read = { units: 0, allowed: true, remaining: 0 }
  t.strictSame(
    scene.decisions.get('middle 2026-11-21')?.at(-1),
    read,
    'reading is allowed when nothing is left',
  )
  t.equal(await scene.usedOn('middle 2026-11-21'), 40)
})

t.test('units that are given back are there for others, once the next batch has reported it', async t => {
  const scene = setUp(2, limits)
  const [one, other] = scene.meters
  const client = { keyId: 'small', limit: 5 }
  const now = scene.clock.now()
  await scene.ask(0, 'small', 5)
  t.equal(one?.refund(client, now, 1), 1)
  await turn()
  await scene.finish()
  t.equal(await scene.usedOn('small 2026-11-21'), 4, 'at once, without another request')
  await scene.ask(1, 'small', 1)
  t.match(scene.decisions.get('small 2026-11-21')?.at(-1), { allowed: true, remaining: 0 })
  t.equal(other?.refund(client, now, 3), 1, 'no more than this instance took')
  t.equal(scene.near.length, 3, '80 and 100 per cent on one, and 100 on the other')
  await scene.ask(1, 'small', 1)
  t.equal(scene.near.length, 3, 'a mark is reached once, however often a unit goes back')
  t.equal(other?.refund(client, now, 1), 1)
  await turn()
  await turn()
  await scene.finish()
  await one?.close()
  t.strictSame([scene.lost, await scene.usedOn('small 2026-11-21')], [[], 4])
})

t.test('fractions add up to whole units, by key', async t => {
  const scene = setUp(1, limits)
  await scene.ask(0, 'large', 40)
  await scene.ask(0, 'middle', 2)
  await scene.ask(0, 'small', 1)
  const back = (keyId: string, units: number) =>
    scene.meters[0]?.refund({ keyId, limit: 900 }, scene.clock.now(), units)
  t.equal(back('small', 0.5), 0)
  for (let i = 0; i < 5; i++) await turn()
  t.equal(scene.store.inFlight(), 0, 'nothing is sent for a fraction')
  t.strictSame(
    Array.from({ length: 10 }, () => back('large', 0.1)),
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
  )
  t.equal(back('middle', 0.75), 0)
  t.equal(back('large', 2.5), 2)
  t.strictSame([back('middle', 0.75), back('large', 0.5)], [1, 1])
  await turn()
  await scene.finish()
  t.strictSame([await scene.usedOn(large), await scene.usedOn('middle 2026-11-21')], [36, 1])
})

t.test('in an outage several units come out of the local allowance together', async t => {
  const scene = setUp(3, limits)
  await scene.ask('all', 'large', 3)
  await scene.store.down('lost')
  const allowance = allowanceOf(900, 3, 3)
  await scene.ask(0, 'large', 1)
  for (const units of [200, 100, 0, 80, 900]) scene.request(0, 'large', units)
  await scene.finish()
  const decided = scene.decisions.get(large)?.slice(-4) ?? []
  t.strictSame(
    decided.map(({ units, allowed, remaining }) => [units, allowed, remaining]),
    [
      [200, true, allowance - 201],
      [0, true, allowance - 201],
      [80, true, allowance - 281],
      // More than the store had left before the outage, so the store would refuse it too.
      [900, false, allowance - 281],
    ],
  )
  t.equal(scene.refused.length, 1, 'what exceeds the allowance alone is an error')
  scene.store.up()
  await scene.pass(500)
  t.equal(scene.state(), 'reconciling')
  for (const units of [100, 0]) scene.request(0, 'large', units)
  await scene.finish()
  t.equal(scene.refused.length, 2, 'and while counts are reconciled')
  t.strictSame(scene.decisions.get(large)?.at(-1), { units: 0, allowed: true, remaining: 900 - 284 })
  await scene.pass(reconcileForMs)
  scene.request(0, 'large', 616)
  await scene.finish()
  t.strictSame(scene.decisions.get(large)?.at(-1), { units: 616, allowed: true, remaining: 0 })
  t.equal(await scene.usedOn(large), 900)
})

t.test('a limit that is lowered while a batch is in flight leaves no negative rest', async t => {
  const tiers = { ...limits }
  const scene = setUp(1, tiers)
  for (let i = 0; i < 500; i++) scene.request(0, 'large')
  await turn()
  await turn()
  t.equal(scene.store.inFlight(), 1)
  scene.request(0, 'large')
  tiers.large = 100
  await scene.ask(0, 'large', 3)
  const decisions = scene.decisions.get(large) ?? []
  t.strictSame(
    decisions.map(({ remaining }) => remaining),
    [...Array.from({ length: 500 }, (_, i) => 899 - i), 0, 0, 0, 0],
    'the limit of a batch is that of its requests',
  )
  t.ok(decisions.slice(500).every(({ allowed }) => !allowed))
})

t.test('in an outage the local allowance is admitted, then reconciled, and the rest is left', async t => {
  const scene = setUp(3, limits)
  await scene.ask('all', 'large', 3)
  await scene.store.down('lost')
  for (let i = 0; i < 1_000; i++) for (const instance of [0, 1]) scene.request(instance, 'large')
  await turn()
  await scene.finish()
  const allowance = allowanceOf(900, 3, 3)
  t.ok(allowance > 280 && allowance < 300, `an allowance is ${allowance}`)
  const admitted = scene.admitted(large) - 3
  t.ok(admitted >= 2 * allowance - 4 && admitted <= 2 * allowance, `${admitted} admitted by two of three`)
  t.equal(scene.refused.length, 2_000 - admitted, 'errors: nobody knows that the quota is exhausted')
  t.equal(scene.state(), 'away')
  for (let probe = 0; probe < 20; probe++) await scene.pass(500)

  scene.store.up()
  await scene.pass(500)
  t.equal(scene.state(), 'reconciling')
  t.equal(await scene.usedOn(large), 3 + admitted)
  await scene.ask(2, 'large', 1)
  t.equal(scene.admitted(large), 4 + admitted, 'an instance that has not spent its allowance goes on')
  await scene.pass(reconcileForMs)
  t.equal(scene.state(), 'counting')
  t.equal(scene.admittedLocally(), admitted, 'counted once, however often the store failed before')
  await scene.ask(0, 'large', 900)
  t.strictSame([scene.admitted(large), await scene.usedOn(large)], [900, 900])
})

/** The store is back after an outage, and others report what they admitted. */
const untilReconciling = async (t: Test, scene: ReturnType<typeof setUp>): Promise<void> => {
  await scene.ask(0, 'large', 1)
  await scene.store.down('lost')
  await scene.ask(0, 'large', 1)
  scene.store.up()
  await scene.pass(500)
  t.equal(scene.state(), 'reconciling')
}

t.test('a clock that is set back while counts are reconciled does not prolong it', async t => {
  const scene = setUp(1, limits)
  await untilReconciling(t, scene)
  scene.clock.advance(-3_600_000)
  await scene.pass(reconcileForMs)
  t.equal(scene.state(), 'counting')
})

t.test('a store that comes back with another clock gives others their two seconds all the same', async t => {
  const scene = setUp(1, limits)
  let elapsed = 0
  Object.assign(scene.clock, { elapsed: () => elapsed })
  await untilReconciling(t, scene)
  await scene.pass(10_000)
  t.equal(scene.state(), 'reconciling')
  elapsed += reconcileForMs
  await scene.pass(500)
  t.equal(scene.state(), 'counting')
})

t.test('a day that begins during an outage has its local allowance too', async t => {
  const scene = setUp(2, limits)
  await scene.ask(0, 'large', 1)
  await scene.store.down('lost')
  await scene.ask(0, 'large', 1)
  await scene.pass(61_000)
  await scene.ask(0, 'large', 900)
  const allowance = allowanceOf(900, 0, 2)
  t.equal(scene.admitted('large 2026-11-22'), allowance)

  scene.store.up()
  await scene.pass(500)
  await scene.pass(reconcileForMs)
  t.equal(scene.state(), 'counting', 'the count of that day was taken from a message')
  t.equal(await scene.usedOn('large 2026-11-22'), allowance)
})

t.test('a day that began before an outage is unknown to an instance without a count of it', async t => {
  const scene = setUp(2, limits)
  await scene.ask(0, 'large', 1)
  await scene.pass(61_000)
  await scene.store.down('lost')
  await scene.ask(0, 'large', 10)
  t.equal(scene.admitted('large 2026-11-22'), 0)
})

t.test('an exhausted quota stays a 429 in an outage, an unknown key is an error', async t => {
  const scene = setUp(1, limits)
  await scene.ask(0, 'small', 6)
  await scene.store.down('lost')
  for (const key of ['small', 'middle']) await scene.ask(0, key, 1)
  t.match(scene.decisions.get('small 2026-11-21')?.at(-1), { allowed: false, remaining: 0 })
  t.equal(scene.refused.length, 1)
  scene.request(0, 'middle', 0)
  await scene.finish()
  t.equal(scene.refused.length, 2, 'a reading of it too')
})

t.test('in an outage a request that the store might have admitted is an error', async t => {
  const tiers = { ...limits }
  const scene = setUp(1, tiers)
  await scene.ask(0, 'small', 4)
  await scene.ask(0, 'large', 1)
  await scene.store.down('lost')
  await scene.ask(0, 'small', 1)
  t.equal(scene.refused.join(), 'StoreError: the store is away and the local allowance of this key is spent')
  await scene.ask(0, 'large', 100)
  tiers.large = 100
  scene.request(0, 'large', 0)
  await scene.finish()
  const last = scene.decisions.get(large)?.at(-1)
  t.strictSame(last, { units: 0, allowed: true, remaining: 0 }, 'less than nothing is never left')
})

t.test('a day that began in an outage has the rest of its allowance in the next one', async t => {
  const scene = setUp(1, limits)
  // A message would count its own units twice.
  scene.store.mute()
  await scene.ask(0, 'large', 1)
  await scene.store.down('lost')
  await scene.ask(0, 'large', 1)
  await scene.pass(61_000)
  await scene.ask(0, 'large', 800)
  scene.store.up()
  await scene.pass(500)
  await scene.pass(reconcileForMs)
  t.equal(scene.state(), 'counting')
  await scene.store.down('lost')
  await scene.ask(0, 'large', 100)
  t.equal(scene.admitted('large 2026-11-22'), allowanceOf(900, 0, 1))
})

t.test(
  'a message bounds the allowance of a day that began in an outage, after an earlier one too',
  async t => {
    let isAway = false
    const clock = manualClock()
    const count = newCount('key_1')
    const { partition } = oneCount(
      async ({ entries }) => {
        if (isAway) throw new StoreError('away')
        return entries.map(() => ({ granted: 0, before: 0, used: 0 }))
      },
      // The day of the count is later than any before.
      { clock, instances: () => 2, latestStart: () => -1, counts: () => [count].values() },
    )
    partition.onMessagesLost()
    await partition.probe()
    clock.advance(reconcileForMs + 1)
    await partition.probe()
    t.equal(partition.state(), 'counting')
    isAway = true
    let admitted = 0
    const ask = () =>
      new Promise<void>(resolve => {
        partition.consume(count, 1_000, 1, (_, decision) => {
          if (decision?.allowed) admitted += 1
          resolve()
        })
      })
    await ask()
    t.strictSame([partition.state(), admitted], ['away', 1])
    partition.onMessage(count, 900)
    for (let i = 0; i < 100; i++) await ask()
    t.equal(admitted, allowanceOf(1_000, 900, 2))
  },
)

t.test('with `refuse` nothing is admitted locally, and counting goes on once the store is back', async t => {
  const scene = setUp(2, limits, 'refuse')
  await scene.ask('all', 'large', 2)
  await scene.ask(0, 'small', 5)
  await scene.store.down('lost')
  t.equal(scene.state(), 'counting', 'lost messages alone change nothing')
  await scene.ask('all', 'large', 20)
  await scene.ask(0, 'small', 1)
  t.equal(scene.refused.length, 20)
  const known = scene.decisions.get('small 2026-11-21')?.at(-1)
  t.match(known, { allowed: false, remaining: 0 }, 'known as exhausted')
  t.equal(scene.state(), 'away')
  scene.store.up()
  await scene.pass(500)
  t.equal(scene.state(), 'counting', 'there is nothing to reconcile')
  await scene.ask('all', 'large', 1_000)
  t.strictSame([scene.admitted(large), await scene.usedOn(large), scene.admittedLocally()], [900, 900, 0])
  await scene.store.down('lost')
  await scene.ask(0, 'small', 1)
  t.equal(scene.refused.length, 20, 'in the next outage too')
})

t.test('after lost messages an instance reads an unknown count, and admits its allowance of it', async t => {
  const scene = setUp(3, limits)
  await scene.ask('all', 'middle', 3)
  scene.store.loseMessages()
  for (const instance of [0, 1, 2]) for (let i = 0; i < 900; i++) scene.request(instance, 'large')
  await turn()
  await scene.finish()
  // The first instance to request had the largest allowance.
  const admitted = scene.admitted(large)
  t.ok(admitted > allowanceOf(900, 0, 3) && admitted <= 3 * allowanceOf(900, 0, 3), `${admitted} of 900`)
  t.equal(scene.state(), 'reconciling')
  await scene.pass(reconcileForMs + 1_000)
  await scene.ask('all', 'large', 900)
  t.strictSame([scene.admitted(large), await scene.usedOn(large)], [900, 900])
})

t.test('what the store has exhausted is a 429 while reconciling, however little is known here', async t => {
  const scene = setUp(2, limits)
  scene.store.mute()
  await scene.ask(1, 'small', 1)
  await scene.ask(0, 'small', 4)
  scene.store.loseMessages()
  await scene.ask(1, 'small', 2)
  t.equal(scene.state(), 'reconciling')
  t.strictSame([scene.refused.length, scene.admitted('small 2026-11-21')], [0, 5])
})

for (const isRead of [true, false])
  t.test(`after a loss counts of others are ${isRead ? 'read' : 'unknown until they are read'}`, async t => {
    const scene = setUp(2, limits)
    await scene.ask('all', 'large', 2)
    scene.store.mute()
    await scene.ask(1, 'large', 800)
    scene.store.mute(false)
    scene.store.loseMessages()
    await until('both count again', async () => {
      await scene.pass(500)
      return scene.meters.every(meter => meter.state() === 'counting')
    })
    if (isRead) await scene.pass(500)
    await scene.store.down('lost')
    await scene.ask(0, 'large', 900)
    t.equal(scene.admitted(large) - 802, isRead ? allowanceOf(900, 802, 2) : 0)
  })

for (const [title, instances] of [
  ['a count that was asked for since a loss is known', 2],
  ['an instance alone knows its counts after a loss', 1],
] as const)
  t.test(title, async t => {
    const scene = setUp(instances, limits)
    await scene.ask(0, 'large', 2)
    scene.store.loseMessages()
    await until('all count again', async () => {
      await scene.pass(500)
      return scene.meters.every(meter => meter.state() === 'counting')
    })
    const used = 4 - instances
    if (instances > 1) await scene.ask(0, 'large', 1)
    await scene.store.down('lost')
    await scene.ask(0, 'large', 900)
    t.equal(scene.admitted(large) - used, allowanceOf(900, used, instances))
  })

t.test('an outage is observed once, over all partitions, with what was admitted in it', async t => {
  const clock = manualClock('2026-11-21T12:00:00Z')
  const real = storeInMemory(t, clock)
  const away = new Set<string>()
  const orAway = <Result>(keyId = '', ask: () => Promise<Result>): Promise<Result> =>
    away.has(keyId) ? Promise.reject(new StoreError('away')) : ask()
  const observed: (string | number)[] = []
  const meter = meterOn(
    {
      ...real,
      // Each key has its own server, which knows no other server's batches.
      partitionOf: keyId => Number(keyId.at(-1)),
      commit: batch => {
        const keyId = batch.entries[0]?.keyId
        return orAway(keyId, () => real.commit({ ...batch, instance: `${batch.instance} ${keyId}` }))
      },
      usedOn: (keyId, days) => orAway(keyId, () => real.usedOn(keyId, days)),
    },
    clock,
    { observer: { storeAway: reason => observed.push(reason), storeBack: units => observed.push(units) } },
  )
  const ask = async (keyId: string, times = 1) => {
    for (let i = 0; i < times; i++)
      t.match(await consume(meter, { keyId, limit: 900 }, clock.now()), { allowed: true })
  }
  const come = async (...keyIds: string[]) => {
    for (const keyId of keyIds) away.delete(keyId)
    await meter.probe()
    clock.advance(reconcileForMs)
    await meter.probe()
  }
  await ask('key_1')
  await ask('key_2')
  t.ok(meter.isExact('key_1'))
  away.add('key_1').add('key_2')
  await ask('key_1')
  await ask('key_2', 2)
  t.strictSame([meter.isExact('key_1'), meter.isExact('key_3')], [false, true])
  await come('key_1')
  t.strictSame([meter.isExact('key_1'), meter.state()], [true, 'away'])
  t.strictSame(observed, ['away'])
  await come('key_2')
  t.strictSame(observed, ['away', 3])
  // Units that go back are reported with the next batch, and are none that were admitted without the store.
  meter.refund({ keyId: 'key_1', limit: 900 }, clock.now(), 1)
  await ask('key_1')
  away.add('key_1')
  await ask('key_1', 2)
  await come('key_1')
  t.strictSame(observed, ['away', 3, 'away', 2])
})

t.test('without messages the counts of others are read, once a second, and bound the allowances', async t => {
  const scene = setUp(2, limits)
  scene.store.mute()
  await scene.ask(0, 'large', 1)
  await scene.ask(1, 'large', 800)
  const known = async () => {
    for await (const [each] of scene.meters[0]?.usageAt(scene.clock.now()) ?? []) return each?.used
    return undefined
  }
  t.equal(await known(), 1)
  await until('the count of the other is read', async () => {
    await scene.pass(500)
    return (await known()) === 801
  })
  t.equal(scene.state(), 'counting', 'without a pause')
  await scene.store.down('lost')
  await scene.ask(0, 'large', 200)
  t.equal(scene.admitted(large) - 801, allowanceOf(900, 801, 2))
  scene.store.up()
  await scene.pass(reconcileForMs + 1_000)
  t.equal(await scene.usedOn(large), scene.admitted(large))
})

t.test('80 and 100 per cent are observed once a day, by the instance that reaches them', async t => {
  const scene = setUp(3, limits)
  for (let i = 0; i < 60; i++) await scene.ask(i, 'middle', 1)
  t.hasStrict(scene.near, [
    { keyId: 'middle', day: '2026-11-21', limit: 40, percent: 80, used: 32 },
    { percent: 100, used: 40 },
  ])
  t.equal(scene.near.length, 2)
  await scene.ask(0, 'large', 719)
  t.equal(scene.near.length, 2)
  await scene.ask(0, 'large', 1)
  t.match(scene.near.slice(2), [{ percent: 80, used: 720 }])
})

t.test('a mark is reached once a day, whatever goes back', async t => {
  const own = { ...limits }
  const scene = setUp(1, own)
  const [meter] = scene.meters
  const now = scene.clock.now()
  for (const units of [25, 15, 12, 13]) {
    await scene.ask(0, 'middle', units)
    if (units !== 25) t.equal(meter?.refund({ keyId: 'middle', limit: 40 }, now, units), units)
    await turn()
    await scene.finish()
    t.equal(await scene.usedOn('middle 2026-11-21'), 25)
  }
  const percents = () => scene.near.map(near => (near as { percent: number }).percent)
  t.strictSame(percents(), [80, 100])
  own.middle = 50
  await scene.ask(0, 'middle', 20)
  t.strictSame(percents(), [80, 100, 80], 'another limit has other marks')
})

t.test('a day is dropped from the store once, an hour after its end, and again when that failed', async t => {
  const clock = manualClock('2026-11-21T18:59:59Z')
  const real = storeInMemory(t, clock)
  const dropped: string[] = []
  let fails = true
  const store = {
    ...real,
    dropDays: async ({ countsBefore, sumsBefore }: { countsBefore: string; sumsBefore: string }) => {
      dropped.push(`${countsBefore} ${sumsBefore}`)
      if (fails) throw new StoreError('away')
    },
  }
  const meter = meterOn(store, clock, { keepUsageForMs: 2 * 86_400_000 })
  for (let i = 0; i < 2; i++) await meter.probe()
  t.strictSame(dropped, ['2026-11-21 2026-11-20', '2026-11-21 2026-11-20'], 'it tries again')
  fails = false
  for (let i = 0; i < 3; i++) await meter.probe()
  t.equal(dropped.length, 3)
  clock.advance(1_000)
  for (let i = 0; i < 3; i++) await meter.probe()
  t.strictSame(dropped.slice(3), ['2026-11-22 2026-11-20'])

  const away = { ...store, commit: () => Promise.reject(new StoreError('away')) }
  const other = meterOn(away, clock)
  await t.rejects(consume(other, { keyId: 'key_1', limit: 9 }, clock.now()))
  await other.probe()
  t.equal(dropped.length, 4, 'none while the store is away')
})

t.test('very many counts are listed and forgotten some at a time', async t => {
  const clock = manualClock('2026-11-21T12:00:00Z')
  const store = storeInMemory(t, clock)
  const meter = meterOn(store, clock)
  const [keys, day] = [5_000, clock.now()]
  const request = (keyId: string) => consume(meter, { keyId, limit: 9 }, day)
  await Promise.all(Array.from({ length: keys }, (_, i) => request(`key_${i}`)))
  const listed = async () => {
    const parts: { keyIds: string[]; turn: number }[] = []
    const turns = countTurns(t)
    for await (const part of meter.usageAt(day))
      parts.push({ keyIds: part.map(({ keyId }) => keyId), turn: turns() })
    return parts
  }
  const parts = await listed()
  const sizes = parts.map(({ keyIds }) => keyIds.length)
  t.strictSame(sizes, [2_000, 2_000, 1_000])
  t.equal(new Set(parts.flatMap(({ keyIds }) => keyIds)).size, keys)
  t.equal(new Set(parts.map(({ turn }) => turn)).size, 3, 'in a turn of the event loop each')

  const left = async () => (await listed()).flatMap(({ keyIds }) => keyIds)
  clock.set(calendar.nextMidnight(day) + 3_599_999)
  await meter.probe()
  t.equal((await left()).length, keys, 'none before an hour has passed')
  clock.advance(1)
  // The first to be visited has a request under way: it stays, and the others go.
  const [first = ''] = parts[0]?.keyIds ?? []
  const late = request(first)
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
  const today = scene.clock.now()
  for (const [instance, times] of [30, 20].entries()) await scene.ask(instance, 'large', times)
  for (const instance of [0, 1])
    t.strictSame(await usedBy(instance, today), [{ keyId: 'large', used: 50, limit: 900 }])
  t.strictSame(await usedBy(0, today + 86_400_000), [])
  for (const instance of [0, 1]) await scene.ask(instance, 'middle', 1)
  const ofMiddle = (await usedBy(0, today)).find(({ keyId }) => keyId === 'middle')
  t.equal(ofMiddle?.used, 2, 'to the unit where the limit is small')
  await scene.store.down('lost')
  await scene.ask(0, 'large', 5)
  const ofLarge = (await usedBy(0, today)).find(({ keyId }) => keyId === 'large')
  t.equal(ofLarge?.used, 55, 'with what was admitted without the store')
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
    `on close very many counts are ${isBack ? 'reported, with a retry,' : 'listed as lost'} in parts`,
    async t => {
      const clock = manualClock('2026-11-21T12:00:00Z')
      const real = storeInMemory(t, clock)
      let [isAway, failures, reported] = [true, 0, 0]
      const lost: LostUnits[] = []
      const commit: typeof real.commit = async batch => {
        if (isAway || failures-- > 0) throw new StoreError('away')
        for (const { admitted } of batch.entries) reported += admitted
        return real.commit(batch)
      }
      const meter = meterOn({ ...real, commit }, clock, {
        observer: {
          unitsLost: units => {
            for (const each of units) lost.push(each)
          },
        },
      })
      await t.rejects(consume(meter, { keyId: 'before', limit: 9 }, clock.now()))
      // A day that begins while the store is away has its local allowance.
      clock.set(calendar.nextMidnight(clock.now()) + 1)
      const keys = isBack ? 200_000 : 20_000
      const decisions = await Promise.all(
        Array.from({ length: keys }, (_, i) => consume(meter, { keyId: `key_${i}`, limit: 9 }, clock.now())),
      )
      t.ok(decisions.every(({ allowed }) => allowed))
      // The first report of a store that is back fails too.
      isAway = !isBack
      failures = 1
      const walks = watchWalks(t)
      await meter.close()
      await turn()
      t.strictSame([reported, lost.length], isBack ? [keys, 0] : [0, keys])
      t.match(lost.slice(0, 1), isBack ? [] : [{ keyId: /^key_/, day: '2026-11-22', units: 1 }])
      t.ok(walks.total >= keys, `${walks.total} in all`)
      // Of 2,000 a turn takes some ms.
      t.ok(walks.maxInOneTurn <= 2_100, `${walks.maxInOneTurn} in one turn`)
    },
  )

t.test('on close only units that the store lacks are lost', async t => {
  const clock = manualClock('2026-11-21T12:00:00Z')
  const real = storeInMemory(t, clock)
  let isAway = false
  const commit: typeof real.commit = batch =>
    isAway ? Promise.reject(new StoreError('away')) : real.commit(batch)
  const lost: LostUnits[] = []
  const meter = meterOn({ ...real, commit }, clock, { observer: { unitsLost: each => lost.push(...each) } })
  const [one, other] = ['key_1', 'key_2'].map(keyId => ({ keyId, limit: 900 }))
  if (!one || !other) return
  for (const client of [one, other]) await consume(meter, client, clock.now(), 3)
  isAway = true
  await consume(meter, one, clock.now())
  meter.refund(other, clock.now(), 2)
  await meter.close()
  t.strictSame(lost, [{ keyId: 'key_1', day: '2026-11-21', units: 1 }])
})

t.test('a close that reports all ends without a pause, and tells of no loss', async t => {
  const clock = manualClock('2026-11-21T12:00:00Z')
  const store = storeInMemory(t, clock)
  let isSubscribed = true
  const told: unknown[] = []
  const onUsage = () => () => {
    isSubscribed = false
  }
  const meter = meterOn({ ...store, onUsage }, clock, { observer: { unitsLost: units => told.push(units) } })
  const client = { keyId: 'key_1', limit: 9 }
  await consume(meter, client, clock.now(), 3)
  meter.refund(client, clock.now(), 1)
  const turns = countTurns(t)
  await meter.close()
  t.ok(turns() < 50, `${turns()} turns`)
  t.strictSame([isSubscribed, told, await store.usedOn('key_1', ['2026-11-21'])], [false, [], [2]])
})

t.test('after a jump back over forgotten counts all are counted under one new id, and listed', async t => {
  const clock = manualClock('2026-11-21T12:00:00Z')
  const real = storeInMemory(t, clock)
  const instances = new Set<string>()
  const commit: typeof real.commit = batch => {
    instances.add(batch.instance)
    return real.commit(batch)
  }
  const dayMs = 86_400_000
  const meter = meterOn({ ...real, commit }, clock, { keepUsageForMs: 9 * dayMs })
  const day = clock.now()
  const clients = ['key_1', 'key_2', 'key_3'].map(keyId => ({ keyId, limit: 9 }))
  const round = async () => {
    for (const client of clients) await consume(meter, client, day)
  }
  await round()
  clock.advance(2 * dayMs)
  // It is under way, so the day is not forgotten altogether.
  const late = consume(meter, { keyId: 'key_4', limit: 9 }, day)
  await meter.probe()
  await late
  clock.advance(-2 * dayMs)
  await round()
  t.equal(instances.size, 2)
  const listed: string[] = []
  for await (const part of meter.usageAt(day)) listed.push(...part.map(({ keyId }) => keyId))
  t.strictSame(listed.toSorted(), ['key_1', 'key_2', 'key_3', 'key_4'])
  t.strictSame(await real.usedOn('key_1', ['2026-11-21']), [2])
})

t.test('late requests over midnight make no later one look its count up', async t => {
  const clock = manualClock('2026-11-21T17:59:59.999Z')
  const store = storeInMemory(t, clock)
  const meter = meterOn(store, clock)
  const client = { keyId: 'key_1', limit: 90, count: undefined as object | undefined }
  const late = clock.now()
  const request = (at: number) => consume(meter, client as Parameters<typeof consume>[1], at)
  await request(late)
  clock.advance(1)
  for (const at of [late + 1, late, late + 1, late]) await request(at)
  await request(late + 1)
  const { count } = client
  let looked = 0
  Object.defineProperty(client, 'keyId', { get: () => ++looked && 'key_1' })
  await request(late + 1)
  t.strictSame([looked, client.count === count], [0, true])
  t.equal(meter.resetAfter(late + 1), late + 1 + 86_400_000)
  t.strictSame(await store.usedOn('key_1', ['2026-11-21', '2026-11-22']), [3, 4])
})

t.test('the counts of test keys come near no limit', async t => {
  const clock = manualClock('2026-11-21T12:00:00Z')
  const near: string[] = []
  const observer = { nearLimit: ({ keyId }: { keyId: string }) => near.push(keyId) }
  const meter = meterOn(storeInMemory(t, clock), clock, { observer })
  for (const isTest of [true, false]) {
    const client = { keyId: isTest ? 'of_tests' : 'other', limit: 1, isTest }
    await consume(meter, client, clock.now())
  }
  t.strictSame([...new Set(near)], ['other'])
})

t.test(
  'where a store that is away can be read, a count is read once in each outage, however often it fails',
  async t => {
    let [reads, isReadable, isFull, used] = [0, false, true, 7]
    const clock = manualClock()
    const { partition, admit } = oneCount(
      async ({ entries }) => {
        if (isFull) throw new StoreError('full')
        return entries.map(({ units }) => ({ granted: units, before: 0, used: units }))
      },
      {
        ...{ clock, isReadWhenAway: true },
        usedOn: async (_, days) => {
          reads += 1
          if (!isReadable) throw new StoreError('busy')
          return days.map(() => used)
        },
      },
    )
    await t.rejects(admit(), StoreError)
    isReadable = true
    const remaining = allowanceOf(1_000, used, 1) - 1
    t.match(await admit(), { allowed: true, remaining }, 'a read that failed is tried again')
    reads = 0
    for (let i = 0; i < 5; i++) {
      await partition.probe()
      t.hasStrict([partition.state(), await admit()], ['away', { allowed: true }])
    }
    t.equal(reads, 0)
    isFull = false
    for (let i = 0; i < 3; i++) {
      await partition.probe()
      clock.advance(reconcileForMs)
    }
    t.equal(partition.state(), 'counting')
    ;[isFull, used] = [true, 500]
    t.match(await admit(), { allowed: true, remaining: allowanceOf(1_000, 500, 1) - 1 }, 'others counted')
  },
)

t.test('a loss visits no count in its turn, however many wait to be read since the loss before', async t => {
  let visited = 0
  const counts = Array.from({ length: 5_000 }, (_, i) => newCount(`key_${i}`))
  const clock = manualClock()
  const { partition } = oneCount(
    async ({ entries }) => entries.map(() => ({ granted: 0, before: 0, used: 0 })),
    {
      clock,
      instances: () => 2,
      counts: function* () {
        for (const count of counts) {
          visited += 1
          yield count
        }
      },
    },
  )
  partition.onMessagesLost()
  await partition.probe()
  clock.advance(reconcileForMs + 1)
  await partition.probe()
  t.equal(partition.state(), 'counting')
  visited = 0
  partition.onMessagesLost()
  t.equal(visited, 0)
})
