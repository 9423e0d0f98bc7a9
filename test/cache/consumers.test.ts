// Loads for consumers that have shares of the source: what concerns one of them alone fails nobody else, is no failure of the
// subject, and costs no load. Two instances share a real store.

import t, { type Test } from 'tap'
import { createDemand } from '../../src/cache/demand.ts'
import { createFailures, createUncached } from '../../src/cache/failures.ts'
import { createFleetSingleFlight } from '../../src/cache/fleet-single-flight.ts'
import { createFreshness } from '../../src/cache/freshness.ts'
import { createPurges } from '../../src/cache/purges.ts'
import { createReadThrough, type Subject } from '../../src/cache/read-through.ts'
import { createMemoryTier, createSharedTier } from '../../src/cache/tiers.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'

const policy = createFreshness(
  {
    freshForMs: 1_000,
    freshSpread: 0,
    freshForAtMostMs: 1_000,
    refreshAheadForMs: 0,
    staleForMs: 10_000,
    settleForMs: 0,
    spreadOverMs: 0,
  },
  () => 1,
)
const subject = { id: 'a' }

class ShareUsedUp extends Error {
  readonly consumer: string
  constructor(consumer: string) {
    super(`the share of ${consumer} is used up`)
    this.consumer = consumer
  }
}

const setUp = (t: Test) => {
  const clock = manualClock()
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  const loads: (string | undefined)[] = []
  const failed: unknown[] = []
  const held = new Set<string>()
  const expedited: (string | undefined)[] = []
  /** Whose share a load is for after all, and is used up. */
  const movedTo: string[] = []
  const gate = Promise.withResolvers<void>()
  const failures = createFailures({ retryAfterMs: 500, retryAfterAtMostMs: 2_000 }, clock, () => 0)
  const codec = {
    maxBytes: 10_000,
    encode: (entry: object) => Buffer.from(JSON.stringify(entry)),
    metadata: (bytes: Buffer) => JSON.parse(bytes.toString()),
    decode: (bytes: Buffer) => JSON.parse(bytes.toString()),
  }
  const instance = () => {
    const fleet = createFleetSingleFlight({ store, leaseForMs: 10_000 }, error => failed.push(error))
    t.teardown(fleet.close)
    return createReadThrough<Subject, string>({
      keyOf: ({ id }) => id,
      load: async (_subject, _purpose, consumer) => {
        loads.push(consumer)
        await gate.promise
        const moved = movedTo.pop()
        if (moved !== undefined) throw new ShareUsedUp(moved)
        if (consumer === 'greedy') throw new ShareUsedUp(consumer)
        return {
          value: `for ${consumer}`,
          fetchedAt: clock.now(),
          bytes: 9,
          jitter: 0,
          generation: 0,
          run: null,
        }
      },
      expedite: (_subject, consumer) => expedited.push(consumer),
      heldBack: consumer =>
        consumer !== undefined && held.has(consumer) ? new ShareUsedUp(consumer) : undefined,
      consumerOf: error => (error instanceof ShareUsedUp ? error.consumer : undefined),
      memory: createMemoryTier(10_000),
      shared: createSharedTier({ name: 'embedded', store, longestUseMs: () => policy.longestUseMs }, codec, {
        onSharedTierFailure: (_step, error) => failed.push(error),
        onEntryRefused: reason => failed.push(reason),
      }),
      fleet,
      policy,
      purges: createPurges(),
      failures,
      uncached: createUncached(),
      demand: createDemand(),
      waitForMs: 60_000,
      clock,
      observer: { onRead: () => {}, onCollapsed: () => {}, onLoadFailure: failure => failed.push(failure) },
    })
  }
  return { clock, loads, failed, failures, held, expedited, movedTo, gate, instance }
}

t.test('a reader that joined a load of another goes on for itself when that one may not load', async t => {
  const { loads, failed, failures, gate, instance } = setUp(t)
  const cache = instance()
  const greedy = cache.read(subject, 'greedy')
  const other = cache.read(subject, 'other')
  gate.resolve()
  await t.rejects(Promise.resolve(greedy), new ShareUsedUp('greedy'))
  t.match(await other, { value: 'for other', outcome: 'miss' })
  t.strictSame(loads, ['greedy', 'other'])
  t.strictSame(failed, [], 'it is no failure of the subject')
  t.equal(failures.last(subject.id), undefined)
})

t.test('nor does it fail the reader of another instance', async t => {
  const { loads, gate, instance } = setUp(t)
  const [here, there] = [instance(), instance()]
  const greedy = here.read(subject, 'greedy')
  await until('the load has begun', () => loads.length === 1)
  const other = there.read(subject, 'other')
  gate.resolve()
  await t.rejects(Promise.resolve(greedy), new ShareUsedUp('greedy'))
  t.match(await other, { value: 'for other', outcome: 'miss' })
  t.strictSame(loads, ['greedy', 'other'])
})

t.test('who is held back loads nothing, and gets what is there', async t => {
  const { clock, loads, held, gate, instance } = setUp(t)
  const cache = instance()
  gate.resolve()
  held.add('other')
  await t.rejects(Promise.resolve(cache.read(subject, 'other')), new ShareUsedUp('other'))
  t.strictSame(loads, [])
  t.match(await cache.read(subject, 'third'), { value: 'for third' })
  clock.advance(2_000)
  t.match(await cache.read(subject, 'other'), { value: 'for third', outcome: 'stale', forwarded: false })
  t.strictSame(loads, ['third'])
  t.match(await cache.read(subject, 'third'), { outcome: 'stale', forwarded: true })
  await until('it is refreshed', async () => (await cache.read(subject, 'other')).outcome === 'hit')
  t.strictSame(loads, ['third', 'third'])
})

t.test('a queued load that another waits for too may become that one’s, and fails nobody then', async t => {
  const { loads, expedited, movedTo, gate, instance } = setUp(t)
  const cache = instance()
  const many = cache.read(subject, 'many')
  await until('the load has begun', () => loads.length === 1)
  const few = cache.read(subject, 'few')
  t.strictSame(expedited, ['few'], 'it does not wait behind all that the first one wants')
  movedTo.push('few')
  gate.resolve()
  t.match(await few, { value: 'for many', collapsed: true })
  t.match(await many, { value: 'for many', outcome: 'miss' })
  t.strictSame(loads, ['many', 'many'])
})

t.test('nor does it wait behind all when another joined before it was queued', async t => {
  const { loads, expedited, gate, instance } = setUp(t)
  const cache = instance()
  const many = cache.read(subject, 'many')
  const few = cache.read(subject, 'few')
  await until('the load has begun', () => loads.length === 1)
  t.strictSame(expedited, ['few'], 'once the load was queued')
  gate.resolve()
  await Promise.all([many, few])
})
