// When an outage begins and ends, and which failures belong to it.

import t from 'tap'
import { AbohawaError } from '../../src/common/errors.ts'
import { createSelfReport } from '../../src/operate/instance-report.ts'
import { ProviderError } from '../../src/provider/errors.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { openOutages } from '../../src/telemetry/outages.ts'
import { manualClock } from '../support/manual-clock.ts'

const setUp = (t: { teardown(fn: () => unknown): void }) => {
  const clock = manualClock()
  const lines: { msg: string; outage: string; code?: string; causes?: object; reconciled?: number }[] = []
  const log = createLog('info', { write: line => void lines.push(JSON.parse(line)) })
  const outages = openOutages(log, clock, () => 0)
  t.teardown(outages.close)
  const told = () => lines.map(({ outage, msg }) => `${outage}: ${msg}`)
  const fail = (code: ConstructorParameters<typeof ProviderError>[0], id = 'a') =>
    outages.loadFailed({ id, purpose: 'refresh', error: new ProviderError(code, 'x'), usableUntil: null })
  return { clock, lines, outages, told, fail }
}
const cause = { code: 'provider_timeout', reason: 'no answer' }

t.test('an open circuit begins it with the first failure as cause, a closed one ends it', async t => {
  const { lines, outages, told, fail } = setUp(t)
  outages.requested(cause)
  outages.requested({ code: 'provider_failing', reason: 'later' })
  outages.breaker('open')
  t.ok(fail('provider_circuit_open'))
  outages.breaker('half-open')
  outages.requested(undefined)
  t.strictSame(told(), ['provider: outage begins'], 'until the circuit is closed')
  outages.breaker('closed')
  t.strictSame(told(), ['provider: outage begins', 'provider: outage is over'])
  t.match(lines[0], cause)
  t.strictSame(lines[1]?.causes, { provider_circuit_open: 1 })
})

t.test('three failed loads in a row begin one, but not used-up limits', async t => {
  const { outages, told, fail } = setUp(t)
  for (let i = 0; i < 100; i++) t.notOk(fail('provider_limited'))
  t.notOk(fail('provider_refused'))
  t.notOk(fail('provider_refused'))
  outages.requested(undefined)
  t.notOk(fail('provider_refused'))
  t.notOk(fail('provider_refused'))
  t.strictSame(told(), [])
  t.ok(fail('provider_refused'))
  t.strictSame(told(), ['provider: outage begins'])
  outages.requested(undefined)
  t.strictSame(told().slice(1), ['provider: outage is over'])
})

t.test('the store is away once, whoever can’t reach it, and back with the last', async t => {
  const { clock, lines, outages, told } = setUp(t)
  outages.storeAway('redis', 'connect ECONNREFUSED')
  outages.storeAway('redis', 'connect ECONNREFUSED')
  outages.storeAway('quota', 'x')
  outages.sharedTierFailed('read')
  outages.storeAway('budget', 'x')
  outages.storeBack('redis')
  outages.storeBack('quota', { reconciled: 12 })
  t.strictSame(told(), ['store: outage begins'])
  t.match(outages.open(), [
    { outage: 'store', since: clock.now(), reason: 'connect ECONNREFUSED', failures: 4 },
  ])
  outages.storeBack('budget')
  t.strictSame(told(), ['store: outage begins', 'store: outage is over'])
  t.match(lines[0], { reason: 'connect ECONNREFUSED', code: 'store_unavailable' })
  t.strictSame(outages.open(), [])
  t.match(lines[1], { causes: { redis: 1, quota: 1, read: 1, budget: 1 }, reconciled: 12 })
})

t.test('a 500 belongs to the outage that caused it, and to no other', async t => {
  const { lines, outages } = setUp(t)
  const ofStore = new AbohawaError('store_unavailable', 'x')
  const ofProvider = new AbohawaError('provider_circuit_open', 'x')
  t.notOk(outages.answered500(ofStore))
  outages.storeAway('redis', 'x')
  t.ok(outages.answered500(ofStore))
  t.notOk(outages.answered500(ofProvider))
  t.notOk(outages.answered500(new TypeError('x')))
  outages.breaker('open')
  t.ok(outages.answered500(ofProvider))
  t.ok(outages.answered500(new AbohawaError('waited_too_long', 'x')))
  outages.storeBack('redis')
  outages.breaker('closed')
  t.match(lines.at(-2), { outage: 'store', errors: 5 })
  t.match(lines.at(-1), { outage: 'provider', errors: 2 })
})

t.test('an instance whose loads stopped does not report an outage for ever', async t => {
  const { clock, outages, fail } = setUp(t)
  const self = createSelfReport({
    reload: { hash: () => 'x' },
    phase: () => 'ready',
    history: {
      newest: () => ({ requestsPerSecond: 0 }),
      recentHitShare: () => null,
      recentErrors: () => 0,
    } as never,
    circuit: () => 'closed',
    outages,
    met: outages,
    clock,
  })
  t.equal(self().providerOutage, null)
  for (const id of ['a', 'b', 'c']) fail('provider_failing', id)
  t.equal(self().providerOutage, 'provider_failing')
  clock.advance(14 * 60_000)
  fail('provider_failing', 'd')
  clock.advance(14 * 60_000)
  t.equal(self().providerOutage, 'provider_failing', 'as long as loads fail')
  clock.advance(60_000)
  t.equal(self().providerOutage, null)
  t.equal(outages.open().length, 1, 'it is on all the same')
})

t.test('a new reason during an outage is a line, and that there is no connection is none', async t => {
  const { lines, outages, told } = setUp(t)
  outages.storeAway('quota', 'no answer within 500 ms')
  outages.storeAway('budget', 'there is no connection to it')
  outages.storeAway('redis', 'the connection was closed')
  outages.storeAway('redis', 'NOAUTH: it asks for a password, and the URL has none')
  outages.storeAway('redis', 'the connection was closed')
  const another = 'store: outage has another cause'
  t.strictSame(told(), ['store: outage begins', another, another])
  t.match(lines[2], { level: 'error', code: 'store_unavailable', reason: /^NOAUTH/, next: /runbook/ })
  t.match(outages.open(), [{ reason: /^NOAUTH/ }])
})

t.test('a provider that fails in another way during its outage is a line', async t => {
  const { outages, told } = setUp(t)
  outages.requested(cause)
  outages.breaker('open')
  outages.requested({ code: 'provider_timeout', reason: 'no answer within 3 s' })
  outages.requested({ code: 'provider_limited', reason: 'used up' })
  outages.requested({ code: 'provider_refused', reason: 'HTTP 401' })
  t.strictSame(told(), ['provider: outage begins', 'provider: outage has another cause'])
})
