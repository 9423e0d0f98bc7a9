// A UTC day on a budget of 10,000 with demand for four times that: whether the provider ever has to refuse, whether a new
// place ever is refused, and how far freshness stretches.

import { minuteMs, quarterHourMs, utcDayMs } from '../../src/calendar.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { chart } from './chart.ts'
import { openDesk, type Row } from './stage.ts'

const start = Date.parse('2026-11-22T00:00:30Z')
const steady = 555
const newPerStep = 3

export const shortBudget: Row = {
  name: 'short-budget',
  what: 'budget 10,000 a day, demand for 40,000, and 285 new cells over the day',
  bar: 'never a 429 of the provider; no cold cell refused before 24:00 UTC; the stretch visible and monotone',
  run: async scope => {
    const provider = await startProvider(scope, ['--runs', 'none', '--limits', 'free'])
    const desk = await openDesk(scope, provider, start, {
      ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '600',
      ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '5000',
      ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000',
    })
    const cells = desk.supply.grid.cellsIn({ south: 20, west: 87.5, north: 27, east: 93 })
    const known = cells.slice(0, steady)
    let refused = 0
    const ask = (wanted: typeof cells) =>
      Promise.all(
        wanted.map(cell =>
          desk.answers.weather(cell).catch(() => {
            refused += 1
          }),
        ),
      )
    // 180 cells weigh 540, and a minute has 600.
    let now = start
    for (let i = 0; i < steady; i += 180) {
      await ask(known.slice(i, i + 180))
      now += minuteMs
      await desk.moveTo(now)
    }
    const stretches: [number, number][] = []
    const perCell: number[] = []
    const spent: [number, number][] = []
    const dayBegan = Math.floor(start / utcDayMs) * utcDayMs
    for (let step = 1; step < 96; step++) {
      now = dayBegan + step * quarterHourMs
      await desk.moveTo(now)
      // Pulses tell the fleet's demand; the beat that gives them is on the machine's time.
      await new Promise(resolve => setTimeout(resolve, step < 3 ? 700 : 60))
      await ask([...known, ...cells.slice(steady + (step - 1) * newPerStep, steady + step * newPerStep)])
      await desk.settle()
      const hour = (now - dayBegan) / 3_600_000
      stretches.push([hour, desk.supply.timelines.stretch()])
      perCell.push(desk.supply.timelines.stretch() / desk.wanted())
      spent.push([hour, (await provider.state()).weight])
      scope.progress(`${hour.toFixed(2)} h, stretched ${stretches.at(-1)?.[1].toFixed(2)}`)
    }
    const { refused: by429, weight } = await provider.state()
    const values = stretches.slice(2).map(([, value]) => value)
    // What is wanted goes up and down with the new cells; for each wanted cell freshness may only stretch further.
    const back = perCell.slice(3).filter((value, i) => value < (perCell[i + 2] ?? 0) * 0.999).length
    return {
      measured:
        `${by429} × 429, ${refused} cold refused, ${Math.round(weight).toLocaleString('en')} of 10,000 spent; stretch ` +
        `${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)}, ${back} steps back per wanted cell`,
      met: by429 === 0 && refused === 0 && back === 0,
      notes: [`![freshness and spending over the day](capacity-stretch.svg)`],
      plots: {
        'capacity-stretch.svg': chart({
          title: 'A day on a quarter of the budget that demand asks for',
          x: { label: 'hour of the UTC day', max: 24, step: 4 },
          panels: [
            { label: 'freshness, times longer', points: stretches.slice(2) },
            { label: 'weight spent', points: spent, max: 10_000 },
          ],
        }),
      },
    }
  },
}
