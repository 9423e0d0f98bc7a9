// Hours without the provider, failing in three ways in turn. Measures whether all requests get weather for the right
// quarter-hour, hour and day, how often the provider is called, and how soon its recovery is noticed.

import { setTimeout as pause } from 'node:timers/promises'
import { createCalendar, minuteMs } from '../../src/common/calendar.ts'
import { foundWithin } from '../support/until.ts'
import { startOnOneClock } from './one-clock.ts'
import { forAll, isoOf, noBudget, pathOf, placesByCell, quiet, type Scope } from './set-up.ts'

const start = Date.parse('2026-11-21T13:07:00Z')
const breaker = { after: 3, halfOpenAfterMs: 500, halfOpenAfterAtMostMs: 2_000 }
const faults = ['reset', 'hang', 'bad-gateway'] as const
const calendar = createCalendar('Asia/Dhaka')

/** `tickMs` is the wait after each step, `retryAfter` the setting of the cache. */
export type ProviderOutage = {
  cells: number
  hours: number
  stepMinutes: number
  tickMs: number
  retryAfter?: string
}

/** The maximum of requests in this time: the failures that open the circuit, then a probe after each minimal wait. */
const windowsIn = (elapsedMs: number): number => {
  let windows = 0
  let wait = breaker.halfOpenAfterMs
  for (let at = 0; at <= elapsedMs; windows++) {
    // Jitter shortens a wait by at most a quarter.
    at += wait * 0.75
    wait = Math.min(wait * 2, breaker.halfOpenAfterAtMostMs)
  }
  return breaker.after + windows
}

const isRightAt = (text: string, now: number): boolean => {
  const { current, hourly, daily } = JSON.parse(text)
  return (
    current.time === calendar.localMinute(Math.floor(now / (15 * minuteMs)) * 15 * minuteMs) &&
    hourly.time[0] === `${calendar.localMinute(now).slice(0, 13)}:00` &&
    daily.time[0] === calendar.dayOf(now)
  )
}

export const measureProviderOutage = async (
  scope: Scope,
  size: ProviderOutage,
  progress: (text: string) => void = () => {},
) => {
  const paths = placesByCell()
    .slice(0, size.cells)
    .map(({ cell }) => pathOf(cell))
  const { clock, provider, gateway, send } = await startOnOneClock(scope, {
    start,
    provider: ['--runs', 'none'],
    env: {
      ...noBudget,
      ...(size.retryAfter ? { ABOHAWA_TEST_CACHE__RETRY_AFTER: size.retryAfter } : {}),
      ABOHAWA_PROVIDER__TIMEOUT: '300ms',
      ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: String(breaker.after),
      ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: `${breaker.halfOpenAfterMs}ms`,
      ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: `${breaker.halfOpenAfterAtMostMs}ms`,
    },
  })
  const seen = { requests: 0, failed: 0, wrong: 0, slowestMs: 0 }
  const sendAll = (): Promise<void> =>
    forAll(paths, 16, async path => {
      const { status, text, ms: took } = await send(path)
      seen.requests += 1
      seen.slowestMs = Math.max(seen.slowestMs, took)
      if (status !== 200) seen.failed += 1
      else if (!isRightAt(text, clock.now())) seen.wrong += 1
    })
  await sendAll()
  await quiet(provider, gateway.opsUrl)

  const before = (await provider.state()).calls
  const downAt = performance.now()
  const steps = (size.hours * 60) / size.stepMinutes
  Object.assign(seen, { requests: 0, slowestMs: 0 })
  for (let step = 1; step <= steps; step++) {
    await provider.steer({ fault: faults[Math.floor(((step - 1) * faults.length) / steps)] ?? 'reset' })
    clock.advance(size.stepMinutes * minuteMs)
    await provider.steer({ now: isoOf(clock.now()) })
    await sendAll()
    await pause(size.tickMs)
    progress(`${((step * size.stepMinutes) / 60).toFixed(1)} of ${size.hours} hours`)
  }
  const elapsedMs = performance.now() - downAt
  const calls = (await provider.state()).calls - before
  const during = { ...seen }

  // From here on the gateway's clock runs like the machine's, so that backoff ends in real time.
  clock.advance(size.stepMinutes * minuteMs)
  await provider.steer({ fault: 'none', now: isoOf(clock.now()) })
  const fedBefore = (await provider.state()).points
  const backAt = performance.now()
  const clockAtBack = clock.now()
  let firstMs = Number.NaN
  const waiting = new Set(paths)
  const retryWaiting = async (): Promise<boolean> => {
    clock.set(clockAtBack + Math.floor(performance.now() - backAt))
    await forAll([...waiting], 16, async path => {
      if (/hit; ttl=\d/.test((await send(path)).cache)) waiting.delete(path)
    })
    if (waiting.size < paths.length && Number.isNaN(firstMs)) firstMs = performance.now() - backAt
    return waiting.size === 0
  }
  await foundWithin(90_000, retryWaiting, 20)
  const allMs = performance.now() - backAt
  const points = (await provider.state()).points - fedBefore
  return {
    ...during,
    calls,
    elapsedMs,
    allowed: windowsIn(elapsedMs),
    firstMs,
    allMs,
    notBack: waiting.size,
    points,
  }
}
