// Eight hours without the provider, failing in three ways in turn: everyone who asks gets weather for the right
// quarter-hour, hour and day, the provider is left in peace, and what it gives again is noticed soon.

import { setTimeout as pause } from 'node:timers/promises'
import { createCalendar, minuteMs } from '../../src/calendar.ts'
import { manualClock } from '../../test/support/manual-clock.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { startGateway } from '../../test/support/start-gateway.ts'
import { count, ms, type Row, type Scope } from '../row.ts'
import { askerOf, forAll, isoOf, noBudget, pathOf, placesByCell, plentyOfQuota, quiet } from '../set-up.ts'

const start = Date.parse('2026-11-21T13:07:00Z')
const breaker = { after: 3, restForMs: 500, restForAtMostMs: 2_000 }
const moods = ['reset', 'hang', 'bad-gateway'] as const
const calendar = createCalendar('Asia/Dhaka')

export type OutageSize = { cells: number; hours: number; stepMinutes: number; beatMs: number }

/** How often a process may ask in so much time: the failures that open the circuit, then once after each shortest rest. */
export const windowsIn = (elapsedMs: number): number => {
  let windows = 0
  let rest = breaker.restForMs
  for (let at = 0; at <= elapsedMs; windows++) {
    // A quarter less by chance, at most.
    at += rest * 0.75
    rest = Math.min(rest * 2, breaker.restForAtMostMs)
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

export const measureOutage = async (
  scope: Scope,
  size: OutageSize,
  progress: (text: string) => void = () => {},
) => {
  const paths = placesByCell()
    .slice(0, size.cells)
    .map(({ cell }) => pathOf(cell))
  const clock = manualClock(start)
  const provider = await startProvider(scope, ['--runs', 'none'], isoOf(start))
  const gateway = await startGateway(scope, {
    providerUrl: provider.url,
    clock,
    env: {
      ...noBudget,
      ...plentyOfQuota,
      ABOHAWA_LOG__ACCESS: 'false',
      ABOHAWA_PROVIDER__TIMEOUT: '300ms',
      ABOHAWA_PROVIDER__BREAKER__AFTER: String(breaker.after),
      ABOHAWA_PROVIDER__BREAKER__REST_FOR: `${breaker.restForMs}ms`,
      ABOHAWA_PROVIDER__BREAKER__REST_FOR_AT_MOST: `${breaker.restForAtMostMs}ms`,
    },
  })
  const ask = askerOf(scope, gateway.apiUrl, gateway.keys.enterprise ?? '')
  const seen = { requests: 0, failed: 0, wrong: 0, slowestMs: 0 }
  const askAll = (): Promise<void> =>
    forAll(paths, 16, async path => {
      const { status, text, ms: took } = await ask(path)
      seen.requests += 1
      seen.slowestMs = Math.max(seen.slowestMs, took)
      if (status !== 200) seen.failed += 1
      else if (!isRightAt(text, clock.now())) seen.wrong += 1
    })
  await askAll()
  await quiet(provider, gateway.opsUrl)

  const before = (await provider.state()).calls
  const downAt = performance.now()
  const steps = (size.hours * 60) / size.stepMinutes
  Object.assign(seen, { requests: 0, slowestMs: 0 })
  for (let step = 1; step <= steps; step++) {
    await provider.steer({ mood: moods[Math.floor(((step - 1) * moods.length) / steps)] ?? 'reset' })
    clock.advance(size.stepMinutes * minuteMs)
    await provider.steer({ now: isoOf(clock.now()) })
    await askAll()
    await pause(size.beatMs)
    progress(`${((step * size.stepMinutes) / 60).toFixed(1)} of ${size.hours} hours`)
  }
  const elapsedMs = performance.now() - downAt
  const calls = (await provider.state()).calls - before
  const during = { ...seen }

  // From here the gateway's clock runs as the machine's does, so that pauses end as they would.
  clock.advance(size.stepMinutes * minuteMs)
  await provider.steer({ mood: 'ok', now: isoOf(clock.now()) })
  const fedBefore = (await provider.state()).points
  const backAt = performance.now()
  const clockAtBack = clock.now()
  let firstMs = Number.NaN
  const waiting = new Set(paths)
  while (waiting.size > 0 && performance.now() - backAt < 30_000) {
    clock.set(clockAtBack + Math.floor(performance.now() - backAt))
    await forAll([...waiting], 16, async path => {
      if (/hit; ttl=\d/.test((await ask(path)).cache)) waiting.delete(path)
    })
    if (waiting.size < paths.length && Number.isNaN(firstMs)) firstMs = performance.now() - backAt
    await pause(20)
  }
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

export const outage: Row = {
  id: 'outage',
  method:
    `One gateway with ${breaker.restForMs} ms as the first rest of the circuit and ${breaker.restForAtMostMs / 1000} s as ` +
    'the longest, so that a measurement of seconds sees many rests. The clock of the weather is moved through 8 hours in ' +
    'steps of 15 minutes over a midnight in Dhaka; the rests pass in real time, and the bar is worked out from the ' +
    'shortest rests that chance allows in the time that really passed.',
  run: async (scope, progress) => {
    const size = { cells: 300, hours: 8, stepMinutes: 15, beatMs: 500 }
    const found = await measureOutage(scope, size, progress)
    return {
      findings: [
        {
          what: `provider down for ${size.hours} h, ${size.cells} cells: answers`,
          bar: 'all 200, right quarter-hour, hour and day',
          measured: `${count(found.requests)} asked: ${found.failed} failed, ${found.wrong} with a wrong time; slowest ${ms(found.slowestMs)}`,
          met: found.failed === 0 && found.wrong === 0,
          figures: found,
        },
        {
          what: 'the same: requests to the provider meanwhile',
          bar: `≤ ${found.allowed}: one per rest and process`,
          measured: `${found.calls} in ${(found.elapsedMs / 1000).toFixed(0)} s of real time`,
          met: found.calls <= found.allowed,
          figures: { calls: found.calls, allowed: found.allowed },
        },
        {
          what: 'the same: weather is fresh again after the provider is back',
          bar: `≤ one longest rest (${breaker.restForAtMostMs} ms)`,
          measured: `first cell ${ms(found.firstMs)}, all ${size.cells} cells ${ms(found.allMs)}`,
          met: found.firstMs <= breaker.restForAtMostMs + 100 && found.notBack === 0,
          figures: { firstMs: found.firstMs, allMs: found.allMs, notBack: found.notBack },
        },
      ],
    }
  },
}
