// Reads the parameters of a call from its query string, and refuses invalid values in the provider's words.

import { shortened } from 'abohawa/common/outside-text.ts'

/** The provider's error response. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly status: number

  /** @param reason the sentence in the body; clients tell the kinds of 429 apart by its first words */
  constructor(status: number, reason: string) {
    super(reason)
    this.status = status
  }
}

/** The provider's error body. */
export const errorBody = (reason: string): string => JSON.stringify({ error: true, reason })

/** By name; values of repeated parameters are joined by commas. */
export type Parameters = ReadonlyMap<string, string>

export const parametersIn = (query: string): Parameters => {
  const values = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(query)) {
    const before = values.get(name)
    values.set(name, before === undefined ? value : `${before},${value}`)
  }
  return values
}

/** The parts of a parameter, or undefined when it is absent or empty. */
export const listIn = (given: Parameters, name: string): string[] | undefined => {
  const value = given.get(name)
  return value ? value.split(',').map(part => part.trim()) : undefined
}

/** Decimal numbers from -limit to limit. @throws Refusal */
export const numbersIn = (given: Parameters, name: string, limit: number): number[] | undefined =>
  listIn(given, name)?.map(text => {
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) throw corrupted(name, 'a number', text)
    if (Math.abs(Number(text)) > limit)
      throw refused(`Parameter '${name}' must be in range of -${limit} to ${limit}. Given: ${cut(text)}.`)
    return Number(text)
  })

/** A whole number from 0 to limit. @throws Refusal */
export const countIn = (given: Parameters, name: string, limit: number): number | undefined => {
  const text = given.get(name)
  if (!text) return undefined
  if (!/^-?\d{1,9}$/.test(text)) throw corrupted(name, 'a whole number', text)
  // The real provider repeats its limit instead of the given number.
  if (Number(text) < 0 || Number(text) > limit)
    throw refused(`${sentenceName(name)} is invalid. Allowed range 0 to ${limit}. Given ${text}.`)
  return Number(text)
}

/** Names of variables, in order. @throws Refusal */
export const namesIn = (given: Parameters, name: string, known: object): string[] =>
  (listIn(given, name) ?? []).map(text => {
    if (!Object.hasOwn(known, text)) throw corrupted(name, 'a simulated variable', text)
    return text
  })

/** Refuses parameters of the real provider that are not simulated. @throws Refusal */
export const refuseUnsimulated = (given: Parameters): void => {
  for (const [name, allowed] of Object.entries(simulated)) {
    const text = given.get(name)
    if (!text || allowed.includes(text)) continue
    const rest = allowed.length === 0 ? '' : ` Allowed: ${allowed.join(', ')}.`
    throw refused(`Parameter '${name}' with value '${cut(text)}' is not simulated.${rest}`)
  }
}

// The simulated values by parameter; they don't change the response.
const simulated: Readonly<Record<string, readonly string[]>> = {
  format: ['json'],
  timeformat: ['iso8601'],
  temperature_unit: ['celsius'],
  wind_speed_unit: ['kmh'],
  windspeed_unit: ['kmh'],
  precipitation_unit: ['mm'],
  length_unit: ['metric'],
  models: ['best_match'],
  cell_selection: ['land', 'nearest'],
  temporal_resolution: ['native'],
  current_weather: ['false', '0'],
  ...Object.fromEntries(
    ['elevation', 'location_id', 'tilt', 'azimuth', 'start_date', 'end_date', 'start_hour', 'end_hour']
      .concat('start_minutely_15', 'end_minutely_15')
      .map(name => [name, []]),
  ),
}

export const refused = (reason: string): Refusal => new Refusal(400, reason)

export const cut = (text: string): string => shortened(text, 60)

const corrupted = (name: string, wanted: string, text: string): Refusal =>
  refused(`Data corrupted at path '${name}'. Can't read ${wanted} from '${cut(text)}'.`)

// "forecast_days" → "Forecast days"
const sentenceName = (name: string): string =>
  name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ')
