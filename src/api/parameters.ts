// The parameters of a request, read strictly: a wrong one is a 400 that names the parameter, what came and what is required. The API
// reference uses the same schemas.

import * as z from 'zod'
import { type Bounds, locationTypes } from '../catalogue/location-schema.ts'
import type { EndpointName } from '../common/endpoints.ts'
import { forecastDays } from '../weather/weather-variables.ts'
import { badRequest } from './problem.ts'
import { type Sentence, sentences } from './sentences.ts'

export type Parameter<Value> = {
  /** Of the value, which for a number is the number. */
  readonly schema: z.ZodType<Value>
  /** Its value, or its default where none is given. @throws Problem 400 */
  read(given: string | undefined): Value
  /** Of a list with commas between its values: one as an example. */
  readonly list?: string
}

export type Parameters = Readonly<Record<string, Parameter<unknown>>>

/**
 * @param convert to the value that a text stands for; the text itself where it stands for none
 */
const parameter = <Value>(
  schema: Parameter<Value>['schema'],
  // Instead of zod's messages, because an error has a code too.
  refusal: (given: string, isMalformed: boolean) => Sentence,
  convert: (given: string) => unknown = given => given,
): Parameter<Value> => ({
  schema,
  read: given => {
    const value = given === undefined ? undefined : convert(given)
    const { success, data } = schema.safeParse(value)
    if (success) return data
    throw badRequest(refusal(given as string, value === given))
  },
})

/** Only plain numbers: no exponent, no blank, no other digits. */
const numberIn =
  (form: RegExp) =>
  (given: string): number | string =>
    // Number('-0') would otherwise be sent back as it came.
    form.test(given) ? Number(given) + 0 : given

export type Query<Name extends string> = Partial<Record<Name, string>>

/**
 * The parameters of a query that are wanted. Others are ignored; one of these given twice is refused, and so is a list whose name
 * has brackets: many clients write `places[]=` or `places[0]=` unless configured otherwise.
 */
export const queryOf = <Name extends string>(
  query: string,
  wanted: Readonly<Record<Name, Parameter<unknown>>>,
): Query<Name> => {
  const found: Query<Name> = {}
  if (query === '') return found
  for (const pair of query.split('&')) {
    const equals = pair.indexOf('=')
    const name = nameIn(equals === -1 ? pair : pair.slice(0, equals))
    if (!isIn(wanted, name)) {
      if (name.includes('[')) refuseBrackets(wanted, name)
      continue
    }
    const given = equals === -1 ? '' : pair.slice(equals + 1)
    const value = decoded(given)
    if (value === undefined) throw badRequest(sentences.parameter.notEncoded(name, given))
    if (found[name] !== undefined) throw badRequest(sentences.parameter.twice(name, wanted[name].list))
    found[name] = value
  }
  return found
}

const refuseBrackets = (wanted: Parameters, given: string): void => {
  const name = given.slice(0, given.indexOf('['))
  const list = Object.hasOwn(wanted, name) ? wanted[name]?.list : undefined
  if (list !== undefined) throw badRequest(sentences.parameter.brackets(name, given, list))
}

// Known names are ASCII. An error for each undecodable name would cost more than many requests.
const nameIn = (part: string): string =>
  part.includes('%')
    ? part.replace(/%([0-7][0-9a-f])/gi, (_, digits: string) =>
        String.fromCharCode(Number.parseInt(digits, 16)),
      )
    : part

