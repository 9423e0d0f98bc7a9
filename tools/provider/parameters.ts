// Reads the parameters of a call from its query string: numbers, counts and known names. Refuses a wrong value in the
// provider's wording, which is sometimes odd.

import { shortened } from 'abohawa/common/outside-text.ts'

/** The provider's error response. The readers of a request throw it, and the handler of the call sends it. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly status: number

  /** @param reason the sentence in the body; clients distinguish the kinds of 429 by its first words */
  constructor(status: number, reason: string) {
    super(reason)
    this.status = status
  }
}

/** The provider's error body. */
export const errorBody = (reason: string): string => JSON.stringify({ error: true, reason })

/** Names and texts, as the caller sent them; repeated parameters and commas mean the same. */
export type Parameters = ReadonlyMap<string, string>

/** The parameters of a query string. */
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
  // The provider's sentence, except that its own gives the limit as the number that was given.
  if (Number(text) < 0 || Number(text) > limit)
    throw refused(`${sentenceName(name)} is invalid. Allowed range 0 to ${limit}. Given ${text}.`)
  return Number(text)
}

/** Names of variables, in the order that they were given. @throws Refusal */
export const namesIn = (given: Parameters, name: string, known: object): string[] =>
  (listIn(given, name) ?? []).map(text => {
    if (!Object.hasOwn(known, text)) throw corrupted(name, 'a simulated variable', text)
    return text
  })

/** Refuses parameters of the real provider that this one does not have, instead of ignoring them. @throws Refusal */
export const refuseUnsimulated = (given: Parameters): void => {
  for (const [name, allowed] of Object.entries(simulated)) {
    const text = given.get(name)
    if (!text || allowed.includes(text)) continue
    const rest = allowed.length === 0 ? '' : ` Allowed: ${allowed.join(', ')}.`
    throw refused(`Parameter '${name}' with value '${cut(text)}' is not simulated.${rest}`)
  }
}

// By parameter, the values that are simulated; they change nothing in the answer.
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
  elevation: [],
  location_id: [],
  tilt: [],
  azimuth: [],
  start_date: [],
  end_date: [],
  start_hour: [],
  end_hour: [],
  start_minutely_15: [],
  end_minutely_15: [],
}

/** A call that the provider refuses with 400. */
export const refused = (reason: string): Refusal => new Refusal(400, reason)

/** The start of a text that a sentence repeats. */
export const cut = (text: string): string => shortened(text, 60)

const corrupted = (name: string, wanted: string, text: string): Refusal =>
  refused(`Data corrupted at path '${name}'. Can't read ${wanted} from '${cut(text)}'.`)

// "forecast_days" → "Forecast days"
const sentenceName = (name: string): string =>
  name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ')
