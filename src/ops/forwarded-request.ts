// A request to /provider/… as it may go to the provider: its path decoded once and judged, its parameters known by name,
// its weight counted. What is sent is put together from what was judged and from nothing else. Pure; sends nothing.

import { holdsKey } from '../key-redaction.ts'
import { weightOf } from '../provider/weight.ts'
import { quoted, Refusal } from './refusal.ts'

export type ForwardedRequest = {
  /** Path and query, canonically encoded, to be put behind the provider's base URL. */
  readonly target: string
  /** What the provider counts for it, over all points; 0 where it counts nothing. */
  readonly weight: number
}

/** @param target of the request, behind `/provider`. @throws Refusal */
export const forwardedRequest = (target: string): ForwardedRequest => {
  if (holdsKey(target))
    throw new Refusal(
      400,
      'query',
      'the URL holds an API key of this gateway; allowed: one without, the provider would log it',
    )
  const [rawPath = '', ...rest] = target.split('?')
  const path = judgedPath(rawPath)
  const isForecast = path === forecastPath
  const query = new URLSearchParams(rest.join('?'))
  // The key is ours; the caller's own goes nowhere.
  query.delete('apikey')
  const parameters = isForecast ? judgedParameters(query) : judgedParameters(query, [], [])
  const text = new URLSearchParams([...parameters]).toString().replaceAll('%2C', ',')
  return {
    target: text === '' ? path : `${path}?${text}`,
    weight: isForecast ? forecastWeight(parameters) : 0,
  }
}

const forecastPath = '/v1/forecast'
const runPath = /^\/data\/[a-z0-9_]{1,40}\/static\/meta\.json$/

const judgedPath = (raw: string): string => {
  const path = decoded(raw)
  const fault = path === undefined ? 'is not percent-encoded UTF-8' : formFault(raw, path)
  if (fault !== undefined)
    throw new Refusal(400, 'path', `the path ${quoted(path ?? raw)} ${fault}; allowed: ${allowedPaths}`)
  if (path === forecastPath || (path !== undefined && runPath.test(path))) return path
  throw new Refusal(
    404,
    'path',
    `the path ${quoted(path ?? '')} is not let through; allowed: ${allowedPaths}`,
  )
}

const allowedPaths = `${forecastPath} and /data/<model>/static/meta.json`

const decoded = (raw: string): string | undefined => {
  try {
    return decodeURIComponent(raw)
  } catch {
    return undefined
  }
}

// Each is a way to be read as one path here and as another behind.
const formFault = (raw: string, path: string): string | undefined => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  if (/[\x00-\x1f\x7f]/.test(path)) return 'holds a control character'
  if (path.includes('\\')) return 'holds a backslash'
  if (path.includes('%')) return 'is percent-encoded twice'
  if (/%2f/i.test(raw)) return 'holds an encoded slash'
  if (path.includes('//')) return 'holds an empty segment'
  if (/(^|\/)\.\.?(\/|$)/.test(path)) return 'holds a dot segment'
  return undefined
}

const variableLists = ['current', 'hourly', 'daily', 'minutely_15']
const pointLists = ['latitude', 'longitude', 'elevation', 'location_id']
const lists = [...pointLists, ...variableLists, 'models', 'timezone']
const counts = [
  'forecast_days',
  'past_days',
  'forecast_hours',
  'past_hours',
  'forecast_minutely_15',
  'past_minutely_15',
]
const choices = [
  'temperature_unit',
  'wind_speed_unit',
  'precipitation_unit',
  'timeformat',
  'cell_selection',
  'format',
]
const singles = [...counts, ...choices]

// Names that are not known are refused and not dropped: some of them multiply the points.
const judgedParameters = (
  query: URLSearchParams,
  listed: readonly string[] = lists,
  single: readonly string[] = singles,
): Map<string, string> => {
  const judged = new Map<string, string>()
  for (const name of new Set(query.keys())) {
    const values = query.getAll(name)
    if (!listed.includes(name) && !single.includes(name))
      throw new Refusal(
        400,
        'query',
        `the parameter ${quoted(name)} is not let through; allowed: ${[...listed, ...single].join(', ') || 'none'}`,
      )
    if (single.includes(name) && values.length > 1)
      throw new Refusal(400, 'query', `${name} is given more than once; allowed: at most once`)
    const value = values.join(',')
    if (counts.includes(name) && !/^\d{1,5}$/.test(value))
      throw new Refusal(
        400,
        'query',
        `${name} is ${quoted(value)}; allowed: a whole number of at most 5 digits`,
      )
    judged.set(name, value)
  }
  return judged
}

const defaultForecastDays = 7

// As the provider counts it; where it may count less, such as for a list with an empty item, by the larger figure.
const forecastWeight = (parameters: ReadonlyMap<string, string>): number => {
  const itemsOf = (name: string): number => parameters.get(name)?.split(',').length ?? 0
  const count = (name: string): number => Number(parameters.get(name) ?? 0)
  const future = Math.max(
    parameters.has('forecast_days') ? count('forecast_days') : defaultForecastDays,
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
