// Without it a provider that is down could cost the budget, or one that is back could stay unused.

import t, { type Test } from 'tap'
import { type BreakerOptions, type BreakerState, createBreaker } from '../../src/provider/breaker.ts'
import {
  garbled,
  OutOfBudgetError,
  ProviderError,
  type ProviderErrorCode,
  providerErrorCodes,
  requestOutcomeOf,
  ShareUsedUpError,
} from '../../src/provider/errors.ts'
import { manualClock } from '../support/manual-clock.ts'

/** A breaker on monotonic time that `pass` moves; it waits exactly as long as it says, less a quarter of `chance`. */
const setUp = (t: Test, given: Partial<BreakerOptions> = {}, chance = 0) => {
  let elapsedMs = 0
  t.intercept(performance, 'now', { value: () => elapsedMs })
  t.intercept(Math, 'random', { value: () => chance })
  const changes: BreakerState[] = []
  const clock = manualClock()
  const options = { after: 3, halfOpenAfterMs: 40, halfOpenAfterAtMostMs: 80, ...given }
  const breaker = createBreaker(options, clock, state => changes.push(state))
  const requests: string[] = []
  const send = async (code?: ProviderErrorCode) => {
    try {
      await breaker.run(async () => {
        requests.push(code ?? 'ok')
        if (code) throw new ProviderError(code, 'failed')
      })
      return 'ok'
    } catch (error) {
      return (error as ProviderError).code
    }
  }
  const open = async () => {
    for (let i = 0; i < 3; i++) await send('provider_failing')
  }
  const pass = (ms: number): void => {
    elapsedMs += ms
  }
  /** The time until the next probe. */
  const leftMs = (): number => (breaker.openError()?.retryAt ?? clock.now()) - clock.now()
  return { breaker, send, open, pass, leftMs, changes, requests }
}

t.test('which failures open it, which are tried again, and what each costs', async t => {
  const table: Record<ProviderErrorCode, string> = {
    provider_unreachable: 'unsent, retried, opens',
    provider_not_sent: 'unsent, retried',
    provider_broke_off: 'unknown, retried, opens',
    provider_timeout: 'unknown, opens',
    provider_failing: 'failed, retried, opens',
    provider_overloaded: 'failed, opens',
    provider_refused: 'failed',
    provider_too_much: 'failed',
    provider_denied: 'failed, opens',
    provider_limited: 'limited',
    key_share_used_up: 'unsent',
    provider_busy: 'limited, retried',
    provider_cut_off: 'unknown, retried, opens',
    provider_garbled: 'unknown, opens',
    provider_circuit_open: 'unsent',
  }
  for (const code of providerErrorCodes) {
    const error = new ProviderError(code, 'x'.repeat(400))
    const flags = [error.retryable && 'retried', error.opensCircuit && 'opens'].filter(Boolean)
    t.equal([requestOutcomeOf(error), ...flags].join(', '), table[code], code)
    t.equal(error.message, `${'x'.repeat(300)}…`, 'in so many characters')
  }
  t.equal(garbled('too_large', 'x').opensCircuit, true)
  t.equal(garbled('wrong_time', 'x', true).opensCircuit, false)
  const noRoom = new OutOfBudgetError(null)
  t.strictSame([noRoom.message, noRoom.retryAt], ['the provider budget has no room', undefined])
  const usedUp = new ShareUsedUpError('key_a', 5)
  t.equal(usedUp.message, 'the key has used up its share of the provider budget')
  t.hasStrict(usedUp, { consumer: 'key_a', retryAt: 5 })
})

t.test('three failures in a row open it: no request is sent, and the error has a retryAt', async t => {
  const { breaker, send, leftMs, changes, requests } = setUp(t)
  await send('provider_failing')
  await send('provider_timeout')
  t.equal(breaker.openError(), undefined)
  await send('provider_unreachable')
  t.equal(await send(), 'provider_circuit_open')
  t.equal(requests.length, 3)
  t.strictSame(changes, ['open'])
  t.equal(leftMs(), 40)
  t.match(breaker.state(), { state: 'open', openUntil: Number })
  t.equal(breaker.openError()?.message, 'the provider has been failing, and the circuit is open')
})

t.test('jitter shortens a wait by up to a quarter', async t => {
  const { open, leftMs } = setUp(t, {}, 1)
  await open()
  t.equal(leftMs(), 30)
})

t.test('failures between successes, and those that say nothing of its health, do not add up', async t => {
  const { send, open, changes } = setUp(t)
  for (let i = 0; i < 5; i++) {
    await send('provider_failing')
    await send('provider_failing')
    t.equal(await send(), 'ok')
  }
  for (const code of ['provider_refused', 'provider_limited', 'provider_busy', 'provider_too_much'] as const)
    for (let i = 0; i < 5; i++) await send(code)
  t.strictSame(changes, [])
  await open()
  t.strictSame(changes, ['open'])
})

