// Without it a key could exceed its limit by the second or minute, alone or over several gateways.

import t, { type Test } from 'tap'
import { rateFigures } from '../../src/api/rate-figures.ts'
import type { QuotaDecision } from '../../src/keys/count.ts'
import {
  admitLocally,
  applyTokens,
  createRates,
  type KeyRate,
  newRate,
  rateRefusal,
  tokenEntriesOf,
} from '../../src/keys/rates.ts'
import { type RateLimits, rateKinds, StoreError, type UsageBatch } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { consume, meterOn, storeInMemory } from './meters.ts'

const limits = (given: Partial<RateLimits>): RateLimits => ({
  ...{ perSecond: null, burst: null, perMinute: null },
  ...given,
})

/** Gateways on one store, whose clock is moved by hand; their batches are listed. */
const fleet = (t: Test, size = 1) => {
  const clock = manualClock()
  const store = storeInMemory(t, clock)
  const batches: UsageBatch[] = []
  const state: { isBroken: boolean; size: number | undefined } = { isBroken: false, size }
  const counted = {
    ...store,
    commit: (batch: UsageBatch) => {
      batches.push(batch)
      return state.isBroken ? Promise.reject(new StoreError('away')) : store.commit(batch)
    },
    time: () => (state.isBroken ? Promise.reject(new StoreError('away')) : store.time()),
    usedOn: (keyId: string, days: readonly string[]) =>
      state.isBroken ? Promise.reject(new StoreError('away')) : store.usedOn(keyId, days),
  }
  const meters = Array.from({ length: size }, () => meterOn(counted, clock, { instances: () => state.size }))
  const clientOf = (rates: RateLimits, keyId = 'key_1', limit = 1_000_000) =>
    ({ keyId, rates, limit }) as { keyId: string; rates: RateLimits; limit: number; rate?: KeyRate }
  type Client = ReturnType<typeof clientOf>
  const ask = (client: Client, units = 1, which = 0): Promise<QuotaDecision> =>
    consume(meters[which] as (typeof meters)[0], client, clock.now(), units)
  /** How many of so many requests that come together are admitted. */
  const admitted = async (client: Client, times: number, which = 0): Promise<number> =>
    (await Promise.all(Array.from({ length: times }, () => ask(client, 1, which)))).filter(
      ({ allowed }) => allowed,
    ).length
  const used = async (keyId = 'key_1') => (await store.usedOn(keyId, ['2026-11-21']))[0]
  return { clock, store, batches, state, meters, clientOf, ask, admitted, used }
}

t.test('a burst is admitted exactly, and then as many as refill', async t => {
  const { clock, clientOf, admitted, ask, used, meters } = fleet(t)
  const client = clientOf(limits({ perSecond: 10, burst: 20 }))
  t.equal(await admitted(client, 50), 20)
  t.strictSame(await ask(client), {
    ...{ allowed: false, remaining: 999_980 },
    tooSoon: { policy: 'second', limit: 10, waitMs: 100 },
  })
  clock.advance(99)
  t.equal(await admitted(client, 5), 0)
  clock.advance(1)
  t.equal(await admitted(client, 5), 1)
  clock.advance(1_000)
  t.equal(await admitted(client, 50), 10)
  clock.advance(3_600_000)
  const { rate } = client
  await meters[0]?.probe()
  t.equal(await admitted(client, 50), 20, 'never more than the burst')
  t.not(client.rate, rate, 'a probe forgets full buckets')
  t.equal(await used(), 51, 'a refused request takes no unit')
  t.equal(await admitted(clientOf(limits({ perSecond: 7 }), 'key_2'), 30), 7, 'without a burst as many')
  const long = clientOf(limits({ perSecond: 1, burst: 1_000 }), 'key_3')
  t.equal(await admitted(long, 100), 60, 'bounded by a minute')
  clock.advance(999)
  t.equal(await admitted(long, 9), 0)
  clock.advance(1)
  t.equal(await admitted(long, 9), 1)
})

