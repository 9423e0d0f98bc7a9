// Without it an outage could start without harm to consumers, or never end.

import t from 'tap'
import { AbohawaError } from '../../src/common/errors.ts'
import { createSelfReport } from '../../src/operate/instance-report.ts'
import { ProviderError, type ProviderErrorCode } from '../../src/provider/errors.ts'
import type { Urgency } from '../../src/provider/queue.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { openOutages } from '../../src/telemetry/outages.ts'
import { manualClock } from '../support/manual-clock.ts'
import type { Teardown } from '../support/teardown.ts'

const setUp = (t: Teardown) => {
  const clock = manualClock()
  const lines: { msg: string; outage: string; code?: string; causes?: object; reconciled?: number }[] = []
  const log = createLog('info', { write: line => void lines.push(JSON.parse(line)) })
  const next: { room: 'any' | 'reserve' | 'none' } = { room: 'any' }
  const outages = openOutages(log, clock, { staleReads: () => 0, room: () => next.room })
  t.teardown(outages.close)
  const told = () => lines.map(({ msg }) => msg)
  const fail = (code: ProviderErrorCode, id = 'a', purpose: Urgency = 'refresh') =>
    outages.loadFailed({ id, purpose, error: new ProviderError(code, 'x'), usableUntil: null })
  const meet = (met: 'failed' | 'stale', code: ProviderErrorCode) =>
    outages.shortfall(met, new ProviderError(code, 'x'))
  return { clock, lines, next, outages, told, fail, meet }
}
const cause = { code: 'provider_timeout', reason: 'no answer' }

t.test('it begins with the first answer that failed, and ends with weather of any upstream', async t => {
  const { clock, lines, next, outages, told, meet } = setUp(t)
  outages.requestFailed(cause)
  outages.requestFailed({ code: 'provider_failing', reason: 'later' })
  const since = clock.now()
  meet('failed', 'provider_timeout')
  clock.advance(5_000)
  t.strictSame(told(), [], 'an upstream would load the next one')
  next.room = 'none'
  meet('stale', 'provider_circuit_open')
  t.hasStrict(outages.open(), [{ outage: 'provider', since, ...cause }])
  clock.advance(5_000)
  outages.loaded()
  t.strictSame(told(), ['provider outage started', 'provider outage ended'])
  t.hasStrict(lines, [{ ...cause, since: new Date(since).toISOString() }, { seconds: 10 }])
})

t.test('an open circuit is no outage while consumers meet nothing of it', async t => {
  const { next, outages, told, fail } = setUp(t)
  next.room = 'none'
  outages.requestFailed(cause)
  for (let i = 0; i < 5; i++) t.notOk(fail('provider_circuit_open', 'a', 'refresh_ahead'))
  t.strictSame(told(), [])
  t.ok(fail('provider_circuit_open', 'a', 'refresh'))
  t.strictSame(told(), ['provider outage started'])
})

t.test('three failed loads in a row begin one, but not used-up limits', async t => {
  const { outages, told, fail } = setUp(t)
  for (let i = 0; i < 100; i++) t.notOk(fail('provider_limited'))
  for (const id of ['a', 'b']) t.notOk(fail('provider_refused', id))
  outages.loaded()
  for (let i = 0; i < 5; i++) for (const id of ['a', 'b']) t.notOk(fail('provider_refused', id))
  t.strictSame(told(), [], 'a place that is refused again and again says nothing of the others')
  t.ok(fail('provider_refused', 'c'))
  t.strictSame(told(), ['provider outage started'])
  outages.loaded()
  t.strictSame(told().slice(1), ['provider outage ended'])
})

t.test('limits that are used up are one where answers fail for want of them', async t => {
  const { next, outages, told, meet } = setUp(t)
  meet('failed', 'provider_limited')
  next.room = 'none'
  meet('stale', 'provider_limited')
  t.strictSame(told(), [], 'what is stale leaves them what is left')
  meet('failed', 'provider_limited')
  t.hasStrict(outages.open(), [{ code: 'provider_limited' }])
})

t.test('a limit that is used up after other failures is a further cause', async t => {
  const { lines, next, outages, meet } = setUp(t)
  outages.requestFailed(cause)
  next.room = 'none'
  meet('failed', 'provider_limited')
  t.hasStrict(lines, [
    { msg: 'provider outage started', code: 'provider_timeout' },
    { msg: 'provider outage has another cause', code: 'provider_limited' },
  ])
  outages.loaded()
  outages.requestFailed(cause)
  meet('failed', 'provider_circuit_open')
  meet('stale', 'provider_limited')
  t.equal(lines.length, 4, 'what is stale leaves the limit what is left')
  for (let i = 0; i < 2; i++) meet('failed', 'provider_limited')
  t.equal(lines.length, 5)
  t.hasStrict(outages.open(), [{ code: 'provider_limited' }])
})

t.test('what this gateway could not send begins no outage and is counted in none', async t => {
  const { next, outages, told, fail, meet } = setUp(t)
  const error = new AbohawaError('provider_not_sent', 'x')
  const all = () => {
    outages.requestFailed({ code: 'provider_not_sent', reason: 'x' })
    t.notOk(fail('provider_not_sent'))
    meet('failed', 'provider_not_sent')
    t.notOk(outages.answered500(error))
  }
  next.room = 'none'
  for (let i = 0; i < 5; i++) all()
  t.strictSame(told(), [])
  meet('failed', 'provider_timeout')
  all()
  t.hasStrict(outages.open(), [{ code: 'provider_timeout', failures: 0 }])
  t.strictSame(told(), ['provider outage started'])
})

