// The limits by the second and minute: exact on one gateway by a moved clock, in chunks over a store that several share, local
// parts while the store is away, and what a changed limit keeps. With sockets: journeys/rates.test.ts.

import t, { type Test } from 'tap'
import { rateFigures } from '../../src/api/rate-figures.ts'
import { createRates, type RateRefusal, type RatesParts } from '../../src/keys/rates.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { type RateLimits, StoreError } from '../../src/stores/store.ts'
import type { TokenRequest } from '../../src/stores/token-bucket.ts'
import { manualClock } from '../support/manual-clock.ts'

const limits = (given: Partial<RateLimits>): RateLimits => ({
  ...{ perSecond: null, burst: null, perMinute: null },
  ...given,
})
type Store = RatesParts['store']
const partitionOf = (keyId: string) => (keyId === 'key_of_another' ? 1 : 0)
const nowhere: Store = { partitionOf, takeTokens: () => Promise.reject(new Error('nobody asks the store')) }

/** One gateway, whose clock and performance.now() are moved by hand. */
const gateway = (t: Test, given: Partial<RatesParts> = {}, clock = manualClock()) => {
  const rates = createRates(
    {
      ...{ store: nowhere, isAlone: () => true, isStoreAway: () => false, instances: () => 1 },
      ...{ clock, ...given },
    },
    clock.now,
  )
  t.teardown(rates.close)
  const clientOf = (own: RateLimits, keyId = 'key_1') =>
    ({ keyId, rates: own }) as Parameters<typeof rates.take>[0]
  /** The refusals of so many requests that come together; undefined for each that is admitted. */
  const send = (client: Parameters<typeof rates.take>[0], times = 1) =>
    Promise.all(
      Array.from(
        { length: times },
        () => new Promise<RateRefusal | undefined>(resolve => rates.take(client, resolve)),
      ),
    )
  const admitted = async (client: Parameters<typeof rates.take>[0], times: number) =>
    (await send(client, times)).filter(refusal => refusal === undefined).length
  return { clock, clientOf, send, admitted }
}

t.test('alone, a burst is admitted exactly, and then as many as refill', async t => {
  const { clock, clientOf, admitted, send } = gateway(t)
  const client = clientOf(limits({ perSecond: 10, burst: 20 }))
  t.equal(await admitted(client, 50), 20)
  t.strictSame(await send(client), [{ policy: 'second', limit: 10, waitMs: 100 }])
  clock.advance(99)
  t.equal(await admitted(client, 5), 0)
  clock.advance(1)
  t.equal(await admitted(client, 5), 1)
  clock.advance(1_000)
  t.equal(await admitted(client, 50), 10)
  clock.advance(3_600_000)
  t.equal(await admitted(client, 50), 20, 'never more than the burst')
})

t.test('without a burst, as many as perSecond come at once', async t => {
  const { clientOf, admitted } = gateway(t)
  t.equal(await admitted(clientOf(limits({ perSecond: 7 })), 30), 7)
})

t.test('over any time a key gets its rate, however it sends', async t => {
  const { clock, clientOf, admitted } = gateway(t)
  const client = clientOf(limits({ perSecond: 10, burst: 1 }))
  let sum = 0
  for (let i = 0; i < 1_000; i++) {
    sum += await admitted(client, 3)
    clock.advance(10)
  }
  t.equal(sum, 100)
})

t.test('the limit by the minute refuses too, and says how long', async t => {
  const { clock, clientOf, admitted, send } = gateway(t)
  const client = clientOf(limits({ perSecond: 10, perMinute: 12 }))
  t.equal(await admitted(client, 10), 10)
  clock.advance(1_000)
  t.equal(await admitted(client, 10), 2)
  t.match(await send(client), [{ policy: 'minute', limit: 12, waitMs: 4_000 }])
  clock.advance(4_000)
  t.equal(await admitted(client, 10), 1)
})

t.test('a refused request takes nothing of either limit', async t => {
  const { clock, clientOf, admitted } = gateway(t)
  const client = clientOf(limits({ perSecond: 2, perMinute: 100 }))
  t.equal(await admitted(client, 1_000), 2)
  t.match(client.rate && rateFigures(client.rate, clock.now()), [
    { policy: 'second', limit: 2, left: 0, moreInMs: 500 },
    { policy: 'minute', limit: 100, left: 98 },
  ])
})

t.test('a clock that is set back refills nothing, and what comes then does', async t => {
  const { clock, clientOf, admitted } = gateway(t)
  const client = clientOf(limits({ perSecond: 5 }))
  t.equal(await admitted(client, 9), 5)
  clock.advance(-3_600_000)
  t.equal(await admitted(client, 9), 0)
  clock.advance(400)
  t.equal(await admitted(client, 9), 2)
})

