// The sections of one point, with every value as text. All sections read the same weather.

import { hourMs, quarterHourMs } from 'abohawa/common/calendar.ts'
import type { Site } from './air.ts'
import type { Section } from './document.ts'
import { printFixed } from './fixed-decimals.ts'
import type { ForecastRequest, SectionName } from './forecast-request.ts'
import { type ModelRun, reachOf } from './model-runs.ts'
import { sunTimes } from './sun.ts'
import { daysOf, printInstant, stepsOf, type TimePrinter } from './time-axis.ts'
import { type Day, dailyVariables, instant, instantVariables, type Variables } from './variables.ts'
import { createSiteWeather, type Weather } from './weather-field.ts'

export type Moment = { readonly seed: number; readonly run: ModelRun | undefined; readonly now: number }

type At = (instant: number) => Weather

/** The requested sections, at a site whose local time is `offsetMs` ahead of UTC. */
export const sectionsFor = (
  request: ForecastRequest,
  { seed, run, now }: Moment,
  site: Site,
  offsetMs: number,
  printer: TimePrinter,
): Section[] => {
  const { variables } = request
  const weather = createSiteWeather(seed, run, site)
  const reach = reachOf(run)
  const quarterAt: At = instant => upTo(reach, instant, weather.quarterHour(instant))
  // Shared with the daily values.
  const hours = new Map<number, Weather>()
  const hourAt: At = instant => {
    const made = hours.get(instant) ?? upTo(reach, instant, weather.hour(instant))
    hours.set(instant, made)
    return made
  }

  const instantSection = (name: SectionName, times: readonly number[], at: At): Section => {
    const samples = times.map(at)
    return {
      name,
      times: printer.instants(times, offsetMs),
      columns: variables[name].map(variable => {
        const { unit, decimals, of } = known(instantVariables, variable)
        return { name: variable, unit, values: samples.map(sample => printFixed(of(sample), decimals)) }
      }),
    }
  }

  const dailySection = (midnights: readonly number[]): Section => {
    const days = midnights.map(midnight => ({
      hours: Array.from({ length: 24 }, (_, hour) => hourAt(midnight + hour * hourMs)),
      sun: sunTimes(midnight, site.cell),
    }))
    return {
      name: 'daily',
      times: printer.days(midnights, offsetMs),
      columns: variables.daily.map(variable => {
        const { unit, decimals, of } = known(dailyVariables, variable)
        const print = (day: Day): string =>
          unit === instant.unit ? printInstant(of(day), offsetMs) : printFixed(of(day), decimals)
        return { name: variable, unit, values: days.map(print) }
      }),
    }
  }

  const steps = (step: number, counts: ForecastRequest['hours']): number[] =>
    stepsOf(step, request, counts, now, offsetMs)
  const running = Math.floor(now / quarterHourMs) * quarterHourMs
  const sections: Readonly<Record<SectionName, () => Section>> = {
    current: () => ({ ...instantSection('current', [running], quarterAt), interval: quarterHourMs / 1000 }),
    minutely_15: () => instantSection('minutely_15', steps(quarterHourMs, request.quarterHours), quarterAt),
    hourly: () => instantSection('hourly', steps(hourMs, request.hours), hourAt),
    daily: () => dailySection(daysOf(request, now, offsetMs)),
  }
  return (Object.keys(sections) as SectionName[])
    .filter(name => variables[name].length > 0)
    .map(name => sections[name]())
}

// The request has only known names.
const known = <Source>(variables: Variables<Source>, name: string) =>
  variables[name] as Variables<Source>[string]

// Beyond the horizon of the models only the variables of the sun have values.
const upTo = (reach: number, instant: number, weather: Weather): Weather => {
  if (instant <= reach) return weather
  const unknown = Object.fromEntries(Object.keys(weather).map(name => [name, Number.NaN]))
  return { ...(unknown as Weather), day: weather.day }
}
