// A UTC day with a budget of 10,000 and demand for four times as much, at a provider that enforces its limits: freshness
// stretches, nothing is refused, and cells without earlier demand are fetched all day.

import { setTimeout as pause } from 'node:timers/promises'
import { hourMs, minuteMs, utcDayMs } from '../../src/common/calendar.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { startOnOneClock } from '../../test/scenarios/one-clock.ts'
import { box, forAll, metric, pathOf, quiet, type Scope } from '../../test/scenarios/set-up.ts'
import { chart } from '../chart.ts'
import { count, type Row } from '../row.ts'

// Half a minute past the hour, so that no step falls on the start of a window.
const start = Date.parse('2026-11-22T00:00:30Z')
const stepMs = 15 * minuteMs
// Below the limit of the free host per minute.
const perMinute = 150
// Longer than the gateway's tick, so that it refreshes ahead and sends a heartbeat once in each step.
const tickMs = 600

type BudgetDaySize = { cells: number; coldPerStep: number; steps: number }

const measureBudgetDay = async (
  scope: Scope,
  size: BudgetDaySize,
  progress: (text: string) => void = () => {},
) => {
  const grid = createGrid(0.1)
  const all = grid.cellsIn(box).map(pathOf)
  const [steady, unknown] = [all.slice(0, size.cells), all.slice(size.cells)]
  const { clock, provider, gateway, send, moveTo } = await startOnOneClock(scope, {
    start,
    provider: ['--runs', 'none', '--limits', 'free'],
    env: {
      ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '600',
      ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '5000',
      ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000',
    },
  })
  const seen = { requests: 0, failed: 0, cold: 0, coldRefused: 0 }
  const stretch: [number, number][] = []
  // Per wanted cell, because the new cells change their number.
  const perCell: number[] = []
  const spent: [number, number][] = []
  const look = async (): Promise<void> => {
    const hours = (clock.now() - start) / hourMs
    const value = await metric(gateway.opsUrl, 'abohawa_cache_freshness_stretch')
    stretch.push([hours, value])
    perCell.push(value / (await metric(gateway.opsUrl, 'abohawa_cache_wanted_cells')))
    spent.push([hours, (await provider.state()).weight])
  }

  for (let i = 0; i < steady.length; i += perMinute) {
    if (i > 0) await moveTo(clock.now() + minuteMs)
    await forAll(steady.slice(i, i + perMinute), 32, async path => {
      seen.cold += 1
      if ((await send(path)).status !== 200) seen.coldRefused += 1
    })
    await pause(tickMs)
    await look()
  }
  for (let step = 1; step < size.steps; step++) {
    await moveTo(start + step * stepMs)
    await forAll(steady, 32, async path => {
      seen.requests += 1
      if ((await send(path)).status !== 200) seen.failed += 1
    })
    for (let i = 0; i < size.coldPerStep; i++) {
      const path = unknown[(step * size.coldPerStep + i) % unknown.length] ?? ''
      seen.cold += 1
      if ((await send(path)).status !== 200) seen.coldRefused += 1
    }
    await pause(tickMs)
    await quiet(provider, gateway.opsUrl)
    await look()
    progress(
      `${((step * stepMs) / hourMs).toFixed(2)} h, spent ${count(spent.at(-1)?.[1] ?? 0)}, stretch ${stretch.at(-1)?.[1].toFixed(2)}`,
    )
  }
  const { refused, weight } = await provider.state()
  return { ...seen, refused, weight, stretch, perCell, spent }
}

export const budgetDay: Row = {
  id: 'budget-day',
  method:
    '555 cells requested in every quarter-hour of a UTC day, fresh for an hour each: 40,000 of weight. Three new cells ' +
    'come in each quarter-hour besides. Gateway and provider on one clock that is moved; the first fill moves ' +
    'it a minute for each 150 cells.',
  run: async (scope, progress) => {
    const size = { cells: 555, coldPerStep: 3, steps: utcDayMs / stepMs }
    const day = await measureBudgetDay(scope, size, progress)
    // Begins with the first heartbeat after the initial fill.
    const begun = Math.ceil(size.cells / perMinute)
    const values = day.stretch.slice(begun).map(([, value]) => value)
    const perCell = day.perCell.slice(begun)
    const falls = perCell.filter((value, i) => i > 0 && value < (perCell[i - 1] ?? 0) * 0.999).length
    const finite = day.stretch.filter(([, value]) => Number.isFinite(value))
    return {
      findings: [
        {
          what: `budget 10,000 a day, demand for ${count(size.cells * 24 * 3)}: refused (429) by the provider`,
          bar: '0',
          measured: `${day.refused}; ${count(day.weight)} spent, ${day.failed} of ${count(day.requests)} requests failed`,
          met: day.refused === 0 && day.failed === 0,
          figures: { refused: day.refused, weight: day.weight, failed: day.failed, requests: day.requests },
        },
        {
          what: 'the same: cold cells refused before 24:00 UTC',
          bar: '0',
          measured: `${day.coldRefused} of ${count(day.cold)}`,
          met: day.coldRefused === 0,
          figures: { cold: day.cold, coldRefused: day.coldRefused },
        },
        {
          what: 'the same: freshness is stretched visibly and, for the same demand, never less than before',
          bar: 'above 1, no fall over the day',
          measured:
            `${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)}; per wanted cell ` +
            `${falls} of ${perCell.length - 1} steps fall`,
          met: Math.min(...values) > 1 && falls === 0,
          figures: { stretch: values, perCell },
        },
      ],
      notes: [
        'The stretch follows demand, which here varies by a few cells that are requested once; for the same ' +
          'demand it never falls within a UTC day, so that the weight saved between two waves of fetches is left for the last wave.',
      ],
      drawings: {
        'capacity-stretch.svg': {
          caption:
            'Stretch of freshness and weight spent over a day with a quarter of the budget it would need',
          svg: chart({
            title: 'A day with a quarter of the budget that its demand would need',
            x: { label: 'hours since 00:00 UTC', max: 24, step: 4 },
            panels: [
              { label: 'stretch of freshness (times)', lines: [{ name: 'stretch', points: finite }] },
              {
                label: 'weight spent at the provider',
                lines: [
                  { name: 'spent', points: day.spent },
                  {
                    name: 'limit',
                    points: [
                      [0, 10_000],
                      [24, 10_000],
                    ],
                  },
                ],
              },
            ],
          }),
        },
      },
    }
  },
}
