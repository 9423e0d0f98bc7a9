// New options for the parts that speak to the provider, while they are at work.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { createBreaker } from '../../src/provider/breaker.ts'
import type { BudgetSettings } from '../../src/provider/budget.ts'
import { ProviderError } from '../../src/provider/errors.ts'
import { freeLimits } from '../../src/provider/open-meteo/limits.ts'
import { createProviderCall } from '../../src/provider/provider-call.ts'
import { openEmbeddedStore } from '../../src/stores/embedded/embedded-store.ts'
import { manualClock } from '../support/manual-clock.ts'
import { openMeteo } from '../support/open-meteo.ts'
import { closureIn, usedIn } from '../support/spending.ts'
import { until } from '../support/until.ts'
import { budgetOn } from './budget-set-up.ts'

const settings: BudgetSettings = {
  provider: 'acc1',
  limits: freeLimits,
  reserve: 0.1,
  consumerShare: 0.25,
  outageShare: null,
  longestRequestMs: 30_000,
}
const none = { minute: null, hour: null, day: null }

const startBudget = (t: Test, options: Partial<BudgetSettings> = {}) => {
  const clock = manualClock('2026-11-21T06:10:30Z')
  const store = openEmbeddedStore(':memory:', clock)
  t.teardown(() => store.close())
  return { clock, store, ...budgetOn(store, clock, { ...settings, ...options }) }
}
const used = ({ windows }: { windows: readonly { used: number }[] }) => windows.map(each => each.used)

t.test('higher limits hold for the next grant, and what was spent stays spent', async t => {
  const { budget } = startBudget(t)
  t.equal((await budget.reserve(999, 'cold')).points, 200)
  budget.apply({ ...settings, limits: { ...freeLimits, minute: 900 } })
  t.equal((await budget.reserve(999, 'cold')).points, 100)
  t.strictSame(used(budget.state()), [900, 900, 900])
  budget.apply({ ...settings, limits: none })
  t.equal((await budget.reserve(999, 'cold')).points, 999)
  budget.apply(settings)
  t.equal((await budget.reserve(1, 'cold')).points, 0, 'and the former limit is reached')
})

t.test('another reserve holds for the next grant', async t => {
  const { budget } = startBudget(t)
  t.equal((await budget.reserve(999, 'refresh')).points, 180)
  budget.apply({ ...settings, reserve: 0 })
  t.equal((await budget.reserve(999, 'refresh')).points, 20)
})

t.test('a larger day ends the stretch, which otherwise never falls within a day', async t => {
  const { budget } = startBudget(t, { limits: { ...none, day: 1_000 } })
  const stretch = () => budget.stretch(10_000)
  const before = stretch()
  t.ok(before > 5, `${before}`)
  budget.apply({ ...settings, limits: { ...none, day: 100_000 } })
  t.equal(stretch(), 1)
})

t.test(
  'another account begins with its own counts, and what comes late of the former is settled there',
  async t => {
    const { budget, store, clock } = startBudget(t)
    const former = await budget.reserve(200, 'cold')
    const until = Date.parse('2026-11-21T07:00:00Z')
    budget.apply({ ...settings, provider: 'acc2' })
    t.notOk(former.isValid(), 'a request is sent for the account that it was reserved at')
    t.notOk(former.isCurrent())
    await former.limited(until, 'daily')
    t.equal(budget.closedUntil(), null)
    const present = await budget.reserve(50, 'cold')
    t.equal(present.points, 50)
    t.ok(present.isValid() && present.isCurrent())
    await former.settle('failed')
    t.strictSame(used(budget.state()), [150, 150, 150])
    t.match(
      await closureIn(store, 'acc1', clock.now()),
      { closedUntil: until, reason: 'daily' },
      'for the whole fleet',
    )
    t.match(await closureIn(store, 'acc2', clock.now()), { closedUntil: null })
    t.strictSame(
      await usedIn(store, 'acc1', [`day:${Math.floor(clock.now() / 86_400_000)}`], clock.now()),
      [1_000],
    )
    budget.apply(settings)
    t.equal(budget.closedUntil(), until, 'and it is still closed')
    t.strictSame(used(budget.state()), [1, 1, 1])
  },
)

