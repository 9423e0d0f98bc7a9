// The weather of a place at an instant: a pure function of seed, model run, place and instant. Rain and showers add up, codes follow
// rain and cloud, gusts are at least the wind, an hour is the sum of its quarters. Instants are whole quarter-hours in ms.

import { quarterHourMs } from 'abohawa/common/calendar.ts'
import { type AirState, createAir, type Site } from './air.ts'
import { type Season, seasonAt } from './climate.ts'
import type { ModelRun } from './model-runs.ts'
import { createRain } from './rain.ts'
import { isDay } from './sun.ts'
import { createTexture } from './texture.ts'
import { weatherCode } from './weather-code.ts'
import { createWind } from './wind.ts'

/** °C, %, mm, cm, hPa, km/h, degrees; rain, gusts and code are those of the step before the instant. */
export type Weather = AirState & {
  /** 1 by day, 0 by night. */
  readonly day: number
  readonly precipitation: number
  readonly rain: number
  readonly showers: number
  readonly snowfall: number
  readonly code: number
  readonly wind: number
  readonly direction: number
  readonly gusts: number
  readonly chance: number
}

// The rain of a step in hundredths of a mm, and its strongest gust.
type Step = { perHour: number; rain: number; showers: number; gusts: number }

/** The weather of a site for a seed and a model run; without a run it is the true weather. */
export const createSiteWeather = (seed: number, run: ModelRun | undefined, site: Site) => {
  const place = site.cell
  const texture = createTexture(seed, run, place)
  const rain = createRain(texture, place)
  const wind = createWind(texture, place)
  const air = createAir(texture, site)

  const addQuarter = (step: Step, instant: number, season: Season): void => {
    const amount = rain.amount(instant, season)
    step.rain += amount
    if (amount > 0) step.showers += rain.showers(amount, instant, season)
    step.gusts = Math.max(step.gusts, wind.gust(instant, season, amount))
  }

  const weatherAt = (instant: number, season: Season, step: Step): Weather => {
    const { speed, direction } = wind.at(instant, season)
    const state = air.at(instant, season, rain.surplus(instant, season), speed)
    return {
      ...state,
      day: isDay(instant, place) ? 1 : 0,
      precipitation: step.rain / 100,
      rain: (step.rain - step.showers) / 100,
      showers: step.showers / 100,
      snowfall: 0,
      code: weatherCode({
        rate: (step.rain * step.perHour) / 100,
        showers: (step.showers * step.perHour) / 100,
        convection: season.convection,
        cloud: state.cloud,
        foggy: state.humidity > 97 && speed < 9 && season.temperature < 25,
      }),
      wind: speed,
      direction,
      gusts: step.gusts,
      chance: rain.chance(instant, season),
    }
  }

  /** With the rain and gusts of the quarters before. */
  const over =
    (quarters: number) =>
    (instant: number): Weather => {
      const step: Step = { perHour: 4 / quarters, rain: 0, showers: 0, gusts: 0 }
      for (let back = quarters - 1; back > 0; back--)
        addQuarter(step, instant - back * quarterHourMs, seasonAt(instant - back * quarterHourMs))
      const season = seasonAt(instant)
      addQuarter(step, instant, season)
      return weatherAt(instant, season, step)
    }
  return { quarterHour: over(1), hour: over(4) }
}