t.test('a used-up share of a key is one where what is left is a reserve', async t => {
  const { next, outages, meet } = setUp(t)
  for (let i = 0; i < 9; i++) meet('failed', 'key_share_used_up')
  t.strictSame(outages.open(), [])
  next.room = 'reserve'
  meet('failed', 'provider_timeout')
  t.strictSame(outages.open(), [])
  meet('failed', 'key_share_used_up')
  t.hasStrict(outages.open(), [{ outage: 'provider' }])
})

t.test('failures hours apart are not one outage', async t => {
  const { clock, next, outages, told, fail, meet } = setUp(t)
  for (let i = 0; i < 5; i++) {
    outages.requestFailed({ code: 'provider_refused', reason: 'x' })
    fail('provider_refused')
    meet('failed', 'provider_refused')
    clock.advance(3_600_000)
  }
  t.strictSame(told(), [])
  outages.requestFailed(cause)
  next.room = 'none'
  meet('failed', 'provider_circuit_open')
  t.hasStrict(outages.open(), [{ since: clock.now(), ...cause }])
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
  t.strictSame(told(), ['store outage started'])
  t.hasStrict(outages.open(), [
    { outage: 'store', since: clock.now(), reason: 'connect ECONNREFUSED', failures: 4 },
  ])
  outages.storeBack('budget')
  t.strictSame(told(), ['store outage started', 'store outage ended'])
  t.hasStrict(lines[0], { reason: 'connect ECONNREFUSED', code: 'store_unavailable' })
  t.strictSame(outages.open(), [])
  t.match(lines[1], { causes: { redis: 1, quota: 1, read: 1, budget: 1 }, reconciled: 12 })
})

t.test('a 500 belongs to the outage that caused it, and to no other', async t => {
  const { lines, outages, fail } = setUp(t)
  const ofStore = new AbohawaError('store_unavailable', 'x')
  const ofProvider = new AbohawaError('provider_circuit_open', 'x')
  t.notOk(outages.answered500(ofStore))
  outages.storeAway('redis', 'x')
  t.ok(outages.answered500(ofStore))
  t.notOk(outages.answered500(ofProvider))
  t.notOk(outages.answered500(new TypeError('x')))
  for (let i = 0; i < 3; i++) fail('provider_failing')
  t.ok(outages.answered500(ofProvider))
  t.ok(outages.answered500(new AbohawaError('waited_too_long', 'x')))
  outages.storeBack('redis')
  outages.loaded()
  t.hasStrict(lines.at(-2), { outage: 'store', errors: 5 })
  t.hasStrict(lines.at(-1), { outage: 'provider', errors: 2, causes: { waited_too_long: 1 } })
})

t.test('an outage that nobody meets any more is over once an upstream would load', async t => {
  const { clock, next, outages, told, fail, meet } = setUp(t)
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
    clock,
  })
  t.equal(self().providerOutage, null)
  for (const id of ['a', 'b', 'c']) fail('provider_failing', id)
  t.equal(self().providerOutage, 'provider_failing')
  clock.advance(14 * 60_000)
  fail('provider_failing', 'd')
  clock.advance(14 * 60_000)
  meet('failed', 'provider_failing')
  clock.advance(14 * 60_000)
  t.equal(self().providerOutage, 'provider_failing', 'as long as answers fail')
  next.room = 'none'
  clock.advance(60_000)
  t.hasStrict(self(), { providerOutage: 'provider_failing', outages: [{ outage: 'provider' }] })
  next.room = 'any'
  t.match(self(), { providerOutage: null, outages: [] })
  t.strictSame(outages.open(), [])
  t.equal(told().at(-1), 'provider outage ended')
})

t.test('a new reason during an outage is a line, and that there is no connection is none', async t => {
  const { lines, outages, told } = setUp(t)
  outages.storeAway('quota', 'no answer within 500 ms')
  outages.storeAway('budget', 'there is no connection to it')
  outages.storeAway('redis', 'the connection was closed')
  outages.storeAway('redis', 'NOAUTH: it asks for a password, and the URL has none')
  outages.storeAway('redis', 'the connection was closed')
  const another = 'store outage has another cause'
  t.strictSame(told(), ['store outage started', another, another])
  t.match(lines[2], { level: 'error', code: 'store_unavailable', reason: /^NOAUTH/, next: /runbook/ })
  t.match(outages.open(), [{ reason: /^NOAUTH/ }])
})

t.test('a provider that fails in another way during its outage is a line', async t => {
  const { next, outages, told, meet } = setUp(t)
  outages.requestFailed(cause)
  next.room = 'none'
  meet('failed', 'provider_circuit_open')
  outages.requestFailed({ code: 'provider_timeout', reason: 'no answer within 3 s' })
  outages.requestFailed({ code: 'provider_limited', reason: 'used up' })
  outages.requestFailed({ code: 'provider_refused', reason: 'HTTP 401' })
  t.strictSame(told(), ['provider outage started', 'provider outage has another cause'])
})