t.test('keys have buckets of their own, and clients of one key share them', async t => {
  const { clientOf, admitted } = gateway(t)
  const own = limits({ perSecond: 3 })
  t.equal(await admitted(clientOf(own), 2), 2)
  t.equal(await admitted(clientOf(own), 2), 1)
  t.equal(await admitted(clientOf(own, 'key_2'), 9), 3)
})

t.test('a changed limit keeps what was used, and cuts what is too much', async t => {
  const { clock, clientOf, admitted } = gateway(t)
  t.equal(await admitted(clientOf(limits({ perSecond: 10 })), 4), 4)
  t.equal(await admitted(clientOf(limits({ perSecond: 3 })), 9), 3)
  t.equal(await admitted(clientOf(limits({ perSecond: 100 })), 9), 0, 'no fresh burst')
  clock.advance(100)
  t.equal(await admitted(clientOf(limits({ perSecond: 100 })), 90), 10)
  t.equal(await admitted(clientOf(limits({ perSecond: 100, perMinute: 5 })), 9), 0)
})

t.test('a burst is bounded by what a minute refills', async t => {
  const { clientOf, admitted } = gateway(t)
  t.equal(await admitted(clientOf(limits({ perSecond: 1, burst: 1_000 })), 100), 60)
})

type Gateway = ReturnType<typeof gateway>

/** Gateways on one embedded store, which they know to share; its steps are counted. */
const fleet = (t: Test, size: number) => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const requests: TokenRequest[] = []
  const state = { isAway: false, isBroken: false }
  const counted: Store = {
    partitionOf,
    takeTokens: request => {
      requests.push(request)
      return state.isBroken ? Promise.reject(new StoreError('away')) : store.takeTokens(request)
    },
  }
  const parts = {
    store: counted,
    isAlone: () => false,
    isStoreAway: () => state.isAway,
    instances: () => size,
  }
  return { clock, requests, state, gateways: Array.from({ length: size }, () => gateway(t, parts, clock)) }
}

t.test('gateways share a bucket: all of it for one alone, and never more for both', async t => {
  const { clock, gateways, requests } = fleet(t, 2)
  const [one, two] = gateways as [Gateway, Gateway]
  const own = limits({ perSecond: 100 })
  const [first, second] = [one.clientOf(own), two.clientOf(own)]
  t.equal(await one.admitted(first, 150), 100)
  t.equal(requests.length, 1, 'one step for all who come together')
  t.equal(await one.admitted(first, 10_000), 0)
  t.equal(requests.length, 1, 'an empty bucket is known')
  clock.advance(500)
  const both = await Promise.all([one.admitted(first, 80), two.admitted(second, 80)])
  t.equal(both[0] + both[1], 50)
})

t.test('a key that sends one request after the other needs a step for many of them', async t => {
  const { clock, gateways, requests } = fleet(t, 2)
  const [one] = gateways as [Gateway]
  const client = one.clientOf(limits({ perSecond: 2_000 }))
  let admitted = 0
  for (let i = 0; i < 1_000; i++) {
    admitted += await one.admitted(client, 1)
    clock.advance(1)
  }
  t.equal(admitted, 1_000)
  t.ok(requests.length < 50, `${requests.length} steps`)
})

t.test('a greedy key gets nearly all of its rate on one gateway, and costs few steps', async t => {
  const { clock, gateways, requests } = fleet(t, 4)
  const [one] = gateways as [Gateway]
  const client = one.clientOf(limits({ perSecond: 1_000, burst: 100 }))
  let admitted = 0
  for (let i = 0; i < 2_000; i++) {
    admitted += await one.admitted(client, 5)
    clock.advance(1)
  }
  t.ok(admitted >= 0.95 * 2_100 && admitted <= 2_100, `${admitted}`)
  t.ok(requests.length < 450, `${requests.length} steps`)
})

t.test('tokens that go back to the store with a step are used by nobody while it runs', async t => {
  const clock = manualClock()
  const buckets = openEmbeddedStore(':memory:', clock)
  t.teardown(() => buckets.close())
  let steps: (() => void)[] = []
  const store: Store = {
    partitionOf,
    takeTokens: async request => {
      const grant = await buckets.takeTokens(request)
      await new Promise<void>(resolve => {
        steps.push(resolve)
      })
      return grant
    },
  }
  const { clientOf, admitted } = gateway(t, { store, isAlone: () => false, instances: () => 2 }, clock)
  const client = clientOf(limits({ perSecond: 100 }))
  const asked: Promise<number>[] = []
  for (let round = 0; round < 60; round++) {
    asked.push(admitted(client, 4))
    // A step of the store ends with every second one, while requests go on coming.
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
    if (round % 2 === 0) continue
    for (const end of steps) end()
    steps = []
  }
  for (let turn = 0; turn < 20; turn++) {
    for (const end of steps) end()
    await new Promise(setImmediate)
  }
  const sum = (await Promise.all(asked)).reduce((all, each) => all + each, 0)
  t.equal(sum, 100, 'as many as the bucket holds, where nothing refills')
})

