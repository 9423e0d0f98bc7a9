// The requests that an operator may pass through the ops listener to the provider: paths, their query parameters, and their
// weight. The listener validates the form of the URL. Pure.

import type { PassthroughProtocol, PathParameters } from '../protocol.ts'
import { usualForecastDays } from './limits.ts'
import { isModelRunPath } from './model-run.ts'
import { forecastPath } from './query.ts'
import { weightOf } from './weight.ts'

const variableLists = ['current', 'hourly', 'daily', 'minutely_15']
const pointLists = ['latitude', 'longitude', 'elevation', 'location_id']

const forecastParameters: PathParameters = {
  lists: [...pointLists, ...variableLists, 'models', 'timezone'],
  counts: [
    'forecast_days',
    'past_days',
    'forecast_hours',
    'past_hours',
    'forecast_minutely_15',
    'past_minutely_15',
  ],
  choices: [
    'temperature_unit',
    'wind_speed_unit',
    'precipitation_unit',
    'timeformat',
    'cell_selection',
    'format',
  ],
}
const noParameters: PathParameters = { lists: [], counts: [], choices: [] }

export const passthrough: PassthroughProtocol = {
  paths: [forecastPath, '/data/<model>/static/meta.json'],
  keyParameter: 'apikey',
  parametersOf: path =>
    path === forecastPath ? forecastParameters : isModelRunPath(path) ? noParameters : undefined,
  // A path that is added here is weighed, unless it is known to cost nothing.
  weightOf: (path, parameters) => (isModelRunPath(path) ? 0 : forecastWeight(parameters)),
}

// The weight that the provider counts; the larger figure where it may count less, such as for a list with an empty item.
const forecastWeight = (parameters: ReadonlyMap<string, string>): number => {
  const itemsOf = (name: string): number => parameters.get(name)?.split(',').length ?? 0
  const count = (name: string): number => Number(parameters.get(name) ?? 0)
  const future = Math.max(
    parameters.has('forecast_days') ? count('forecast_days') : usualForecastDays,
    Math.ceil(count('forecast_hours') / 24),
    Math.ceil(count('forecast_minutely_15') / 96),
  )
  const past = Math.max(
    count('past_days'),
    Math.ceil(count('past_hours') / 24),
    Math.ceil(count('past_minutely_15') / 96),
  )
  const point = weightOf({
    variables: variableLists.reduce((sum, name) => sum + itemsOf(name), 0),
    days: past + future,
    models: Math.max(1, itemsOf('models')),
  })
  return point * Math.max(1, ...pointLists.map(itemsOf))
}
