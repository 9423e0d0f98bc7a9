// A day in which every place is asked for all the time: what the provider's weight is by age and by run, and what a
// cache of answers would have spent on the very same requests.

import { hourMs, minuteMs, quarterHourMs } from '../../src/calendar.ts'
import { weightOf } from '../../src/provider/weight.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { openDesk, type Row, type Scope } from './stage.ts'

const start = Date.parse('2026-11-21T13:00:00Z')
const dayMs = 24 * hourMs
const stepMs = 5 * minuteMs

/** What a cache would load that keeps an answer by its URL until an instant that it is told. */
const answerCache = (expiry: (now: number) => number) => {
  const kept = new Map<string, number>()
  let loads = 0
  return {
    ask: (url: string, now: number) => {
      if (now < (kept.get(url) ?? 0)) return
      kept.set(url, expiry(now))
      loads += 1
    },
    loads: () => loads,
  }
}

const day = async (scope: Scope, freshness: 'age' | 'run') => {
  const provider = await startProvider(scope, freshness === 'run' ? ['--runs', 'ecmwf'] : ['--runs', 'none'])
  const desk = await openDesk(scope, provider, start, {
    ABOHAWA_CACHE__FRESHNESS: freshness,
    ABOHAWA_PROVIDER__MAX_POINTS_PER_REQUEST: '500',
  })
  const { supply, answers, catalogue } = desk
  const places = catalogue.all()
  const byCell = Map.groupBy(places, place => supply.grid.cellOf(place.latitude, place.longitude).id)
  const onePerCell = [...byCell.values()].flatMap(([place]) => place ?? [])
  const hourly = answerCache(now => now + hourMs)
  const right = answerCache(now => Math.floor(now / quarterHourMs + 1) * quarterHourMs)
  let firstFill = 0
  let asked = 0
  for (let now = start; now < start + dayMs; now += stepMs) {
    await desk.moveTo(now)
    await supply.runs?.poll()
    // Every place at each quarter-hour, and every cell in between.
    const wave = (now - start) % quarterHourMs === 0 ? places : onePerCell
    for (let i = 0; i < wave.length; i += 1_000)
      await Promise.all(wave.slice(i, i + 1_000).map(place => answers.weather(place)))
    for (const { type, id } of wave) {
      hourly.ask(`${type}/${id}`, now)
      right.ask(`${type}/${id}`, now)
    }
    asked += wave.length
    await desk.settle()
    if (now === start) firstFill = (await provider.state()).weight
    if ((now - start) % hourMs === 0) scope.progress(`by ${freshness}: hour ${(now - start) / hourMs} of 24`)
  }
  const { weight, calls } = await provider.state()
  return { weight, calls, firstFill, cells: byCell.size, asked, hourly: hourly.loads(), right: right.loads() }
}

// What one answer asks for: current conditions, hours and days, seven of them.
const answerWeight = weightOf({ variables: 15 + 11 + 4, days: 7 })
const w = 3

const rowOf = (freshness: 'age' | 'run', bar: string, most: (firstFill: number) => number): Row => ({
  name: `day-by-${freshness}`,
  what: `a day of demand on all 5,092 places, by ${freshness === 'age' ? 'age, 1 h' : 'model run'}`,
  bar,
  run: async scope => {
    const { weight, calls, firstFill, cells, asked, hourly, right } = await day(scope, freshness)
    const perCell = weight / cells
    return {
      measured: `${perCell.toFixed(1)} per cell (${(perCell / w).toFixed(1)} × w; ${Math.round(weight).toLocaleString('en')} in all, ${calls} requests)`,
      met: perCell <= most(firstFill / cells),
      notes: [
        `${asked.toLocaleString('en')} answers for ${cells.toLocaleString('en')} cells by ${freshness}. On the same requests a cache of answers, by URL, would have ` +
          `spent ${Math.round(hourly * answerWeight).toLocaleString('en')} with one hour of freshness (${((hourly * answerWeight) / weight).toFixed(0)} times as much, and ` +
          `wrong after each quarter-hour), and ${Math.round(right * answerWeight).toLocaleString('en')} if its answers were to be right ` +
          `(${((right * answerWeight) / weight).toFixed(0)} times).`,
      ],
    }
  },
})

export const dayByAge = rowOf('age', 'weight per cell ≤ 24 × w', () => 24 * w)
export const dayByRun = rowOf('run', 'weight per cell ≤ 4 × w + the first fill', first => 4 * w + first)