t.test('a change of each kind of limit is taken over', t => {
  const rates = createRates(() => 0)
  let before = rates.of({ keyId: 'key_1' }, limits({ perSecond: 2, burst: 2, perMinute: 2 })).buckets
  let given = limits({ perSecond: 2, burst: 2, perMinute: 2 })
  for (const kind of rateKinds) {
    given = { ...given, [kind]: 1 }
    const { buckets } = rates.of({ keyId: 'key_1' }, given)
    t.not(buckets, before, kind)
    t.equal(rates.of({ keyId: 'key_1' }, { ...given }).buckets, buckets, 'equal limits change nothing')
    before = buckets
  }
  t.end()
})

t.test('over any time a key gets its rate, however it sends', async t => {
  const { clock, clientOf, admitted } = fleet(t)
  const client = clientOf(limits({ perSecond: 10, burst: 1 }))
  let sum = 0
  for (let i = 0; i < 500; i++) {
    sum += await admitted(client, 3)
    clock.advance(10)
  }
  t.equal(sum, 50)
})

t.test('the limit by the minute refuses too, and takes nothing of the other', async t => {
  const { clock, clientOf, admitted, ask } = fleet(t)
  const client = clientOf(limits({ perSecond: 10, perMinute: 12 }))
  t.equal(await admitted(client, 10), 10)
  clock.advance(1_000)
  t.equal(await admitted(client, 10), 2)
  t.hasStrict((await ask(client)).tooSoon, { policy: 'minute', limit: 12, waitMs: 4_000 })
  t.match(client.rate && rateFigures(client.rate, clock.now()), [{ left: 8 }, { left: 0 }])
  clock.advance(4_000)
  t.equal(await admitted(client, 10), 1)
})

t.test('requests that cost nothing, or more than is left of the day, take a token', async t => {
  const { clientOf, ask, used, batches } = fleet(t)
  const client = clientOf(limits({ perSecond: 4 }), 'key_1', 5)
  const asked = [0, 3, 9, 1, 1].map(units => ask(client, units))
  t.hasStrict(await Promise.all(asked), [
    { allowed: true, remaining: 5 },
    { allowed: true, remaining: 2 },
    { allowed: false, remaining: 2, tooSoon: undefined },
    { allowed: true, remaining: 1 },
    { allowed: false, remaining: 1, tooSoon: { policy: 'second' } },
  ])
  t.equal(await used(), 4)
  t.equal(batches.length, 1, 'tokens and units in one batch')
})

t.test('a unit that goes back takes no limit from the requests that share its batch', async t => {
  const { clock, clientOf, admitted, state, meters, used } = fleet(t)
  const client = clientOf(limits({ perSecond: 5 }))
  t.equal(await admitted(client, 5), 5)
  for (const isBroken of [false, true]) {
    state.isBroken = isBroken
    t.equal(meters[0]?.refund(client, clock.now(), 1), 1)
    t.equal(await admitted(client, 50), 0, isBroken ? 'nor while the store is away' : 'in the store')
  }
  t.equal(await used(), 4)
})

t.test('the first limits of a key hold from the next request on, whatever waits before it', async t => {
  const { clientOf, admitted, ask } = fleet(t)
  const client = clientOf(limits({ perSecond: 5 }))
  const before = ask({ keyId: 'key_1', limit: 1_000_000 } as typeof client)
  t.equal(await admitted(client, 50), 4, 'the one before them took a token too')
  t.match(await before, { allowed: true })
})

t.test('a clock that is set back refills nothing, and time after it does', async t => {
  const { clock, clientOf, admitted } = fleet(t)
  const client = clientOf(limits({ perSecond: 5 }))
  t.equal(await admitted(client, 9), 5)
  clock.advance(-3_600_000)
  t.equal(await admitted(client, 9), 0)
  clock.advance(400)
  t.equal(await admitted(client, 9), 2, 'without waiting for the hour')
})

