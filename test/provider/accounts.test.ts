// Without it a hanging upstream could use up the time of the next, and operators would not see how it failed.

import type { RequestListener } from 'node:http'
import t, { type Test } from 'tap'
import { silentObserver } from '../../src/cache/silent-observer.ts'
import { loadConfig } from '../../src/config/load.ts'
import { budgetSettingsIn, horizonOf, protocolIn } from '../../src/provider/account.ts'
import { type AccountStubs, openAccounts } from '../../src/provider/accounts.ts'
import { garbled, notSent } from '../../src/provider/errors.ts'
import type { SpendingStore } from '../../src/stores/spending-store.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { patienceMs, until } from '../support/until.ts'
import { answering, anyTimeline, cellsFrom } from './provider-set-up.ts'

/** Of a provider that answers; a busy machine delays it. */
const patient = { waitForMs: patienceMs, totalTimeoutMs: patienceMs }

type Given = typeof patient & { freshness?: 'age' | 'run'; stubs?: AccountStubs }

const turns = async () => {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
}

const setUp = async (
  t: Test,
  upstreams: number,
  answer: RequestListener,
  { waitForMs, totalTimeoutMs, freshness = 'age', stubs }: Given = patient,
) => {
  const waits: number[] = []
  const counts = { begun: 0, ended: 0, timersEnded: 0 }
  const hand = manualClock('2026-11-21T06:10:30Z')
  const timers = {
    every: () => () => {
      counts.timersEnded += 1
    },
    // The time passes as soon as it is waited for.
    after: (ms: number, work: () => unknown) => {
      waits.push(ms)
      const due = setImmediate(() => {
        hand.advance(ms)
        work()
      })
      return () => clearImmediate(due)
    },
  }
  const clock = { ...hand, timers }
  const embedded = openEmbeddedStore(':memory:', clock)
  const store: SpendingStore = {
    ...embedded,
    spend: async spending => {
      counts.begun += 1
      const reply = await embedded.spend(spending)
      await turns()
      counts.ended += 1
      return reply
    },
  }
  const urls: string[] = []
  for (let i = 0; i < upstreams; i++) urls.push((await startScriptedProvider(t, answer)).url)
  const [baseUrl = '', ...others] = urls
  const fallbacks = others.map((url, i) => ({ baseUrl: url, name: `other${i}` }))
  const env = {
    ABOHAWA_CACHE__FRESHNESS: freshness,
    ABOHAWA_PROVIDER__BASE_URL: baseUrl,
    ABOHAWA_PROVIDER__FALLBACKS: JSON.stringify(fallbacks),
  }
  const config = loadConfig({ files: [], env })
  const begun = performance.now()
  const outcomes: string[] = []
  const details: unknown[] = []
  const accounts = openAccounts(
    {
      ...config,
      cache: { ...config.cache, waitForMs },
      provider: { ...config.provider, totalTimeoutMs, retries: 0 },
    },
    {
      ...{
        store,
        clock,
        instances: () => 1,
        recentConsumers: () => ['other', 'greedy'],
        tracing: undefined,
        stubs,
      },
      observerOf: name => ({
        ...silentObserver,
        request: (outcome, points, ms, reason) => {
          outcomes.push(`${name ?? 'primary'} ${outcome}`)
          details.push([points, ms >= 0 && ms <= performance.now() - begun, reason])
        },
      }),
    },
  )
  t.teardown(async () => {
    await accounts.close()
    await embedded.close()
  })
  const [cell] = cellsFrom(23, 1)
  if (!cell) throw new Error('there is a cell')
  const load = async (i: number): Promise<string> =>
    (await accounts.all[i]?.account.provider.load(cell).catch((error: Error) => error.message)) as string
  return { accounts, config, clock, load, outcomes, details, waits, counts, cell }
}

const hangs: RequestListener = () => {}
const fails: RequestListener = (_, response) => void response.writeHead(500).end('{"reason":"it burns"}')

t.test(
  'a call may take a third of the time that a reader waits, and all its time with the last upstream',
  async t => {
    const brief = { waitForMs: 60, totalTimeoutMs: 45 }
    const { load } = await setUp(t, 3, hangs, brief)
    const late = 'the response was not complete within'
    for (const [i, ms] of [20, 20, 45].entries()) t.equal(await load(i), `${late} ${ms} ms`)
    const alone = await setUp(t, 1, hangs, brief)
    t.equal(await alone.load(0), `${late} 45 ms`)
    const longer = await setUp(t, 2, hangs, { ...brief, waitForMs: 600 })
    t.equal(await longer.load(0), `${late} 45 ms`, 'and never more than that')
  },
)

