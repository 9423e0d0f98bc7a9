// A day of demand on every place of the catalogue, by age and by run: the provider requests for each cell, beside those
// that a response cache would have made for the same requests.

import { hourMs, minuteMs } from '../../src/common/calendar.ts'
import { weightOf } from '../../src/provider/open-meteo/limits.ts'
import { weightOfPoint } from '../../src/provider/open-meteo/request.ts'
import { horizonFor, longestUseMs } from '../../src/weather/horizon.ts'
import { currentUnits, dailyUnits, forecastDays, hourlyUnits } from '../../src/weather/weather-variables.ts'
import { startOnOneClock } from '../../test/scenarios/one-clock.ts'
import { forAll, metric, noBudget, placesByCell, quiet, type Scope } from '../../test/scenarios/set-up.ts'
import { until } from '../../test/support/until.ts'
import { count, type Finding, type Row } from '../row.ts'

const start = Date.parse('2026-11-21T06:00:00Z')
const stepMs = 15 * minuteMs
const steps = 96

const variables = [currentUnits, hourlyUnits, dailyUnits].flatMap(Object.keys).length
const weightOfAnswer = weightOf({ variables, days: forecastDays })

// Every place is requested once an hour, and every cell in each step between, by another of its places every time.
const requestsOf = (places: ReturnType<typeof placesByCell>, step: number): string[] =>
  places.flatMap(({ paths }) => (step % 4 === 0 ? paths : [paths[step % paths.length] ?? '']))

const measureDay = async (freshness: 'age' | 'run', scope: Scope, progress: (text: string) => void) => {
  const places = placesByCell()
  const { clock, provider, gateway, send, moveTo } = await startOnOneClock(scope, {
    start,
    provider: ['--runs', 'ecmwf'],
    env: {
      ...noBudget,
      ABOHAWA_CACHE__FRESHNESS: freshness,
      ABOHAWA_TEST_PROVIDER__RUNS__POLL_EVERY: '1s',
    },
  })
  const newestRun = async (): Promise<number> => {
    const meta = await (await fetch(`${provider.url}/data/ecmwf_ifs/static/meta.json`)).json()
    return (meta as { last_run_availability_time: number }).last_run_availability_time
  }

  const byHour = new Map<string, number>()
  const byQuarter = new Map<string, number>()
  const answers = { requests: 0, failed: 0, byHour: 0, byQuarter: 0 }
  let firstFill = 0
  for (let step = 0; step < steps; step++) {
    await moveTo(start + step * stepMs)
    if (freshness === 'run') {
      const newest = await newestRun()
      const name = 'abohawa_provider_run_available_timestamp_seconds'
      await until(
        'the newest run is known',
        async () => (await metric(gateway.opsUrl, name)) >= newest,
        60_000,
      )
    }
    const requests = requestsOf(places, step)
    for (const path of requests) {
      answers.requests += 1
      if (clock.now() - (byHour.get(path) ?? Number.NEGATIVE_INFINITY) >= hourMs) {
        byHour.set(path, clock.now())
        answers.byHour += 1
      }
      if (byQuarter.get(path) !== step) {
        byQuarter.set(path, step)
        answers.byQuarter += 1
      }
    }
    await forAll(requests, 32, async path => {
      if ((await send(path)).status !== 200) answers.failed += 1
    })
    await quiet(provider, gateway.opsUrl)
    if (step === 0) firstFill = (await provider.state()).weight / places.length
    progress(`${freshness}, step ${step + 1} of ${steps}`)
  }
  const { weight, calls } = await provider.state()
  const { cache, weather } = gateway.config
  await gateway.close()
  return {
    ...answers,
    places: places.reduce((sum, { paths }) => sum + paths.length, 0),
    cells: places.length,
    unit: weightOfPoint(horizonFor(longestUseMs(cache), weather.hourlyHours)),
    firstFill,
    weight,
    perCell: weight / places.length,
    calls,
  }
}

const findingOf = (day: Awaited<ReturnType<typeof measureDay>>, freshness: 'age' | 'run'): Finding => {
  const fetches = freshness === 'age' ? 24 : 4
  const allowed = fetches * day.unit + day.firstFill
  return {
    what: `a day of demand on ${count(day.places)} places (${count(day.cells)} cells) by ${freshness}: weight per cell`,
    bar: `≤ ${fetches} × ${day.unit.toFixed(1)} + the first fill (${day.firstFill.toFixed(1)}) = ${allowed.toFixed(1)}`,
    measured:
      `${day.perCell.toFixed(1)} (${count(day.weight)} in all, ${count(day.calls)} requests); ` +
      `${count(day.requests)} requests, ${day.failed} failed`,
    met: day.perCell <= allowed && day.failed === 0,
    figures: { ...day, allowed },
  }
}

export const day: Row = {
  id: 'day',
  method:
    '24 hours in steps of 15 minutes on a clock that is moved, gateway and provider alike: every place is requested once ' +
    'an hour, and in the steps between every cell once, by its places in turn. The weight is what the provider counted. ' +
    'Beside it: a cache of answers, keyed by URL, on the same requests, each miss one request of the answer’s own shape ' +
    `(${variables} variables, ${forecastDays} days, weight ${weightOfAnswer.toFixed(1)}).`,
  run: async (scope, progress) => {
    const byAge = await measureDay('age', scope, progress)
    const byRun = await measureDay('run', scope, progress)
    const perCell = (misses: number): number => (misses * weightOfAnswer) / byAge.cells
    return {
      findings: [
        findingOf(byAge, 'age'),
        findingOf(byRun, 'run'),
        {
          what: 'an answer cache by URL on the same requests: weight per cell',
          bar: '— (comparison)',
          measured:
            `kept for 1 h ${count(perCell(byAge.byHour))} (wrong after each quarter-hour), ` +
            `right at each quarter-hour ${count(perCell(byAge.byQuarter))}: ` +
            `${(perCell(byAge.byHour) / byAge.perCell).toFixed(1)} and ${(perCell(byAge.byQuarter) / byAge.perCell).toFixed(1)} ` +
            `times by age, ${(perCell(byAge.byHour) / byRun.perCell).toFixed(0)} and ${(perCell(byAge.byQuarter) / byRun.perCell).toFixed(0)} times by run`,
          met: null,
          figures: { byHour: byAge.byHour, byQuarter: byAge.byQuarter, weightOfAnswer },
        },
      ],
      notes: [
        `With a request for all ${count(byAge.places)} places in every quarter-hour, a correct answer cache by URL would cost ` +
          `${count((byAge.places * 96 * weightOfAnswer) / byAge.cells)} a cell and day; the cost of timelines does not ` +
          'depend on the number of places or requests. Steps of 15 minutes make by-age periods of 75 minutes, of the 60 to 72 ' +
          'that the settings give: at a finer demand up to 24 fetches a day.',
      ],
    }
  },
}