t.test('a longer timeout charges the windows that a request may then end in', async t => {
  const { budget } = startBudget(t, { longestRequestMs: 1_000 })
  await budget.reserve(1, 'cold')
  const windowsOf = async () => (await budget.reserve(1, 'cold')).isValid()
  t.ok(await windowsOf())
  const granted = await budget.reserve(1, 'cold')
  budget.apply({ ...settings, longestRequestMs: 60_000 })
  t.notOk(granted.isValid(), 'a grant of before does not cover the next minute')
  t.ok(await windowsOf())
})

t.test('the breaker counts to the new number, and waits as long as it says', async t => {
  const breaker = createBreaker(
    { after: 3, halfOpenAfterMs: 60_000, halfOpenAfterAtMostMs: 60_000 },
    manualClock(),
    () => {},
  )
  const fail = () =>
    breaker
      .run(async () => {
        throw new ProviderError('provider_failing', 'as told')
      })
      .catch(() => breaker.state().state)
  t.equal(await fail(), 'closed')
  breaker.apply({ after: 2, halfOpenAfterMs: 1, halfOpenAfterAtMostMs: 2 })
  t.equal(await fail(), 'open')
  await until('a probe is due', breaker.isProbeDue)
  t.equal(await breaker.run(async () => 'well'), 'well')
  t.equal(breaker.state().state, 'closed')
})

t.test('calls under way end as they began, and the next take the new key and timeouts', async t => {
  const waiting: ServerResponse[] = []
  const seen: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers)
    if (request.url === '/wait') waiting.push(response)
    else if (request.url !== '/never') response.end('now')
  })
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  const options = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    apiKey: 'one',
    connectTimeoutMs: 1_000,
    timeoutMs: 20_000,
    bodyTimeoutMs: 20_000,
    totalTimeoutMs: 20_000,
    maxConcurrent: 1,
  }
  const call = createProviderCall(options, { protocol: openMeteo, clock: manualClock() })
  t.teardown(async () => {
    await call.close()
    server.closeAllConnections()
    server.close()
  })
  const maxBytes = 1_000
  const first = call.text({ path: '/wait', maxBytes })
  await until('it is asked', () => waiting.length === 1)
  call.apply({ ...options, apiKey: 'two', maxConcurrent: 2, timeoutMs: 50 })
  t.equal(await call.text({ path: '/', maxBytes }), 'now', 'although the only connection of before is busy')
  t.match(JSON.stringify(seen[0]), '"one"')
  t.match(JSON.stringify(seen[1]), '"two"')
  await t.rejects(call.text({ path: '/never', maxBytes }), {
    code: 'provider_timeout',
    message: /within 50 ms/,
  })
  call.apply({ ...options, totalTimeoutMs: 40 })
  await t.rejects(call.text({ path: '/never', maxBytes }), { message: /not whole within 40 ms/ })
  waiting[0]?.end('at last')
  t.equal(await first, 'at last', 'the timeout of before')
  const last = call.text({ path: '/wait', maxBytes })
  await until('it is asked', () => waiting.length === 2)
  call.apply(options)
  const closed = call.close()
  waiting[1]?.end('the end')
  t.equal(await last, 'the end')
  await closed
})

t.test('a raised limit lifts what it held back, and a lowered one lifts nothing', async t => {
  const { budget, clock } = startBudget(t)
  const refusedAt = clock.now()
  t.notOk(budget.isLifted(refusedAt))
  budget.apply({ ...settings, limits: { ...none, day: 300 } })
  clock.advance(1_000)
  const limitedAt = clock.now()
  budget.apply({ ...settings, limits: { ...none, day: 200 } })
  t.notOk(budget.isLifted(limitedAt + 60_000))
  budget.apply({ ...settings, limits: { ...none, day: 400 } })
  t.ok(budget.isLifted(limitedAt))
})