t.test(
  'two failures open the circuit of an upstream that has another behind it, three that of the last',
  async t => {
    const { accounts, load } = await setUp(t, 2, fails)
    for (const [i, failures] of [2, 3].entries()) {
      for (let failed = 1; failed <= failures; failed++) {
        t.equal(accounts.all[i]?.account.breaker.state().state, 'closed')
        await load(i)
      }
      t.equal(accounts.all[i]?.account.breaker.state().state, 'open')
    }
  },
)

t.test('how each upstream failed last is known, and what was not sent is no failure', async t => {
  const { accounts, clock, load, outcomes } = await setUp(t, 2, fails)
  const [first, second] = accounts.all
  const failedAt = clock.now()
  for (let i = 0; i < 3; i++) {
    await load(0)
    clock.advance(i === 0 ? 0 : 1_000)
  }
  t.strictSame(outcomes, ['primary provider_failing', 'primary provider_failing'])
  const failure = { at: failedAt, code: 'provider_failing', message: 'the provider answered 500: it burns' }
  t.hasStrict(first.account.lastRequests, { successAt: null, failure })
  t.strictSame(second?.account.lastRequests, { successAt: null, failure: null })
})

t.test('the last answer is known, and what this gateway did wrong is no failure of the provider', async t => {
  let error: Error | undefined
  const protocol = answering(cells => {
    if (error) throw error
    return cells.map(() => anyTimeline)
  })
  const { accounts, clock, load, details } = await setUp(t, 1, fails, {
    ...patient,
    stubs: { protocolOf: () => protocol },
  })
  const { lastRequests } = accounts.first
  const successAt = clock.now()
  for (error of [undefined, notSent('x'), new TypeError('a bug')]) {
    await load(0)
    t.strictSame(lastRequests, { successAt, failure: null })
    clock.advance(1_000)
  }
  error = garbled('no_value', 'empty', true)
  await load(0)
  const failure = { at: clock.now(), code: 'provider_garbled', message: 'empty' }
  t.strictSame(lastRequests, { successAt, failure })
  const reasons = [undefined, 'the request was not sent: x', 'a bug', 'empty']
  t.strictSame(
    details,
    reasons.map(reason => [1, true, reason]),
  )
})

t.test('what one element of an answer lacks is reported where it brought no weather at all', async t => {
  const empty: RequestListener = (_, response) => void response.end('{}')
  const { accounts, load, details } = await setUp(t, 1, empty)
  await load(0)
  t.match(details, [[1, true, /latitude: expected a number, got nothing$/]])
  t.match(accounts.first.lastRequests, { failure: { code: 'provider_garbled', message: /latitude/ } })
})

t.test('a cold cell waits for a budget half as long as a reader, with one upstream and with two', async t => {
  for (const upstreams of [1, 2])
    for (const [waitForMs, waited] of [
      [64_000, 32_000],
      [63_998, 0],
    ] as const) {
      const stubs = { protocolOf: () => answering() }
      const { accounts, clock, cell, waits } = await setUp(t, upstreams, fails, {
        ...patient,
        waitForMs,
        stubs,
      })
      for (const { account } of accounts.all)
        await (await account.budget.reserve(200, 'cold')).settle('answered')
      const begun = clock.now()
      const load = accounts.load(cell, 'cold', ({ account }) => account.provider.load(cell))
      if (waited === 0) await t.rejects(load, { name: 'OutOfBudgetError' })
      else t.equal(await load, anyTimeline)
      t.equal(clock.now() - begun, waited)
      const times = upstreams === 1 ? 32 : 1
      t.strictSame(waits, waited === 0 ? [] : Array(times).fill(waited / times))
    }
})