t.test('after the wait one probe is sent: if it fails the wait doubles, else the circuit closes', async t => {
  const { breaker, send, open, pass, leftMs, changes, requests } = setUp(t)
  await open()
  pass(39)
  t.equal(breaker.isProbeDue(), false)
  pass(1)
  t.equal(breaker.isProbeDue(), true)
  // Requests that come during a probe wait for it, and none is sent when it fails.
  const outcomes = await Promise.all([send('provider_failing'), send(), send()])
  t.strictSame(outcomes, ['provider_failing', 'provider_circuit_open', 'provider_circuit_open'])
  t.equal(requests.length, 4, 'one probe')
  t.equal(leftMs(), 80)
  pass(80)
  await send('provider_failing')
  t.equal(leftMs(), 80, 'and no longer than the longest')
  pass(80)
  t.equal(await send(), 'ok')
  t.strictSame(changes, ['open', 'half-open', 'open', 'half-open', 'open', 'half-open', 'closed'])
  t.equal(await send(), 'ok')
})

t.test('the machine’s clock ends no wait and lengthens none', async t => {
  const { send, open, pass, changes } = setUp(t)
  await open()
  const { now } = Date
  t.intercept(Date, 'now', { value: () => now() + 3_600_000 })
  t.equal(await send(), 'provider_circuit_open')
  t.intercept(Date, 'now', { value: () => now() - 3_600_000 })
  pass(40)
  t.equal(await send(), 'ok')
  t.strictSame(changes, ['open', 'half-open', 'closed'])
})

t.test('a probe that this gateway could not send does not close it', async t => {
  const { breaker, send, open, pass, changes } = setUp(t)
  await send('provider_not_sent')
  await open()
  pass(40)
  t.equal(await send('provider_not_sent'), 'provider_not_sent')
  t.strictSame(changes, ['open', 'half-open', 'open'])
  pass(80)
  await send()
  t.equal(breaker.state().state, 'closed')
})

t.test('after a probe that was refused for its point, it takes as many failures as at first', async t => {
  const { send, open, pass, changes } = setUp(t)
  await open()
  pass(40)
  await send('provider_refused')
  await send('provider_failing')
  await send('provider_failing')
  t.strictSame(changes, ['open', 'half-open', 'closed'])
})

t.test('with another upstream behind, one request after a probe is on trial', async t => {
  const { breaker, send, open, pass, requests } = setUp(t, { hasFallback: true })
  await open()
  pass(40)
  t.equal(await send(), 'ok')
  const trial = Promise.withResolvers<void>()
  const sent = breaker.run(() => trial.promise)
  t.hasStrict(breaker.state(), { state: 'half-open' }, 'so that nothing else goes there')
  const behind = send()
  t.equal(requests.length, 4)
  trial.reject(new ProviderError('provider_timeout', 'failed'))
  await t.rejects(sent, { code: 'provider_timeout' })
  t.equal(await behind, 'provider_circuit_open', 'the first failure opens it again')
  pass(80)
  t.equal(await send(), 'ok')
  t.equal(await send(), 'ok')
  await send('provider_failing')
  t.equal(await send(), 'ok', 'after a good one it takes as many failures as at first')
  t.hasStrict(breaker.state(), { state: 'closed' })
})

t.test('with another upstream behind, each relapse doubles the wait', async t => {
  const { send, open, pass, leftMs } = setUp(t, { halfOpenAfterAtMostMs: 60_000, hasFallback: true })
  await open()
  const waits = [leftMs()]
  for (let relapse = 0; relapse < 3; relapse++) {
    pass(leftMs())
    await send()
    await send('provider_timeout')
    waits.push(leftMs())
  }
  t.strictSame(waits, [40, 80, 160, 320])
  for (const [ms, expected] of [
    [59_999, 640],
    [60_000, 40],
  ] as const) {
    pass(leftMs())
    for (let good = 0; good < 2; good++) t.equal(await send(), 'ok')
    pass(ms)
    await open()
    t.equal(leftMs(), expected, `${ms} ms after it closed`)
  }
})

t.test('without another upstream behind, the waits of each outage begin anew', async t => {
  const { send, open, pass, leftMs } = setUp(t, { halfOpenAfterAtMostMs: 60_000 })
  for (let outage = 0; outage < 2; outage++) {
    await open()
    t.equal(leftMs(), 40)
    pass(40)
    await send('provider_failing')
    t.equal(leftMs(), 80)
    pass(80)
    t.equal(await send(), 'ok')
  }
})
