// Without it a hanging upstream could use up the time of the next, and operators would not see how it failed.

import type { RequestListener } from 'node:http'
import t, { type Test } from 'tap'
import { silentObserver } from '../../src/cache/silent-observer.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openAccounts } from '../../src/provider/accounts.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { patienceMs } from '../support/until.ts'
import { cellsFrom } from './provider-set-up.ts'

/** Of a provider that answers; a busy machine delays it. */
const patient = { waitForMs: patienceMs, totalTimeoutMs: patienceMs }

const setUp = async (
  t: Test,
  upstreams: number,
  answer: RequestListener,
  { waitForMs, totalTimeoutMs } = patient,
) => {
  const clock = manualClock('2026-11-21T06:10:30Z')
  const store = openEmbeddedStore(':memory:', clock)
  const urls: string[] = []
  for (let i = 0; i < upstreams; i++) urls.push((await startScriptedProvider(t, answer)).url)
  const [baseUrl = '', ...others] = urls
  const fallbacks = others.map((url, i) => ({ baseUrl: url, name: `other${i}` }))
  const env = {
    ABOHAWA_CACHE__FRESHNESS: 'age',
    ABOHAWA_PROVIDER__BASE_URL: baseUrl,
    ABOHAWA_PROVIDER__FALLBACKS: JSON.stringify(fallbacks),
  }
  const config = loadConfig({ files: [], env })
  const outcomes: string[] = []
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
        recentConsumers: () => [],
        tracing: undefined,
        stubs: undefined,
      },
      observerOf: name => ({
        ...silentObserver,
        request: outcome => outcomes.push(`${name ?? 'primary'} ${outcome}`),
      }),
    },
  )
  t.teardown(async () => {
    await accounts.close()
    await store.close()
  })
  const [cell] = cellsFrom(23, 1)
  if (!cell) throw new Error('there is a cell')
  const load = async (i: number): Promise<string> =>
    (await accounts.all[i]?.account.provider.load(cell).catch((error: Error) => error.message)) as string
  return { accounts, clock, load, outcomes }
}

const hangs: RequestListener = () => {}
const fails: RequestListener = (_, response) => void response.writeHead(500).end('{"reason":"it burns"}')

t.test(
  'a call may take a third of the time that a reader waits, and all its time with the last upstream',
  async t => {
    const brief = { waitForMs: 60, totalTimeoutMs: 45 }
    const { load } = await setUp(t, 3, hangs, brief)
    for (const [i, ms] of [20, 20, 45].entries()) t.match(await load(i), `not complete within ${ms} ms`)
    const alone = await setUp(t, 1, hangs, brief)
    t.match(await alone.load(0), 'not complete within 45 ms')
    const longer = await setUp(t, 2, hangs, { ...brief, waitForMs: 600 })
    t.match(await longer.load(0), 'not complete within 45 ms', 'and never more than that')
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
  const failure = { at: failedAt, code: 'provider_failing', message: 'it burns' }
  t.match(first.account.lastRequests, { successAt: null, failure })
  t.strictSame(second?.account.lastRequests, { successAt: null, failure: null })
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
