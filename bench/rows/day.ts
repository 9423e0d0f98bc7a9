// A day of demand on every place of the catalogue, by age and by run: the provider requests for each cell, beside those
// that a response cache would have made for the same requests.

import { hourMs, isoOf, minuteMs } from '../../src/common/calendar.ts'
import { weightOf } from '../../src/provider/open-meteo/limits.ts'
import { weightOfPoint } from '../../src/provider/open-meteo/request.ts'
import { horizonFor, longestUseMs } from '../../src/weather/horizon.ts'
import { currentUnits, dailyUnits, forecastDays, hourlyUnits } from '../../src/weather/weather-variables.ts'
import { forAll, metric, placesByCell } from '../../test/scenarios/set-up.ts'
import { plentyOfQuota } from '../../test/support/gateway-env.ts'
import { manualClock } from '../../test/support/manual-clock.ts'
import { type ProviderProcess, startProvider } from '../../test/support/provider.ts'
import { startGateway } from '../../test/support/start-gateway.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import { until } from '../../test/support/until.ts'
import { count, type Finding, found, judged, type Progress, type Row } from '../row.ts'
import { get } from '../tools/world.ts'

const start = Date.parse('2026-11-21T06:00:00Z')
const stepMs = 15 * minuteMs
const steps = 96

const variables = [currentUnits, hourlyUnits, dailyUnits].flatMap(Object.keys).length
const weightOfAnswer = weightOf({ variables, days: forecastDays })

// Every place is requested once an hour, and every cell in each step between, by another of its places every time.
const requestsOf = (places: ReturnType<typeof placesByCell>, step: number): string[] =>
  places.flatMap(({ paths }) => (step % 4 === 0 ? paths : [paths[step % paths.length] ?? '']))

/** Waits until a gateway has no provider request in flight or waiting. */
const quiet = async (provider: ProviderProcess, opsUrl: string): Promise<void> => {
  let [still, points] = [0, -1]
  await until('the provider is quiet', async () => {
    const state = await provider.state()
    const waiting = await metric(opsUrl, 'abohawa_provider_waiting_cells')
    const isStill = state.inFlight === 0 && waiting === 0 && state.points === points
    still = isStill ? still + 1 : 0
    points = state.points
    return still >= 2
  })
}

const measureDay = async (freshness: 'age' | 'run', scope: Teardown, progress: Progress) => {
  const places = placesByCell()
  const clock = manualClock(start)
  const provider = await startProvider(scope, ['--runs', 'ecmwf'], isoOf(start))
  const gateway = await startGateway(scope, {
    providerUrl: provider.url,
    clock,
    env: {
      ...plentyOfQuota,
      ABOHAWA_LOG__ACCESS: 'false',
      ABOHAWA_CACHE__FRESHNESS: freshness,
      ABOHAWA_TEST_PROVIDER__RUNS__POLL_EVERY: '1s',
    },
  })
  const headers = { 'x-api-key': gateway.keys.enterprise ?? '' }
  const newestRun = async (): Promise<number> => {
    const meta = await (await fetch(`${provider.url}/data/ecmwf_ifs/static/meta.json`)).json()
    return (meta as { last_run_availability_time: number }).last_run_availability_time
  }

  const byHour = new Map<string, number>()
  const answers = { requests: 0, failed: 0, byHour: 0 }
  let firstFill = 0
  for (let step = 0; step < steps; step++) {
    const instant = start + step * stepMs
    clock.set(instant)
    await provider.steer({ now: isoOf(instant) })
    if (freshness === 'run') {
      const newest = await newestRun()
      const name = 'abohawa_provider_run_available_timestamp_seconds'
      await until('the newest run is known', async () => (await metric(gateway.opsUrl, name)) >= newest)
    }
    const requests = requestsOf(places, step)
    for (const path of requests) {
      answers.requests += 1
      if (clock.now() - (byHour.get(path) ?? Number.NEGATIVE_INFINITY) >= hourMs) {
        byHour.set(path, clock.now())
        answers.byHour += 1
      }
    }
    await forAll(requests, 32, async path => {
      if ((await get(gateway.apiUrl + path, headers)).status !== 200) answers.failed += 1
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
  return judged(
    `a day of demand on ${count(day.places)} places (${count(day.cells)} cells) by ${freshness}: weight per cell`,
    `≤ ${fetches} × ${day.unit.toFixed(1)} + the first fill (${day.firstFill.toFixed(1)}) = ${allowed.toFixed(1)}`,
    day.perCell <= allowed && day.failed === 0,
    `${day.perCell.toFixed(1)} (${count(day.weight)} in all, ${count(day.calls)} requests); ` +
      `${count(day.requests)} requests, ${day.failed} failed`,
    { ...day, allowed },
  )
}

export const day: Row = {
  id: 'day',
  what: 'a day of demand on every place: what it costs at the provider',
  run: async (scope, _, progress) => {
    const byAge = await measureDay('age', scope, progress)
    const byRun = await measureDay('run', scope, progress)
    // Each request of a quarter-hour is for another URL.
    const [hourly, quarterly] = [byAge.byHour, byAge.requests].map(
      misses => (misses * weightOfAnswer) / byAge.cells,
    )
    const times = (of = 0, day = byAge): string => (of / day.perCell).toFixed(day === byAge ? 1 : 0)
    return {
      findings: [
        findingOf(byAge, 'age'),
        findingOf(byRun, 'run'),
        found(
          'a cache by URL, same requests: weight per cell',
          `kept 1 h ${count(hourly ?? 0)}, 15 min ${count(quarterly ?? 0)}: ` +
            `${times(hourly)} and ${times(quarterly)} times by age, ${times(hourly, byRun)} and ${times(quarterly, byRun)} times by run`,
        ),
      ],
      notes: [
        `Each miss of the answer cache is one request of the answer’s own shape (${variables} variables, ${forecastDays} days, weight ${weightOfAnswer.toFixed(1)}).`,
      ],
    }
  },
}
