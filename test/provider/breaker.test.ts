// The circuit breaker: when it opens, probes and closes. It runs on monotonic time, so the waits here are short and the tests
// count requests instead of measuring time.

import t from 'tap'
import { type BreakerState, createBreaker } from '../../src/provider/breaker.ts'
import { ProviderError, type ProviderErrorCode } from '../../src/provider/errors.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'

const setUp = (halfOpenAfterMs = 60_000, halfOpenAfterAtMostMs = halfOpenAfterMs, isBacked = false) => {
  const changes: BreakerState[] = []
  const clock = manualClock()
  const options = { after: 3, halfOpenAfterMs, halfOpenAfterAtMostMs, isBacked }
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
  const waitForProbe = () => until('a probe is due', breaker.isProbeDue, 20_000, 0)
  return { breaker, send, open, waitForProbe, changes, requests, clock }
}

t.test('three failures in a row open it: no request is sent, and the error has a retryAt', async t => {
  const { breaker, send, changes, requests, clock } = setUp()
  await send('provider_failing')
  await send('provider_timeout')
  t.equal(breaker.openError(), undefined)
  await send('provider_unreachable')
  t.equal(await send(), 'provider_circuit_open')
  t.equal(requests.length, 3)
  t.strictSame(changes, ['open'])
  const leftMs = (breaker.openError()?.retryAt ?? 0) - clock.now()
  t.ok(leftMs > 40_000 && leftMs <= 60_001, `${leftMs} ms`)
  t.match(breaker.state(), { state: 'open', openUntil: Number })
})

t.test('failures between successes, and those that say nothing of its health, do not add up', async t => {
  const { send, changes } = setUp()
  for (let i = 0; i < 5; i++) {
    await send('provider_failing')
    await send('provider_failing')
    t.equal(await send(), 'ok')
  }
  for (const code of ['provider_refused', 'provider_limited', 'provider_busy', 'provider_too_much'] as const)
    for (let i = 0; i < 5; i++) await send(code)
  t.strictSame(changes, [])
})

t.test('after the wait one probe is sent: if it fails the wait doubles, else the circuit closes', async t => {
  const { send, open, waitForProbe, changes, requests } = setUp(40, 80)
  await open()
  await waitForProbe()
  const begun = performance.now()
  // Requests that come during a probe wait for it, and none is sent when it fails.
  const outcomes = await Promise.all([send('provider_failing'), send(), send()])
  t.strictSame(outcomes, ['provider_failing', 'provider_circuit_open', 'provider_circuit_open'])
  t.equal(requests.length, 4, 'one probe')
  await waitForProbe()
  t.ok(performance.now() - begun >= 60, 'twice as long, less a quarter by chance')
  t.equal(await send(), 'ok')
  t.strictSame(changes, ['open', 'half-open', 'open', 'half-open', 'closed'])
  t.equal(await send(), 'ok')
})

t.test('a request at the announced instant is let through', async t => {
  for (let i = 0; i < 50; i++) {
    const { breaker, send, open } = setUp(10)
    await open()
    await until('the wait is over', () => !breaker.openError(), 20_000, 0)
    t.equal(await send(), 'ok')
  }
})

t.test('the machine’s clock may be set back while it is open: the probe is sent when it is due', async t => {
  const { send, open, waitForProbe, changes } = setUp(20)
  await open()
  const { now } = Date
  t.teardown(() => {
    Date.now = now
  })
  Date.now = () => now() - 3_600_000
  await waitForProbe()
  t.equal(await send(), 'ok')
  Date.now = () => now() + 3_600_000
  await open()
  t.equal(await send(), 'provider_circuit_open', 'and a clock that is set forward ends no wait')
  t.strictSame(changes, ['open', 'half-open', 'closed', 'open'])
})

t.test('a probe that this gateway could not send does not close it', async t => {
  const { breaker, send, open, waitForProbe, changes } = setUp(1, 1)
  await send('provider_not_sent')
  await open()
  await waitForProbe()
  t.equal(await send('provider_not_sent'), 'provider_not_sent')
  t.strictSame(changes, ['open', 'half-open', 'open'])
  await waitForProbe()
  await send()
  t.equal(breaker.state().state, 'closed')
})

t.test('after a probe that was refused for its point, it takes as many failures as at first', async t => {
  const { send, open, waitForProbe, changes } = setUp(20)
  await open()
  await waitForProbe()
  await send('provider_refused')
  await send('provider_failing')
  await send('provider_failing')
  t.strictSame(changes, ['open', 'half-open', 'closed'])
})

t.test('with another upstream behind, one request after a probe is on trial', async t => {
  const { breaker, send, open, waitForProbe, requests } = setUp(200, 60_000, true)
  await open()
  await waitForProbe()
  t.equal(await send(), 'ok')
  const trial = Promise.withResolvers<void>()
  const sent = breaker.run(() => trial.promise)
  t.match(breaker.state(), { state: 'half-open' }, 'so that nothing else goes there')
  const behind = send()
  t.equal(requests.length, 4)
  trial.reject(new ProviderError('provider_timeout', 'failed'))
  await t.rejects(sent, { code: 'provider_timeout' })
  t.equal(await behind, 'provider_circuit_open', 'the first failure opens it again')
  await waitForProbe()
  t.equal(await send(), 'ok')
  t.equal(await send(), 'ok')
  await send('provider_failing')
  t.equal(await send(), 'ok', 'after a good one it takes as many failures as at first')
  t.match(breaker.state(), { state: 'closed' })
})

t.test('with another upstream behind, each relapse doubles the wait', async t => {
  const { breaker, send, open, waitForProbe, clock } = setUp(20, 60_000, true)
  const waits: number[] = []
  await open()
  for (let relapse = 0; relapse < 3; relapse++) {
    await waitForProbe()
    await send()
    await send('provider_timeout')
    waits.push((breaker.openError()?.retryAt ?? 0) - clock.now())
  }
  // Up to a quarter less by chance, and what has passed since.
  t.ok(
    waits.every((ms, i) => ms > 0 && ms <= 40 * 2 ** i),
    waits.join(),
  )
  t.ok((waits[2] ?? 0) > 20, waits.join())
})