t.test('a key with two values, each with equal limits of its own, has one empty bucket', async t => {
  const { gateways, requests } = fleet(t, 2)
  const [one] = gateways as [Gateway]
  const clients = [one.clientOf(limits({ perSecond: 10 })), one.clientOf(limits({ perSecond: 10 }))] as const
  t.equal(await one.admitted(clients[0], 11), 10)
  for (const client of [...clients, ...clients]) t.match(await one.send(client), [{ waitMs: 100 }])
  t.equal(requests.length, 1, 'which is known')
})

t.test('in any second the gateways admit at most a tenth of the rate more than the bucket', async t => {
  const { clock, gateways } = fleet(t, 3)
  const own = limits({ perSecond: 50, burst: 20 })
  const clients = gateways.map(each => each.clientOf(own))
  const at: number[] = []
  // Bursts that move between the gateways, and pauses in which chunks are left over.
  for (let i = 0; i < 4_000; i++) {
    const which = Math.floor(i / 37) % 3
    const times = i % 90 < 30 ? 2 : i % 90 === 45 ? 30 : 0
    const admitted = await gateways[which]?.admitted(clients[which] as (typeof clients)[0], times)
    at.push(...Array<number>(admitted ?? 0).fill(clock.now()))
    clock.advance(i % 7)
  }
  const worst = Math.max(...at.map((from, i) => at.slice(i).filter(each => each - from < 1_000).length))
  t.ok(worst <= 20 + 1.1 * 50, `${worst} in a second`)
  const seconds = ((at.at(-1) ?? 0) - (at[0] ?? 0)) / 1_000
  t.ok(at.length <= 20 + 50 * (seconds + 0.1), `${at.length} in ${seconds} s`)
})

t.test('while the store is away each admits its part, and what it admitted counts afterwards', async t => {
  const { clock, gateways, state } = fleet(t, 2)
  const [one, two] = gateways as [Gateway, Gateway]
  const own = limits({ perSecond: 10 })
  const [first, second] = [one.clientOf(own), two.clientOf(own)]
  state.isBroken = true
  t.strictSame([await one.admitted(first, 30), await two.admitted(second, 30)], [5, 5])
  let sum = 0
  for (let i = 0; i < 100; i++) {
    clock.advance(100)
    sum += (await one.admitted(first, 3)) + (await two.admitted(second, 3))
  }
  t.ok(sum >= 96 && sum <= 100, `${sum} in ten seconds`)
  state.isBroken = false
  state.isAway = true
  t.equal(await one.admitted(first, 30), 0, 'the meter knows that it is away')
  state.isAway = false
  clock.advance(1_000)
  const back = (await one.admitted(first, 30)) + (await two.admitted(second, 30))
  t.ok(back <= 10, `${back}: the store's bucket was full, and is charged with what was admitted meanwhile`)
})

t.test('where a limit has less than one for each, an instance alone still admits one at a time', async t => {
  const { clock, gateways, state } = fleet(t, 4)
  const [one] = gateways as [Gateway]
  state.isAway = true
  const client = one.clientOf(limits({ perSecond: 2, burst: 1 }))
  t.equal(await one.admitted(client, 5), 1)
  clock.advance(1_999)
  t.equal(await one.admitted(client, 5), 0)
  clock.advance(1)
  t.equal(await one.admitted(client, 5), 1, 'its part of 2 a second for 4 is one in two')
})

t.test('a partition of the store that fails is away for its own keys only', async t => {
  const asked: string[] = []
  const store: Store = {
    partitionOf,
    takeTokens: async ({ keyId, wanted }) => {
      asked.push(keyId)
      if (keyId === 'key_1') throw new StoreError('away')
      return { granted: wanted, left: [5] }
    },
  }
  const { clientOf, admitted } = gateway(t, { store, isAlone: () => false, instances: () => 2 })
  const own = limits({ perSecond: 10 })
  await admitted(clientOf(own), 1)
  await admitted(clientOf(own, 'key_of_another'), 1)
  await admitted(clientOf(own), 1)
  t.strictSame(asked, ['key_1', 'key_of_another'])
})
