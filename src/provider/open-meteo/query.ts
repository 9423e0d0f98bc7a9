// Builds the request for a list of cells: one path with one fixed set of variables, so that a cell has one timeline and one
// cache entry. Pure; sends nothing.

import type { Cell } from '../../weather/cell.ts'
import { type Horizon, pastDays, pastQuarterHours } from '../../weather/horizon.ts'
import { sections } from './sections.ts'

export const forecastPath = '/v1/forecast'

/** Path and query for cells in this order; the provider answers them in the same order. */
export const pathFor = (cells: readonly Cell[], horizon: Horizon, zone: string): string =>
  `${forecastPath}?latitude=${cells.map(cell => cell.latitude).join(',')}` +
  `&longitude=${cells.map(cell => cell.longitude).join(',')}` +
  `&minutely_15=${namesIn(sections.quarterHours)}` +
  `&past_minutely_15=${pastQuarterHours}&forecast_minutely_15=${horizon.quarterHours}` +
  `&hourly=${namesIn(sections.hours)}` +
  `&daily=${namesIn(sections.days)}` +
  `&past_days=${pastDays}&forecast_days=${horizon.days}&timezone=${encodeURIComponent(zone)}`

const namesIn = ({ units }: { readonly units: object }): string => Object.keys(units).join(',')