t.test('new settings hold for every upstream, and for whom a share was used up', async t => {
  const { accounts, config, cell, load, counts } = await setUp(t, 2, fails)
  const pathOf = ({ account }: (typeof accounts.all)[0]) => account.protocol.requestFor([cell]).path
  const before = accounts.all.map(pathOf)
  const { first } = accounts
  await first.budget.reserve(0, 'cold', [
    { consumer: 'other', points: 1 },
    { consumer: 'greedy', points: 50 },
  ])
  await t.rejects(first.provider.load(cell, 'cold', 'greedy'), { code: 'key_share_used_up' })
  t.ok(first.provider.throttled('greedy', 'cold'))
  const { provider, weather } = config
  const larger = <Given extends Pick<typeof provider, 'budget'>>(given: Given): Given => ({
    ...given,
    budget: { ...given.budget, perMinute: 6_000 },
  })
  const next = {
    ...config,
    weather: { ...weather, hourlyHours: 168 },
    provider: { ...larger(provider), fallbacks: provider.fallbacks.map(larger) },
  }
  accounts.applyHorizon(next)
  accounts.applyBudgets(next)
  for (const [i, upstream] of accounts.all.entries()) {
    t.not(pathOf(upstream), before[i])
    t.match(upstream.account.budget.state().windows[0], { limit: 6_000 })
  }
  t.equal(first.provider.throttled('greedy', 'cold'), undefined)
  const { begun } = counts
  await accounts.reconcile()
  t.equal(counts.ended, begun + 2)
  t.equal(await load(0), 'the provider answered 500: it burns')
})

t.test('runs are followed at each upstream, and what is under way ends before it is closed', async t => {
  const gate = Promise.withResolvers<void>()
  const available = ['2026-11-21T06:00:00Z', '2026-11-21T01:00:00Z']
  const metas = available.map(at => ({
    last_run_initialisation_time: Date.parse(at) / 1000 - 3_600,
    last_run_availability_time: Date.parse(at) / 1000,
    update_interval_seconds: 21_600,
  }))
  let [closedCalls, out] = [0, 0]
  const call: AccountStubs['call'] = {
    text: async () => JSON.stringify(metas.shift()),
    bytes: async function* () {},
    stream: () => Promise.reject(new Error('is not called')),
    close: async () => {
      closedCalls += 1
    },
  }
  const protocolOf: AccountStubs['protocolOf'] = config => ({
    ...protocolIn(config),
    requestFor: cells => ({
      ...{ path: '/', maxBytes: 1 },
      decode: async () => {
        out += 1
        await gate.promise
        return cells.map(() => anyTimeline)
      },
    }),
  })
  const { accounts, load, counts } = await setUp(t, 2, fails, {
    ...{ ...patient, freshness: 'run' },
    stubs: { call, protocolOf },
  })
  await accounts.poll()
  const [one, two] = accounts.all.map(({ account }) => account.runs?.nextAt())
  t.ok((two ?? 0) < (one ?? 0))
  t.equal(accounts.nextRunAt(), two, 'the first of them')
  const [first, second] = available.map(at => [{ availableAt: Date.parse(at) }])
  for (const name of ['primary', undefined]) t.match(accounts.runsOf(name), first)
  t.match(accounts.runsOf('other0'), second)

  const loads = accounts.all.map((_, i) => load(i))
  let ended = ''
  void accounts.settled().then(() => (ended += 'settled '))
  await until('both are out', () => out === 2)
  void accounts.first.budget.reserve(1, 'cold')
  const closed = accounts.close().then(() => (ended += 'closed'))
  await turns()
  t.strictSame([ended, closedCalls], ['', 2])
  gate.resolve()
  await Promise.all(loads)
  await closed
  t.equal(ended, 'settled closed')
  t.match(counts, { begun: counts.ended, timersEnded: 2 })
})

t.test('what gateways of one account share follows from the configuration', async t => {
  const configOf = (env: Record<string, string>) => loadConfig({ files: [], env })
  const usual = configOf({})
  t.strictSame(horizonOf(usual), { quarterHours: 110, days: 10 })
  // Gateways of other releases count under this name too.
  t.equal(budgetSettingsIn(usual).provider, '2c4cd5300bdb')
  t.equal(budgetSettingsIn(usual).outageShare, null)
  const { outageShare } = usual.provider
  t.type(outageShare, 'number')
  for (const env of [{ ABOHAWA_REDIS__URL: 'redis://127.0.0.1' }, { ABOHAWA_SERVER__REUSE_PORT: 'true' }])
    t.match(budgetSettingsIn(configOf(env)), { outageShare })
})

t.test('accounts are named by who they are, whichever is asked first', async t => {
  const one = await setUp(t, 1, fails)
  t.strictSame([one.accounts.all[0].name, one.accounts.id], [undefined, one.accounts.first.name])
  const two = await setUp(t, 2, fails)
  t.strictSame(
    two.accounts.all.map(({ name }) => name),
    ['primary', 'other0'],
  )
  const names = two.accounts.all.map(({ account }) => account.name)
  t.equal(new Set(names).size, 2)
  t.equal(two.accounts.id, names.toSorted().join(' '))
  t.strictSame([two.accounts.nextRunAt(), two.accounts.runsOf('other0')], [Number.POSITIVE_INFINITY, []])
})