t.test('keys have buckets of their own, and the values of one key share them', async t => {
  const { clientOf, admitted } = fleet(t)
  const own = limits({ perSecond: 3 })
  t.equal(await admitted(clientOf(own), 2), 2)
  t.equal(await admitted(clientOf({ ...own }), 2), 1)
  t.equal(await admitted(clientOf(own, 'key_2'), 9), 3)
})

t.test('a changed limit keeps what was used, and cuts what is too much', async t => {
  const { clock, clientOf, admitted } = fleet(t)
  t.equal(await admitted(clientOf(limits({ perSecond: 10 })), 4), 4)
  t.equal(await admitted(clientOf(limits({ perSecond: 3 })), 9), 3)
  t.equal(await admitted(clientOf(limits({ perSecond: 100 })), 9), 0, 'no fresh burst')
  clock.advance(100)
  t.equal(await admitted(clientOf(limits({ perSecond: 100 })), 90), 10)
})

t.test('gateways share a bucket: all of it for one alone, and exactly as much for all', async t => {
  const { clock, clientOf, admitted } = fleet(t, 3)
  const own = limits({ perSecond: 50, burst: 20 })
  const clients = [0, 1, 2].map(() => clientOf(own)) as [0, 0, 0] & ReturnType<typeof clientOf>[]
  t.equal(await admitted(clients[0] as never, 90), 20)
  t.equal(await admitted(clients[1] as never, 9, 1), 0)
  let sum = 0
  for (let i = 0; i < 300; i++) {
    clock.advance(20)
    const which = Math.floor(i / 37) % 3
    sum += await admitted(clients[which] as never, i % 2 === 0 ? 3 : 0, which)
  }
  t.ok(sum <= 300 && sum >= 295, `${sum} in six seconds`)
})

t.test('while the store is away each admits its part, and what it admitted counts afterwards', async t => {
  const { clock, clientOf, admitted, state, meters } = fleet(t, 2)
  const own = limits({ perSecond: 10 })
  const [first, second] = [clientOf(own), clientOf(own)]
  const both = async (times: number) => (await admitted(first, times, 0)) + (await admitted(second, times, 1))
  // Known to both, for their allowances.
  t.equal(await both(1), 2)
  clock.advance(1_000)
  state.isBroken = true
  t.equal(await both(30), 10)
  let sum = 0
  for (let i = 0; i < 100; i++) {
    clock.advance(100)
    sum += await both(3)
  }
  t.ok(sum >= 96 && sum <= 100, `${sum} in ten seconds`)
  state.isBroken = false
  for (let i = 0; i < 3; i++) {
    await Promise.all(meters.map(meter => meter.probe()))
    clock.advance(1_000)
  }
  await Promise.all(meters.map(meter => meter.probe()))
  const back = await both(30)
  t.ok(back <= 20, `${back}: no more than what a bucket and a second give`)
})

t.test('what was admitted without the store is spent, less what has come back since', t => {
  const rates = createRates(() => 0)
  const client = { keyId: 'key_1' }
  rates.of(client, limits({ perSecond: 5 }))
  const rate = rates.of(client, limits({ perSecond: 10 }))
  const spentAt = (at: number) => tokenEntriesOf(rate, at)[0]?.spent
  t.equal(spentAt(0), 0, 'of a raised limit nothing')
  for (const bucket of rate.buckets) bucket.tokens = 10
  for (let i = 0; i < 5; i++) admitLocally(rate, 0, 2)
  t.strictSame([0, 500, 1_000].map(spentAt), [5, 2.5, 0])
  applyTokens(rate, tokenEntriesOf(rate, 0), { taken: 0, left: [4] }, 0)
  t.equal(spentAt(0), 0, 'once')
  admitLocally(rate, 0, 1)
  t.equal(spentAt(0), 1)
  t.end()
})

