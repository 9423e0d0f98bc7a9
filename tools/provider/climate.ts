// The climate of Bangladesh over the year: cool and dry winter, hot pre-monsoon with evening storms, monsoon from June to
// September, drying autumn. Monthly means of the plains around Dhaka, interpolated from month to month.

import { utcDayMs } from 'abohawa/common/calendar.ts'

/** Climate means of the plains at one time of the year. */
export type Season = {
  /** Mean of day and night, °C. */
  temperature: number
  /** Half of the mean difference between the day's highest and lowest temperature, °C. */
  swing: number
  /** °C. */
  dewPoint: number
  /** Share of the sky, 0..1. */
  cloud: number
  /** At sea level, hPa. */
  pressure: number
  /** The lift that rain needs: 0.1 in the wettest weeks, 0.7 in the driest. */
  dryness: number
  /** Part of the rain that falls from thunderclouds, 0..1. */
  convection: number
  /** Wind towards the east and towards the north, km/h. */
  eastward: number
  northward: number
}

type Monthly = readonly number[]
const temperature: Monthly = [18.4, 21.6, 26.2, 28.8, 29.0, 28.8, 28.5, 28.6, 28.4, 27.1, 23.4, 19.6]
const swing: Monthly = [6.3, 6.6, 6.4, 5.4, 4.5, 3.2, 2.7, 2.7, 2.9, 3.8, 5.3, 6.1]
const dewPoint: Monthly = [10.6, 12, 15.8, 20.4, 22.8, 24.8, 25.3, 25.3, 24.7, 21.8, 16.2, 12]
const cloud: Monthly = [0.22, 0.24, 0.3, 0.42, 0.54, 0.74, 0.8, 0.78, 0.68, 0.46, 0.3, 0.24]
const pressure: Monthly = [
  1015.6, 1013.4, 1010.4, 1007.4, 1004.4, 1000.6, 1000.2, 1001.6, 1005, 1010, 1013.4, 1015.6,
]
const dryness: Monthly = [0.6, 0.55, 0.46, 0.36, 0.29, 0.19, 0.13, 0.15, 0.22, 0.38, 0.54, 0.61]
const convection: Monthly = [0.2, 0.5, 0.9, 1, 0.9, 0.55, 0.4, 0.42, 0.5, 0.55, 0.3, 0.2]
const windSpeed: Monthly = [6, 6, 8, 12, 12, 13, 13, 12, 9, 6, 5, 6]
const windFrom: Monthly = [325, 300, 235, 190, 170, 160, 160, 160, 150, 60, 350, 335]
const eastward = windSpeed.map((speed, i) => -speed * Math.sin(((windFrom[i] ?? 0) * Math.PI) / 180))
const northward = windSpeed.map((speed, i) => -speed * Math.cos(((windFrom[i] ?? 0) * Math.PI) / 180))

const monthMs = (365.2425 / 12) * utcDayMs
// The monthly means belong to the middle of the month; the first is that of January 2020.
const midJanuary = Date.UTC(2020, 0, 1) + monthMs / 2

/** The climate of the plains at an instant, in ms since the epoch. */
export const seasonAt = (instant: number): Season => {
  const months = (instant - midJanuary) / monthMs
  const floor = Math.floor(months)
  const share = months - floor
  const from = ((floor % 12) + 12) % 12
  const to = (from + 1) % 12
  const between = (means: Monthly): number => {
    const first = means[from] as number
    return first + ((means[to] as number) - first) * share
  }
  return {
    temperature: between(temperature),
    swing: between(swing),
    dewPoint: between(dewPoint),
    cloud: between(cloud),
    pressure: between(pressure),
    dryness: between(dryness),
    convection: between(convection),
    eastward: between(eastward),
    northward: between(northward),
  }
}
