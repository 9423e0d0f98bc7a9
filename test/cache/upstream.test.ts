// Without it two upstreams could be asked, charged or stored by the protocol of one.

import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { keyFor, namespaceOf } from '../../src/cache/entry-codec.ts'
import { orderPurge } from '../../src/cache/purges.ts'
import { silentObserver } from '../../src/cache/silent-observer.ts'
import { openUpstream } from '../../src/cache/upstream.ts'
import type { Catalogue } from '../../src/catalogue/catalogue.ts'
import { shipped } from '../../src/catalogue/snapshot-reader.ts'
import { createCalendar, hourMs } from '../../src/common/calendar.ts'
import { loadConfig } from '../../src/config/load.ts'
import { protocolIn } from '../../src/provider/account.ts'
import { ProviderError } from '../../src/provider/errors.ts'
import type { ProviderProtocol } from '../../src/provider/protocol.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import type { Store } from '../../src/stores/store.ts'
import { type Cell, createGrid } from '../../src/weather/cell.ts'
import { longestUseMs, stepsWithin, usualLengths } from '../../src/weather/horizon.ts'
import { syntheticTimeline } from '../../src/weather/synthetic-timeline.ts'
import { type ManualClock, manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'

const grid = createGrid(0.1)
const cell = grid.cellOf(23.71, 90.41)
const otherCell = grid.cellOf(22.8, 89.5)
/** The provider gives this one only half a day. */
const briefCell = grid.cellOf(24.9, 91.9)
const briefLengths = stepsWithin({ quarterHours: 48, days: 10 })
const urls = { first: 'http://first.test', second: 'http://second.test' }
const runAt = Date.parse('2026-11-21T05:00:00Z')

/** Waits for what takes some turns of the event loop, such as a load. */
const turns = async () => {
  for (let turns = 0; turns < 50; turns += 1) await turn()
}

/** One instance. @param beside another, whose clock and store it shares */
const setUp = (
  t: Test,
  beside?: { readonly clock: ManualClock; readonly store: Store },
  freshness: 'age' | 'run' = 'age',
  places: readonly Pick<Cell, 'latitude' | 'longitude'>[] = [],
) => {
  const clock = beside?.clock ?? manualClock('2026-11-21T06:10:30Z')
  const background: (() => unknown)[] = []
  const every = (_ms: number, work: () => unknown) => {
    background.push(work)
    return () => void background.splice(background.indexOf(work), 1)
  }
  const polls: (() => unknown)[] = []
  const after = (ms: number, work: () => unknown) => {
    if (ms <= 100) polls.push(work)
    return () => {}
  }
  const timers = { every, after }
  const calendar = createCalendar('Asia/Dhaka')
  const store = beside?.store ?? openEmbeddedStore(':memory:', clock)
  const config = loadConfig({
    files: [],
    env: {
      ABOHAWA_CACHE__FRESHNESS: freshness,
      ABOHAWA_CACHE__PREFETCH_PLACES: `${places.length}`,
      ABOHAWA_PROVIDER__BASE_URL: urls.first,
      ABOHAWA_PROVIDER__FALLBACKS: JSON.stringify([{ baseUrl: urls.second, name: 'second' }]),
    },
  })
  const asked: string[] = []
  /** For how long stale weather was to be served when the provider was last asked; and until when it answers nothing. */
  const asking: { staleForMs: number; gate?: Promise<void> } = { staleForMs: 0 }
  const heartbeats: unknown[] = []
  /** Which upstreams have loaded, how their circuits changed, and how often the store went away. */
  const seen = { loaded: [] as unknown[], circuits: [] as string[], storeAway: 0 }
  const away = new Set<string>()
  let failure: ConstructorParameters<typeof ProviderError>[0] = 'provider_refused'
  /** A protocol of its own: another path, weight and identity. */
  const protocolOf = (baseUrl: string, staleForMs = 0): ProviderProtocol => ({
    ...protocolIn(config),
    identity: `protocol of ${baseUrl}`,
    weightPerCell: baseUrl === urls.first ? 2 : 7,
    requestFor: cells => ({
      path: `${baseUrl}/${cells.map(({ id }) => id).join(';')}`,
      maxBytes: 1_000,
      decode: async body => {
        asking.staleForMs = staleForMs
        for await (const _ of body);
        return cells.map(({ id }) =>
          syntheticTimeline(clock.now(), id === briefCell.id ? briefLengths : usualLengths, calendar),
        )
      },
    }),
    runs: {
      requestFor: () => ({ path: '/run', maxBytes: 1_000 }),
      decode: () => ({ initialisedAt: runAt - hourMs, availableAt: runAt, intervalMs: 6 * hourMs }),
    },
  })
  const upstream = openUpstream(config, {
    ...{ store, clock: { ...clock, timers }, instances: () => 1, settings: () => '', report: () => '' },
    observer: {
      ...silentObserver,
      onHeartbeat: fleet => void heartbeats.push(fleet),
      onLoaded: name => void seen.loaded.push(name),
      breaker: state => void seen.circuits.push(state),
      storeAway: () => {
        seen.storeAway += 1
      },
    },
    catalogue: { current: { bounds: shipped.bounds, all: () => places } as unknown as Catalogue },
    stubs: {
      protocolOf: ({ provider, cache }) => protocolOf(provider.baseUrl, cache.staleForMs),
      call: {
        bytes: async function* ({ path }) {
          asked.push(path)
          await asking.gate
          if (away.has(new URL(path).origin)) throw new ProviderError(failure, 'not here')
          yield* []
        },
        text: async () => '',
        stream: async () => {
          throw new Error('no operator is here')
        },
        close: async () => {},
      },
    },
  })
  t.teardown(async () => {
    await upstream.close()
    if (!beside) await store.close()
  })
  const spent = () =>
    upstream.accounts.all.map(
      ({ account }) => account.budget.state().windows.find(({ name }) => name === 'day')?.used,
    )
  const isStored = (baseUrl: string) =>
    store.hasBytes([keyFor(namespaceOf(baseUrl, protocolOf(baseUrl)), cell.id)])
  /** Runs the work that no request waits for once, after some time. */
  const tick = async (afterMs: number) => {
    clock.advance(afterMs)
    for (const work of background) await work()
    await turns()
  }
  /** Looks for what other instances have loaded. */
  const poll = () => {
    for (const work of polls.splice(0)) work()
  }
  /** From now on the upstreams that are away fail like this. */
  const failLike = (code: typeof failure) => {
    failure = code
  }
  return {
    ...{ upstream, config, clock, store, tick, poll, background, asked, asking, away, failLike, spent },
    ...{ isStored, heartbeats, seen },
  }
}

t.test('each upstream is asked, charged and stored by its own protocol', async t => {
  const { upstream, asked, spent, isStored, away, seen } = setUp(t)
  t.hasStrict(await upstream.timelines.read(cell), { outcome: 'miss', upstream: 'primary' })
  t.strictSame(asked.splice(0), [`${urls.first}/${cell.id}`])
  t.strictSame([spent(), await isStored(urls.first), await isStored(urls.second)], [[2, 0], [true], [false]])

  away.add(urls.first)
  await upstream.timelines.reload(cell)
  t.strictSame(asked, [`${urls.first}/${cell.id}`, `${urls.second}/${cell.id}`])
  t.hasStrict(await upstream.timelines.read(cell), { outcome: 'hit', upstream: 'second' })
  const [, ofSecond] = spent()
  t.strictSame([ofSecond, await isStored(urls.second)], [7, [true]])
  t.strictSame(seen.loaded, ['primary', 'second'])
})

t.test('what is kept warm is demand too, and no cell twice', async t => {
  const { upstream, config, clock } = setUp(t, undefined, 'age', [cell, briefCell])
  const { timelines } = upstream
  const demanded = (): number => timelines.demandPerDay() / 2
  const perCell = 86_400_000 / (config.cache.freshForMs + config.cache.freshForMs * 0.1)
  t.ok(Math.abs(demanded() / perCell - 2) < 0.2, `${demanded()} of ${perCell}`)
  const kept = demanded()
  await timelines.read(cell)
  await timelines.sendHeartbeat()
  t.equal(demanded(), kept)
  await timelines.read(upstream.grid.cellOf(25, 89))
  clock.advance(1)
  await timelines.sendHeartbeat()
  t.equal(demanded(), kept * 1.5)
})

t.test('each heartbeat is reported with the fleet that it found', async t => {
  const { upstream, heartbeats } = setUp(t)
  await upstream.timelines.sendHeartbeat()
  t.match(heartbeats, [{ instances: 1, wanted: 0 }])
})

t.test('an instance starts with what others have loaded, and leaves its demand when it ends', async t => {
  const first = setUp(t)
  t.strictSame(await first.upstream.start(), { warmed: 0, wanted: 0 })
  for (const one of [briefCell, cell]) await first.upstream.timelines.read(one)
  await first.upstream.close()
  t.strictSame(first.background, [], 'and does nothing any more')
  const second = setUp(t, first)
  t.strictSame(await second.upstream.start(), { warmed: 2, wanted: 2 })
  t.hasStrict(await second.upstream.timelines.read(cell), {
    outcome: 'hit',
    source: 'memory',
    upstream: 'primary',
  })
  t.match(await second.upstream.timelines.coverage(), { share: 1 / 2 }, 'each counts as one request')
  t.strictSame(second.asked, [])
  t.match(second.heartbeats, [{ wanted: 2 }])

  const { store, clock } = first
  await orderPurge(
    store,
    { namespaces: [], cells: [cell], now: clock.now() },
    { kind: 'soft', scope: { cell: cell.id } },
  )
  const third = setUp(t, first)
  await third.upstream.start()
  t.hasStrict(third.upstream.timelines.overview(cell), { state: 'stale' }, 'it knows the purges')
})

t.test('an instance knows the newest run and what others have spent from its start', async t => {
  const first = setUp(t)
  await first.upstream.timelines.read(cell)
  const { spend } = first.store
  first.store.spend = async given => {
    await turn()
    return spend(given)
  }
  const { upstream, spent } = setUp(t, first, 'run')
  await upstream.start()
  t.strictSame(spent(), [2, 0])
  await upstream.timelines.reload(cell)
  t.hasStrict(await upstream.timelines.explain(cell), { memory: { run: runAt }, shared: { run: runAt } })
})

t.test('a heartbeat finds what others have spent and loaded, and that the store is away', async t => {
  const first = setUp(t)
  const { timelines } = first.upstream
  const second = setUp(t, first)
  await timelines.read(cell)
  const namespaces = [namespaceOf(urls.first, first.upstream.account.protocol)]
  const base = { namespaces, cells: [cell], now: first.clock.now() }
  await orderPurge(first.store, base, { kind: 'hard', scope: { cell: cell.id } })
  for (const { upstream } of [first, second]) await upstream.timelines.readPurges()
  await second.upstream.timelines.read(cell)
  t.strictSame([timelines.overview(cell).state, first.spent()], ['absent', [2, 0]])
  await timelines.sendHeartbeat()
  await turns()
  t.strictSame([timelines.overview(cell).state, first.spent()], ['fresh', [4, 0]])

  const fails = async () => {
    throw new Error('away')
  }
  Object.assign(first.store, { heartbeat: fails, spend: fails })
  await timelines.sendHeartbeat()
  await turns()
  t.equal(first.seen.storeAway, 2, 'of each budget')
})

t.test('while two keys were here within an hour, neither takes a whole request', async t => {
  const { upstream, clock, asked } = setUp(t)
  const { timelines } = upstream
  await timelines.read(cell, 'one')
  for (const [ms, cells] of [
    [hourMs, 5],
    [1, 10],
  ] as const) {
    clock.advance(ms)
    asked.length = 0
    const reads = Array.from({ length: 10 }, (_, i) => grid.cellOf(21 + cells / 10, 90 + i / 10))
    await Promise.all(reads.map(one => timelines.read(one, 'other')))
    t.equal(asked[0]?.split(';').length, cells)
  }
})

t.test('a gateway that stops leaves to others what it has not requested, and nothing else', async t => {
  let renewAll = (): void => {}
  const { setInterval: begin } = globalThis
  const recorded = (work: () => void) => {
    renewAll = work
    return begin(() => {}, hourMs)
  }
  const restore = t.intercept(globalThis, 'setInterval', { value: recorded }).restore
  const first = setUp(t)
  restore()
  const second = setUp(t, first)
  const [renewed, released]: [string[], string[]] = [[], []]
  const { renewLease, releaseLease } = first.store
  first.store.renewLease = (key, ...given) => {
    renewed.push(key)
    return renewLease(key, ...given)
  }
  first.store.releaseLease = (key, ...given) => {
    released.push(key)
    return releaseLease(key, ...given)
  }
  const keyOf = ({ id }: Cell) => keyFor(namespaceOf(urls.first, first.upstream.account.protocol), id)
  const gate = Promise.withResolvers<void>()
  first.asking.gate = gate.promise
  const loaded = first.upstream.timelines.read(cell)
  await until('it is requested', () => first.asked.length)
  void first.upstream.timelines.read(otherCell)
  await until('it is queued', () => first.upstream.account.provider.waiting())
  const left = second.upstream.timelines.read(otherCell)

  let isClosed = false
  const closed = first.upstream.close().then(() => {
    isClosed = true
  })
  await turns()
  t.strictSame([isClosed, released], [false, [keyOf(otherCell)]])
  second.poll()
  await turns()
  t.strictSame(second.asked, [`${urls.first}/${otherCell.id}`])
  renewed.length = 0
  renewAll()
  t.strictSame(renewed, [keyOf(cell)], 'the lease of the request under way')
  gate.resolve()
  await closed
  t.hasStrict(await Promise.all([loaded, left]), [{ outcome: 'miss' }, { outcome: 'miss' }])
})

t.test('a cell that the provider refuses backs off up to ten minutes', async t => {
  const { upstream, clock, away } = setUp(t)
  away.add(urls.first).add(urls.second)
  let lastMs = 0
  for (let i = 0; i < 8; i += 1) {
    await upstream.timelines.reload(cell)
    const until = (await upstream.timelines.explain(cell)).lastFailure?.backoffUntil ?? 0
    lastMs = until - clock.now()
    clock.set(until)
  }
  // With jitter.
  t.ok(lastMs >= 400_000 && lastMs <= 600_000, `${lastMs}`)
})

t.test('a recovered provider ends all backoff, and a raised budget that of cells without room', async t => {
  const { upstream, config, tick, asked, away, failLike, seen } = setUp(t)
  const { timelines } = upstream
  // A log that begins purges everything.
  await timelines.readPurges()
  let elapsedMs = 0
  t.intercept(performance, 'now', { value: () => elapsedMs })
  away.add(urls.first).add(urls.second)
  failLike('provider_timeout')
  for (const one of [cell, otherCell]) await t.rejects(async () => timelines.read(one))
  t.strictSame(seen.circuits.splice(0), ['open'])
  asked.length = 0
  await t.rejects(async () => timelines.read(cell), { code: 'provider_timeout' })
  t.strictSame(asked, [], 'it backs off')
  away.clear()
  elapsedMs = 60_000
  await tick(0)
  t.strictSame(seen.circuits, ['half-open', 'closed'])
  t.hasStrict(await timelines.read(cell), { outcome: 'miss' })

  away.add(urls.first).add(urls.second)
  failLike('provider_refused')
  await t.rejects(async () => timelines.read(briefCell))
  away.clear()
  const withDay = (perDay: number): typeof config => {
    const budget = { ...config.provider.budget, perDay }
    const fallbacks = config.provider.fallbacks.map(fallback => ({ ...fallback, budget }))
    return { ...config, provider: { ...config.provider, budget, fallbacks } }
  }
  upstream.applyBudget(withDay(1))
  await t.rejects(async () => timelines.read(otherCell), { code: 'provider_limited' })
  upstream.applyBudget(config)
  t.hasStrict(await timelines.read(otherCell), { outcome: 'miss' })
  await t.rejects(async () => timelines.read(briefCell), { code: 'provider_refused' })
})

t.test('a cell in demand is refreshed when it is due, and again after its backoff', async t => {
  const { upstream, tick, asked, away } = setUp(t)
  await upstream.start()
  await upstream.timelines.read(cell)
  const loads = async (afterMs: number) => {
    asked.length = 0
    await tick(afterMs)
    return asked.length
  }
  t.equal(await loads(60_000), 0)
  // Requested since its load.
  await upstream.timelines.read(cell)
  away.add(urls.first).add(urls.second)
  t.equal(await loads(4_500_000), 2, 'the second upstream after the first')
  t.equal(await loads(9_000), 0)
  t.equal(await loads(10_000), 2)
  away.clear()
  t.equal(await loads(60_000), 1)
  t.equal(await loads(60_000), 0)
})

t.test('a changed freshness makes cells due at the next tick', async t => {
  const { upstream, config, clock, tick, asked } = setUp(t)
  const { timelines } = upstream
  await timelines.read(cell)
  clock.advance(1_000)
  await timelines.read(cell)
  const { memory } = await timelines.explain(cell)
  t.equal(Math.floor(timelines.nextWorkAt()), memory?.dueAt)
  await tick(65_000)
  asked.length = 0
  upstream.applyFreshness({ ...config, cache: { ...config.cache, freshForMs: 50_000 } })
  await tick(500)
  t.strictSame(asked, [`${urls.first}/${cell.id}`])
})

t.test('a changed freshness counts for what is cached and for what is requested next', async t => {
  const { upstream, config, clock, asking } = setUp(t)
  const { timelines } = upstream
  await timelines.read(cell)
  t.equal(asking.staleForMs, config.cache.staleForMs)
  const before = await timelines.coverage()
  clock.advance(60_000)
  t.hasStrict(timelines.overview(cell), { state: 'fresh' })
  const staleForMs = config.cache.staleForMs / 2
  upstream.applyFreshness({ ...config, cache: { ...config.cache, freshForMs: 1_000, staleForMs } })
  t.hasStrict(timelines.overview(cell), { state: 'stale' })
  t.ok((await timelines.coverage()).allowedMs < before.allowedMs)
  await timelines.reload(cell)
  t.equal(asking.staleForMs, staleForMs)
})

t.test('operators see each cell in demand, and how long its weather lasts', async t => {
  const { upstream, config, clock, away } = setUp(t)
  const { timelines } = upstream
  const { allowedMs, ...none } = await timelines.coverage()
  t.strictSame(none, { share: null, leastMs: null })
  t.strictSame(timelines.overview(cell), { state: 'absent', fetchedAt: null, demand: 0 })
  const fetchedAt = clock.now()
  const briefEnd = Date.parse('2026-11-21T18:00:00Z')
  for (const one of [briefCell, cell, cell, cell]) await timelines.read(one)
  const leastMs = briefEnd - fetchedAt
  t.strictSame(await timelines.coverage(), { allowedMs, share: 3 / 4, leastMs })
  const shorter = { ...config.cache, freshForAtMostMs: 10_000_000, staleForMs: 0 }
  const staleForMs = leastMs - longestUseMs(shorter)
  upstream.applyFreshness({ ...config, cache: { ...shorter, staleForMs } })
  t.strictSame(await timelines.coverage(), { allowedMs: leastMs, share: 1, leastMs })
  upstream.applyFreshness(config)
  t.equal(await timelines.firstExpiryAt(), briefEnd)
  t.strictSame(timelines.mostRequested(1), [{ cell, requests: 3 }])
  t.strictSame(timelines.overview(cell), { state: 'fresh', fetchedAt, demand: 3 })
  t.has(await timelines.explain(cell), { loading: false, lastFailure: null, lastRequestedAt: fetchedAt })
  t.equal(timelines.cached().entries, 2)

  away.add(urls.first).add(urls.second)
  await timelines.reload(cell)
  t.strictSame(timelines.overview(cell), { state: 'fresh', fetchedAt, demand: 3 }, 'what it has is fresh')
  clock.advance(2 * hourMs)
  t.strictSame(timelines.mostRequested(1), [{ cell, requests: 3 / 16 }], 'half in half an hour')
  t.hasStrict(timelines.overview(cell), { state: 'failed', fetchedAt })
  t.hasStrict(timelines.overview(briefCell), { state: 'stale', fetchedAt })
  await t.rejects(async () => timelines.read(otherCell))
  t.strictSame(timelines.overview(otherCell), { state: 'failed', fetchedAt: null, demand: 1 })
  t.equal(await timelines.firstExpiryAt(), briefEnd, 'one that the provider refuses does not count')
})
