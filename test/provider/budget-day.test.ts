// Without it gateways could pass a limit of the provider within a day of heavy demand.

import t from 'tap'
import { hourMs, minuteMs, utcDayMs } from '../../src/common/calendar.ts'
import type { Budget } from '../../src/provider/budget.ts'
import type { Purpose } from '../../src/provider/charge.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { createRandom } from '../../tools/load/traffic/generate/random.ts'
import { freeLimits } from '../../tools/provider/limits.ts'
import { type ManualClock, manualClock } from '../support/manual-clock.ts'
import { budgetOn } from './budget-set-up.ts'

const unit = 3
const start = Date.parse('2026-11-21T12:00:00Z')

const createCounter = (clock: ManualClock, skewMs: number) => {
  const used = new Map<string, number>()
  const windows = () =>
    Object.entries({ minute: minuteMs, hour: hourMs, day: utcDayMs } as const).map(([span, lengthMs]) => ({
      name: `${span}:${Math.floor((clock.now() + skewMs) / lengthMs)}`,
      limit: freeLimits[span as keyof typeof freeLimits],
    }))
  return {
    refuses: () => windows().some(({ name, limit }) => (used.get(name) ?? 0) >= limit),
    add: (weight: number) => {
      for (const { name } of windows()) used.set(name, (used.get(name) ?? 0) + weight)
    },
    total: () => [...used].reduce((sum, [name, weight]) => (name.startsWith('day') ? sum + weight : sum), 0),
  }
}

const createEvents = (clock: ManualClock) => {
  const events: { at: number; act: () => Promise<void> | void }[] = []
  return {
    at: (at: number, act: () => Promise<void> | void) => {
      let i = events.length
      while (i > 0 && (events[i - 1]?.at ?? 0) > at) i -= 1
      events.splice(i, 0, { at, act })
    },
    runUntil: async (end: number) => {
      for (let event = events.shift(); event && event.at < end; event = events.shift()) {
        clock.set(event.at)
        await event.act()
      }
    },
  }
}

type Day = { skewMs: number; longestMs: number; gateways: number; reserve?: number; marginMs?: number }

const runDay = async ({ skewMs, longestMs, gateways, reserve = 0.1, marginMs = 2_000 }: Day) => {
  const clock = manualClock(start)
  const store = openEmbeddedStore(':memory:', clock)
  const next = createRandom(skewMs + longestMs + gateways, 'day')
  const counter = createCounter(clock, skewMs)
  const events = createEvents(clock)
  const seen = { refused: 0, coldRequested: 0, coldGranted: 0 }

  const spend = async (budget: Budget, points: number, purpose: Purpose) => {
    const reservation = await budget.reserve(points, purpose)
    if (reservation.points === 0) return { points: 0, endsAt: reservation.retryAt ?? Number.NaN }
    const [begun, latencyMs] = [clock.now(), 20 + next() * (longestMs - 20)]
    const fails = next() < 0.03
    let refused = false
    events.at(begun + latencyMs * 0.3, () => {
      refused = counter.refuses()
      if (refused) seen.refused += 1
    })
    events.at(begun + latencyMs * (0.4 + next() * 0.6), () => {
      if (!refused) counter.add(fails ? 1 : reservation.points * unit)
    })
    events.at(begun + latencyMs, () =>
      reservation.settle(refused ? 'limited' : fails ? 'failed' : 'answered'),
    )
    return { points: reservation.points, endsAt: begun + latencyMs }
  }

  for (let i = 0; i < gateways; i++) {
    const { budget } = budgetOn(store, clock, { marginMs, reserve, unit, instances: () => gateways })
    let backlog = 0
    let busy = false
    // One batch after the other while something is due, as soon as the budget allows it.
    const refresh = async (): Promise<void> => {
      if (busy || backlog < 1) return
      busy = true
      const { points, endsAt } = await spend(budget, Math.min(20, backlog), 'refresh')
      backlog -= points
      events.at(endsAt, () => {
        busy = false
        return refresh()
      })
    }
    const batch = 10
    const everyMs = (utcDayMs * batch * unit * gateways) / (4 * freeLimits.day)
    for (let at = start + next() * everyMs; at < start + utcDayMs; at += everyMs)
      events.at(at, () => {
        backlog += batch
        return refresh()
      })
    for (let at = start + next() * 1_000; at < start + utcDayMs; at += 300_000 * gateways)
      events.at(at + next() * 60_000, async () => {
        seen.coldRequested += 1
        seen.coldGranted += (await spend(budget, 1, 'cold')).points
      })
  }
  await events.runUntil(start + utcDayMs + minuteMs)
  await store.close()
  return { ...seen, spent: counter.total() }
}

for (const skewMs of [-1_500, 0, 1_500])
  for (const [gateways, longestMs] of [
    [1, 9_000],
    [3, 500],
    [3, 9_000],
    [2, 28_000],
  ] as const)
    t.test(
      `${skewMs} ms off, ${gateways} gateways, answers within ${longestMs} ms: never refused`,
      async t => {
        const day = await runDay({ skewMs, longestMs, gateways })
        t.equal(day.refused, 0)
        t.ok(day.coldRequested > 280, `${day.coldRequested} cold cells`)
        t.equal(day.coldGranted, day.coldRequested, 'every cold cell all day')
        // Noon to noon covers two of the provider's days; this demand spends each of them within hours.
        t.ok(day.spent > 18_000, `${day.spent} spent`)
        t.ok(day.spent <= 20_000, `${day.spent} spent`)
      },
    )

const onEdge = { reserve: 0, longestMs: 500, gateways: 3 }

t.test('with nothing in reserve, every window is filled to its edge and still never refused', async t => {
  for (const skewMs of [-1_500, 1_500]) {
    const { refused, spent } = await runDay({ ...onEdge, skewMs })
    t.equal(refused, 0)
    t.ok(spent > 19_500 && spent <= 20_000, `${spent} spent`)
  }
})

t.test('without the margin the counter refuses that day, so the test can fail', async t => {
  const { refused } = await runDay({ ...onEdge, skewMs: -1_500, marginMs: 0 })
  t.ok(refused > 0, `${refused} refused`)
})