// Undefined for what is not percent-encoded UTF-8.
const decoded = (part: string): string | undefined => {
  try {
    return decodeURIComponent(part.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

const isIn = <Name extends string>(
  wanted: Readonly<Record<Name, Parameter<unknown>>>,
  given: string,
): given is Name => Object.hasOwn(wanted, given)

const languages = ['bn', 'en'] as const
export type Language = (typeof languages)[number]

export const language = parameter(z.enum(languages).default('bn'), sentences.parameter.language)

/** The names of additions to a body, with commas between; undefined where none is wanted. */
const additions = <const Name extends string>(
  ...names: readonly [Name, ...Name[]]
): Parameter<readonly Name[] | undefined> => ({
  ...parameter(
    z.array(z.enum(names)).optional(),
    given => sentences.parameter.include(given, names),
    given => (given === '' ? undefined : valuesIn(given)),
  ),
  list: names.join(','),
})

/** The values of a list; people write a blank after a comma. */
const valuesIn = (list: string): string[] => list.split(',').map(value => value.trim())

export const locationType = parameter(z.enum(locationTypes), given =>
  sentences.parameter.type(given, locationTypes),
)

/** Text that selects something, or nothing. */
export const identifier: Parameter<string> = parameter(z.string(), () => sentences.unexpected)
/** The same, where an empty text selects nothing either: forms and generated clients send what is left blank. */
const optionalIdentifier: Parameter<string | undefined> = parameter(
  z.string().optional(),
  () => sentences.unexpected,
  given => given || undefined,
)

/** A whole number in decimal digits within min..max, or `fallback` when absent. */
export const wholeNumber = (
  name: string,
  { min, max, fallback }: { min: number; max: number; fallback: number },
): Parameter<number> =>
  parameter(
    z.int().min(min).max(max).default(fallback),
    given => sentences.parameter.wholeNumber(name, given, min, max),
    numberIn(/^\d+$/),
  )

/** A plain decimal number of degrees inside a range that includes both ends. */
export const degrees = (
  name: 'lat' | 'lng',
  { min, max, area }: { min: number; max: number; area: string },
): Parameter<number> =>
  parameter(
    z.number().min(min).max(max),
    (given, isMalformed) =>
      isMalformed
        ? sentences.parameter.degrees(name, given, min, max)
        : sentences.parameter.outOfBounds(name, given, area, min, max),
    numberIn(/^[+-]?\d+(\.\d+)?$/),
  )

const longestSearch = 100
const lengthOf = (text: string): number => [...text].length

export const searchText: Parameter<string> = parameter(
  z
    .string()
    .trim()
    // Counts code points, as JSON Schema does; zod counts halves of surrogate pairs.
    .refine(text => lengthOf(text) <= longestSearch)
    .meta({ maxLength: longestSearch })
    .default(''),
  given => sentences.parameter.longSearch(given.trim(), lengthOf(given.trim()), longestSearch),
)

const maxPlaces = 100
const longestList = 5_000

/** Places and points of a list, `type/id` or `coords/lat/lng`: the distinct ones, in the order of the first of each. */
export const listOfPlaces: Parameter<readonly string[]> = {
  ...parameter(
    z.array(z.string()).min(1).max(maxPlaces),
    (given = '') =>
      given === ''
        ? sentences.parameter.noPlaces(maxPlaces)
        : given.length > longestList
          ? sentences.parameter.longPlaces(given.length, longestList)
          : sentences.parameter.manyPlaces(distinctIn(given).length, maxPlaces),
    // A text that is too long is not split.
    given => (given === '' || given.length > longestList ? given : distinctIn(given)),
  ),
  list: 'district/3026,coords/23.81/90.41',
}
const distinctIn = (list: string): string[] => [...new Set(valuesIn(list))]

const place = { type: locationType, id: identifier } as const

export const locationsParameters = {
  path: {},
  query: {
    type: locationType,
    division_id: optionalIdentifier,
    district_id: optionalIdentifier,
    upazila_id: optionalIdentifier,
    q: searchText,
    limit: wholeNumber('limit', { min: 1, max: 100, fallback: 50 }),
    offset: wholeNumber('offset', { min: 0, max: 1_000_000_000, fallback: 0 }),
  },
} as const

const days = wholeNumber('days', { min: 1, max: forecastDays, fallback: forecastDays })

export const listParameters = {
  weather_places: { places: listOfPlaces, lang: language },
  forecast_places: { places: listOfPlaces, days },
} as const

/** Those of each endpoint. @param area what the bounds are called */
export const parametersOf = ({ south, north, west, east }: Bounds, area: string) =>
  ({
    weather: { path: place, query: { lang: language, include: additions('text') } },
    coords: {
      path: {
        lat: degrees('lat', { min: south, max: north, area }),
        lng: degrees('lng', { min: west, max: east, area }),
      },
      query: { lang: language, include: additions('place', 'text') },
    },
    forecast: { path: place, query: { days, include: additions('text'), lang: language } },
    locations: locationsParameters,
    location: { path: place, query: {} },
    weather_places: { path: {}, query: listParameters.weather_places },
    forecast_places: { path: {}, query: listParameters.forecast_places },
  }) as const satisfies Record<EndpointName, { readonly path: Parameters; readonly query: Parameters }>
