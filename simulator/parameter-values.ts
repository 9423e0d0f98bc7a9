// Parses single parameters: numbers, counts, choices, known names. Refuses a wrong value in the provider's wording, which is
// sometimes odd.

import { utcDayMs } from '../src/calendar.ts'
import { shortened } from '../src/outside-text.ts'
import { maxForecastDays, maxPastDays } from '../src/provider/open-meteo/limits.ts'
import { formats } from './formats.ts'
import type { Parameters } from './parameters.ts'
import { Refusal } from './refusal.ts'
import type { DateRange } from './time-axis.ts'
import { isUnsimulated, type Variables, variableOf } from './variables.ts'

/** Decimal numbers from -limit to limit. @throws Refusal */
export const readNumbers = (given: Parameters, name: string, limit: number): number[] | undefined =>
  given.list(name)?.map(text => readNumber(name, text, limit))

/** As readNumbers, where `nan` is a number too. @throws Refusal */
export const readNumbersOrNan = (given: Parameters, name: string, limit: number): number[] | undefined =>
  given.list(name)?.map(text => (/^nan$/i.test(text) ? Number.NaN : readNumber(name, text, limit)))

const readNumber = (name: string, text: string, limit: number): number => {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) throw corrupted(name, 'a number', text)
  if (Math.abs(Number(text)) > limit)
    throw refused(`Parameter '${name}' must be in range of -${limit} to ${limit}. Given: ${cut(text)}.`)
  return Number(text)
}

/** A whole number from 0 to limit. @throws Refusal */
export const readCount = (given: Parameters, name: string, limit: number): number | undefined => {
  const text = given.text(name)
  if (text === undefined) return undefined
  if (!/^-?\d{1,9}$/.test(text)) throw corrupted(name, 'a whole number', text)
  // The provider's sentence, except that its own gives the limit as the number that was given.
  if (Number(text) < 0 || Number(text) > limit)
    throw refused(`${sentenceName(name)} is invalid. Allowed range 0 to ${limit}. Given ${text}.`)
  return Number(text)
}

/** A key of `choices`, by default its first. @throws Refusal */
export const readChoice = <Choices extends object>(
  given: Parameters,
  name: string,
  choices: Choices,
): keyof Choices => {
  const allowed = Object.keys(choices)
  const text = given.text(name) ?? (allowed[0] as string)
  if (!allowed.includes(text)) throw corrupted(name, `one of ${allowed.join(', ')}`, text)
  return text as keyof Choices
}

/** Names of variables as they were given, in that order. @throws Refusal */
export const readNames = (given: Parameters, name: string, known: Variables<never>): string[] =>
  (given.list(name) ?? []).map(text => {
    if (variableOf(known, text)) return text
    if (isUnsimulated(text))
      throw refused(`Parameter '${name}' with variable '${cut(text)}' is not simulated.`)
    throw corrupted(name, 'a variable', text)
  })

/** The days from one date to another, both within what is allowed at `now`. @throws Refusal */
export const readDates = (given: Parameters, now: number): DateRange | undefined => {
  const first = readDay(given, 'start_date')
  const last = readDay(given, 'end_date')
  if (first === undefined && last === undefined) return undefined
  if (first === undefined || last === undefined)
    throw refused("Both 'start_date' and 'end_date' must be set in the url.")
  for (const name of countedStretches)
    if ((given.text(name) ?? '0') !== '0')
      throw refused(`Parameter '${name}' is mutually exclusive with 'start_date' and 'end_date'.`)
  if (last < first) throw refused('End-date must be larger or equals than start-date.')
  const today = Math.floor(now / utcDayMs)
  const [from, to] = [today - maxPastDays, today + maxForecastDays - 1]
  for (const [name, day] of [
    ['start_date', first],
    ['end_date', last],
  ] as const)
    if (day < from || day > to)
      throw refused(
        `Parameter '${name}' is out of allowed range from ${dateOf(from)} to ${dateOf(to)}. Given ${dateOf(day)}.`,
      )
  return { firstDay: first, days: last - first + 1 }
}

const countedStretches = [
  'past_days',
  'forecast_days',
  'past_hours',
  'forecast_hours',
  'past_minutely_15',
  'forecast_minutely_15',
]

// Days since the epoch.
const readDay = (given: Parameters, name: string): number | undefined => {
  const text = given.text(name)
  if (text === undefined) return undefined
  const day = Date.parse(`${text}T00:00Z`) / utcDayMs
  // Date.parse takes 31 November for 1 December.
  if (!/^\d{4}-\d\d-\d\d$/.test(text) || Number.isNaN(day) || dateOf(day) !== text)
    throw corrupted(name, 'a date YYYY-MM-DD', text)
  return day
}

const dateOf = (day: number): string => new Date(day * utcDayMs).toISOString().slice(0, 10)

/** One value for each point, when there are any. @throws Refusal */
export const perPoint = <Value>(name: string, values: readonly Value[] | undefined, points: number) => {
  if (values && values.length !== points)
    throw refused(
      `Parameter '${name}' must have the same number of elements as coordinates. Given ${values.length} for ${points}.`,
    )
  return values
}

/** Refuses parameters of the real provider that this one does not have, instead of ignoring them. @throws Refusal */
export const refuseUnsimulated = (given: Parameters): void => {
  for (const [name, allowed] of Object.entries(simulated)) {
    const text = given.text(name)
    if (text === undefined || allowed.includes(text)) continue
    const rest = allowed.length === 0 ? '' : ` Allowed: ${allowed.join(', ')}.`
    throw refused(`Parameter '${name}' with value '${cut(text)}' is not simulated.${rest}`)
  }
}

// By parameter, the values that are simulated; the others change nothing in the answer, or are not there.
const simulated: Readonly<Record<string, readonly string[]>> = {
  models: ['best_match'],
  format: Object.keys(formats),
  cell_selection: ['land', 'nearest'],
  temporal_resolution: ['native'],
  length_unit: ['metric'],
  current_weather: ['false', '0'],
  // A level plane lies alike in every direction, so `azimuth` is ignored.
  tilt: ['0'],
  start_hour: [],
  end_hour: [],
  start_minutely_15: [],
  end_minutely_15: [],
}

// "forecast_days" → "Forecast days"
const sentenceName = (name: string): string =>
  name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ')

const refused = (reason: string): Refusal => new Refusal(400, reason)

const corrupted = (name: string, wanted: string, text: string): Refusal =>
  refused(`Data corrupted at path '${name}'. Cannot read ${wanted} from '${cut(text)}'.`)

const cut = (text: string): string => shortened(text, 60)
