// The climate of Bangladesh over the year: cool and dry winter, hot pre-monsoon with evening storms, monsoon from June to
// September, drying autumn. Monthly means of the plains around Dhaka, interpolated from month to month.

import { utcDayMs } from 'abohawa/common/calendar.ts'

// By month: wind as km/h and the degrees that it comes from.
const windSpeed = [6, 6, 8, 12, 12, 13, 13, 12, 9, 6, 5, 6]
const windFrom = [325, 300, 235, 190, 170, 160, 160, 160, 150, 60, 350, 335].map(
  degrees => (degrees * Math.PI) / 180,
)

const means = {
  /** Mean of day and night, °C. */
  temperature: [18.4, 21.6, 26.2, 28.8, 29.0, 28.8, 28.5, 28.6, 28.4, 27.1, 23.4, 19.6],
  /** Half of the mean difference between the day's highest and lowest temperature, °C. */
  swing: [6.3, 6.6, 6.4, 5.4, 4.5, 3.2, 2.7, 2.7, 2.9, 3.8, 5.3, 6.1],
  /** °C. */
  dewPoint: [10.6, 12, 15.8, 20.4, 22.8, 24.8, 25.3, 25.3, 24.7, 21.8, 16.2, 12],
  /** Share of the sky, 0..1. */
  cloud: [0.22, 0.24, 0.3, 0.42, 0.54, 0.74, 0.8, 0.78, 0.68, 0.46, 0.3, 0.24],
  /** At sea level, hPa. */
  pressure: [1015.6, 1013.4, 1010.4, 1007.4, 1004.4, 1000.6, 1000.2, 1001.6, 1005, 1010, 1013.4, 1015.6],
  /** The lift that rain needs. */
  dryness: [0.6, 0.55, 0.46, 0.36, 0.29, 0.19, 0.13, 0.15, 0.22, 0.38, 0.54, 0.61],
  /** Part of the rain that falls from thunderclouds, 0..1. */
  convection: [0.2, 0.5, 0.9, 1, 0.9, 0.55, 0.4, 0.42, 0.5, 0.55, 0.3, 0.2],
  /** Wind towards the east and towards the north, km/h. */
  eastward: windSpeed.map((speed, i) => -speed * Math.sin(windFrom[i] as number)),
  northward: windSpeed.map((speed, i) => -speed * Math.cos(windFrom[i] as number)),
}

/** The climate of the plains at one time of the year. */
export type Season = Record<keyof typeof means, number>

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
  const between = (months: readonly number[]): number => {
    const first = months[from] as number
    return first + ((months[to] as number) - first) * share
  }
  return {
    temperature: between(means.temperature),
    swing: between(means.swing),
    dewPoint: between(means.dewPoint),
    cloud: between(means.cloud),
    pressure: between(means.pressure),
    dryness: between(means.dryness),
    convection: between(means.convection),
    eastward: between(means.eastward),
    northward: between(means.northward),
  }
}
