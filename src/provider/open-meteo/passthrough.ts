// The requests that an operator may pass through to the provider: paths, query parameters and weight. All APIs of the provider take the
// same parameters, so that one table and one formula serve them.

import { utcDayMs } from '../../common/calendar.ts'
import type { PassthroughProtocol, PathParameters } from '../protocol.ts'
import { usualForecastDays, weightOf } from './limits.ts'
import { isModelRunPath } from './model-run.ts'
import { forecastPath } from './request.ts'

const variableLists = ['current', 'hourly', 'daily', 'minutely_15', 'six_hourly', 'weekly', 'monthly']
const pointLists = ['latitude', 'longitude', 'elevation', 'location_id']
const dateRanges = ['date', 'hour', 'minutely_15']
// How many of each make a day.
const countUnits = { days: 1, hours: 24, minutely_15: 96 } as const

const parameters: PathParameters = {
  lists: [...pointLists, ...variableLists, 'models', 'domains', 'timezone'],
  counts: Object.keys(countUnits).flatMap(unit => [`forecast_${unit}`, `past_${unit}`]),
  dates: dateRanges.flatMap(unit => [`start_${unit}`, `end_${unit}`]),
  choices: [
    'temperature_unit',
    'wind_speed_unit',
    'precipitation_unit',
    'length_unit',
    'timeformat',
    'cell_selection',
    'temporal_resolution',
    'disable_bias_correction',
    'ensemble',
    'tilt',
    'azimuth',
    'format',
  ],
}
const none: PathParameters = { lists: [], counts: [], dates: [], choices: [] }

// APIs whose models have members, each of which counts as a model.
const withMembers = /^\/v1\/(?:ensemble|seasonal)$/
const maxMembers = 51

export const passthrough: PassthroughProtocol = {
  paths: ['/v1/<API>', '/data/<file>'],
  examplePath: forecastPath,
  keyParameter: 'apikey',
  // No escapes and no dot segments, so that the provider reads the path that is checked here.
  parametersOf: path =>
    /^\/v1\/[a-z0-9_-]{1,40}$/.test(path)
      ? parameters
      : /^\/data(?:\/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,79}){1,8}$/.test(path)
        ? none
        : undefined,
  // Every other path is weighed.
  weightOf: (path, given) =>
    isModelRunPath(path)
      ? 0
      : requestWeight(given, withMembers.test(path) || given.has('ensemble') ? maxMembers : 1),
}

// The weight that the provider counts; the larger figure where it may count less, such as for a list with an empty item.
const requestWeight = (given: ReadonlyMap<string, string>, members: number): number => {
  const itemsOf = (name: string): string[] => given.get(name)?.split(',') ?? []
  const daysOf = (direction: 'forecast' | 'past', usual: number): number =>
    Math.max(
      given.has(`${direction}_days`) ? 0 : usual,
      ...Object.entries(countUnits).map(([unit, perDay]) =>
        Math.ceil(Number(given.get(`${direction}_${unit}`) ?? 0) / perDay),
      ),
    )
  const daysBetween = (unit: string): number => {
    const daysIn = (name: string): number[] => itemsOf(name).map(text => Date.parse(text.slice(0, 10)))
    const [first, last] = [Math.min(...daysIn(`start_${unit}`)), Math.max(...daysIn(`end_${unit}`))]
    return Number.isFinite(last - first) ? Math.floor((last - first) / utcDayMs) + 1 : 0
  }
  const point = weightOf({
    variables: variableLists.reduce((sum, name) => sum + itemsOf(name).length, 0),
    days: Math.max(daysOf('forecast', usualForecastDays) + daysOf('past', 0), ...dateRanges.map(daysBetween)),
    models: Math.max(1, itemsOf('models').length, itemsOf('domains').length) * members,
  })
  // One point with several ranges of dates counts for each of them.
  const perPoint = [...pointLists, ...parameters.dates]
  return point * Math.max(1, ...perPoint.map(name => itemsOf(name).length))
}