t.test('without the store a changed limit keeps what was used of each bucket', t => {
  const rates = createRates(() => 0)
  const client = { keyId: 'key_1' }
  const rate = rates.of(client, limits({ perSecond: 10, perMinute: 100 }))
  for (let i = 0; i < 10; i++) admitLocally(rate, 0, 1)
  for (const perSecond of [10, 100]) {
    rates.of(client, limits({ perSecond, perMinute: 200 }))
    t.hasStrict(admitLocally(rate, 0, 1), { policy: 'second' })
  }
  t.end()
})

t.test('a refusal names the limit with the longest wait, however short it is', t => {
  for (const [given, refusal] of [
    [{ perSecond: 4_000 }, { policy: 'second', limit: 4_000, waitMs: 0 }],
    [
      { perSecond: 2, perMinute: 30 },
      { policy: 'minute', limit: 30, waitMs: 2_000 },
    ],
    [
      { perSecond: 1, perMinute: 60 },
      { policy: 'second', limit: 1, waitMs: 1_000 },
    ],
  ] as const) {
    const rate = newRate('key_1', limits(given), 0)
    for (const bucket of rate.buckets) bucket.tokens = 0
    t.strictSame(rateRefusal(rate, 0), refusal)
  }
  t.end()
})

t.test('full buckets are forgotten two thousand at a time', t => {
  const rates = createRates(() => 0)
  const own = limits({ perSecond: 1 })
  const ofKey = (_: unknown, i: number) => rates.of({ keyId: `key_${i}` }, own)
  const known = Array.from({ length: 2_001 }, ofKey)
  rates.forgetFull()
  t.equal(known.filter((rate, i) => ofKey(rate, i) === rate).length, 1)
  t.end()
})

t.test('without the store, and while the size of the fleet is unknown, a rate is that of one', async t => {
  const { clientOf, ask, state } = fleet(t)
  Object.assign(state, { isBroken: true, size: undefined })
  const client = clientOf(limits({ perSecond: 2 }))
  for (let i = 0; i < 2; i++) await t.rejects(ask(client), StoreError)
  t.match(await ask(client), { allowed: false, tooSoon: { waitMs: 500 } })
})

/** A bucket of 100 requests an hour, which no configuration has yet. */
const hourly = () => ({
  ...{ policy: 'minute' as const, limit: 100, capacity: 100, perMs: 100 / 3_600_000 },
  ...{ tokens: 100, at: 0 },
})

t.test('a bucket is remembered until it is full again, an hour long if need be', async t => {
  const clock = manualClock(0)
  const rates = createRates(clock.now)
  const own = limits({ perMinute: 100 })
  const client = { keyId: 'key_1', rates: own }
  const rate = rates.of(client, own)
  rate.buckets = [hourly()]
  for (let i = 0; i < 100; i++) t.equal(admitLocally(rate, clock.now(), 1), undefined)
  clock.advance(600_000)
  rates.forgetFull()
  t.equal(rates.of(client, own), rate, 'ten quiet minutes refill a sixth')
  for (let i = 0; i < 16; i++) t.equal(admitLocally(rate, clock.now(), 1), undefined)
  t.match(admitLocally(rate, clock.now(), 1), { waitMs: 12_000 })
  clock.advance(3_600_000)
  rates.forgetFull()
  t.not(rates.of(client, own), rate, 'a full one is as a new one')
})

t.test('where a limit has less than one for each, an instance alone still admits one at a time', async t => {
  const rates = createRates(() => 0)
  const own = limits({ perSecond: 2, burst: 1 })
  const rate = rates.of({ keyId: 'key_1' }, own)
  t.equal(admitLocally(rate, 0, 4), undefined)
  t.ok(admitLocally(rate, 1_999, 4))
  t.equal(admitLocally(rate, 2_000, 4), undefined, 'its part of 2 a second for 4 is one in two')
})
