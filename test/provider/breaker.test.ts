// The circuit breaker: when it opens, probes and closes. It runs on monotonic time, so the waits here are short and the tests
// count requests instead of measuring time.

import t from 'tap'
import { type BreakerState, createBreaker } from '../../src/provider/breaker.ts'
import { ProviderError, type ProviderErrorCode } from '../../src/provider/errors.ts'
import { manualClock } from '../support/manual-clock.ts'
import { until } from '../support/until.ts'

const setUp = (halfOpenAfterMs = 60_000, halfOpenAfterAtMostMs = halfOpenAfterMs) => {
  const changes: BreakerState[] = []
  const clock = manualClock()
  const breaker = createBreaker({ after: 3, halfOpenAfterMs, halfOpenAfterAtMostMs }, clock, state =>
    changes.push(state),
  )
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
  return { breaker, send, changes, requests, clock }
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

t.test('failures between successes do not add up', async t => {
  const { send, changes } = setUp()
  for (let i = 0; i < 5; i++) {
    await send('provider_failing')
    await send('provider_failing')
    t.equal(await send(), 'ok')
  }
  t.strictSame(changes, [])
})

t.test('errors that say nothing about the provider’s health do not count', async t => {
  const { send, changes } = setUp()
  for (const code of ['provider_refused', 'provider_limited', 'provider_busy', 'provider_too_much'] as const)
    for (let i = 0; i < 5; i++) await send(code)
  t.strictSame(changes, [])
})

t.test(
  'after the wait one probe is sent: if it fails the wait doubles, if it succeeds the circuit closes',
  async t => {
    const { breaker, send, changes, requests } = setUp(40, 80)
    for (let i = 0; i < 3; i++) await send('provider_failing')
    const waited = () => until('the wait is over', () => !breaker.openError())
    await waited()
    const begun = performance.now()
    t.equal(await send('provider_failing'), 'provider_failing')
    t.equal(await send(), 'provider_circuit_open')
    t.equal(requests.length, 4, 'one probe')
    await waited()
    t.ok(performance.now() - begun >= 60, 'twice as long, less a quarter by chance')
    t.equal(await send(), 'ok')
    t.strictSame(changes, ['open', 'half-open', 'open', 'half-open', 'closed'])
    t.equal(await send(), 'ok')
  },
)

t.test('a request at the announced instant is let through', async t => {
  let refused = 0
  for (let i = 0; i < 50; i++) {
    const { breaker, send } = setUp(10)
    for (let failure = 0; failure < 3; failure++) await send('provider_failing')
    await until('the wait is over', () => !breaker.openError(), 20_000, 0)
    if ((await send()) !== 'ok') refused += 1
  }
  t.equal(refused, 0)
})

t.test('the machine’s clock may be set back while it is open: the probe is sent when it is due', async t => {
  const { breaker, send, changes } = setUp(20)
  for (let i = 0; i < 3; i++) await send('provider_failing')
  const { now } = Date
  t.teardown(() => {
    Date.now = now
  })
  Date.now = () => now() - 3_600_000
  await until('a probe is due', breaker.isProbeDue)
  t.equal(await send(), 'ok')
  Date.now = () => now() + 3_600_000
  for (let i = 0; i < 3; i++) await send('provider_failing')
  t.equal(await send(), 'provider_circuit_open', 'and a clock that is set forward ends no wait')
  t.strictSame(changes, ['open', 'half-open', 'closed', 'open'])
})

t.test('requests that come during a probe wait for it, and none is sent when it fails', async t => {
  const { breaker, send, requests } = setUp(20)
  for (let i = 0; i < 3; i++) await send('provider_failing')
  await until('a probe is due', breaker.isProbeDue)
  const outcomes = await Promise.all([send('provider_failing'), send(), send()])
  t.strictSame(outcomes, ['provider_failing', 'provider_circuit_open', 'provider_circuit_open'])
  t.equal(requests.length, 4)
})

t.test('after a probe that was refused for its point, it takes as many failures as at first', async t => {
  const { breaker, send, changes } = setUp(20)
  for (let i = 0; i < 3; i++) await send('provider_failing')
  await until('a probe is due', breaker.isProbeDue)
  await send('provider_refused')
  await send('provider_failing')
  await send('provider_failing')
  t.strictSame(changes, ['open', 'half-open', 'closed'])
})
