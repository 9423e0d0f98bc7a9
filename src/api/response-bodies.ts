// The bodies of responses: places and weather → the objects of the contract, field by field.

import type { Catalogue, ListPage } from '../catalogue/catalogue.ts'
import type { Location, LocationType } from '../catalogue/location-schema.ts'
import { kilometresBetween, type Point } from '../catalogue/nearest.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../weather/weather-variables.ts'
import { iconOf, weatherTextOf } from '../weather/weather-words.ts'
import type { Forecast, Weather } from './answer.ts'
import { textOutOfPool } from './copy-out-of-pool.ts'
import type { Language } from './parameters.ts'

type Parents = Pick<Catalogue, 'parentOf'>

export const summaryOf = (location: Location, catalogue: Parents) => {
  const parent = catalogue.parentOf(location)
  return {
    type: location.type,
    id: location.id,
    name_en: location.name_en,
    name_bn: location.name_bn,
    slug_en: location.slug_en,
    latitude: location.latitude,
    longitude: location.longitude,
    parent_en: parent?.name_en ?? null,
    parent_bn: parent?.name_bn ?? null,
  }
}

/** The summary with the names in the requested language. */
export const namedSummaryOf = (location: Location, catalogue: Parents, lang: Language) => {
  const summary = summaryOf(location, catalogue)
  const parent = catalogue.parentOf(location)
  return { ...summary, name: nameIn(lang, summary), ...(parent ? { parent: nameIn(lang, parent) } : {}) }
}

const listItemOf = (location: Location, catalogue: Parents) => ({
  ...summaryOf(location, catalogue),
  population: location.population,
  area_sq_km: location.area_sq_km,
})

/** A page of a list; what is beyond the contract is there only where it says something. */
export const listOf = (
  { results, total, matchedAliases, approximate }: ListPage,
  type: LocationType,
  catalogue: Parents,
) => ({
  results: results.map(place => {
    const alias = matchedAliases.get(place)
    return { ...listItemOf(place, catalogue), ...(alias === undefined ? {} : { matched_alias: alias }) }
  }),
  total,
  type,
  ...(approximate ? { approximate } : {}),
})

export const detailOf = (location: Location, catalogue: Parents) => ({
  ...listItemOf(location, catalogue),
  website: location.website,
  bbs_code: location.bbs_code,
})

/** The location of a raw point: it has no name but its coordinates, in whichever language. */
export const pointOf = (latitude: number, longitude: number) => {
  const name = `${latitude.toFixed(3)}, ${longitude.toFixed(3)}`
  return { type: 'coords', latitude, longitude, name_en: name, name_bn: null, name }
}

/** The nearest union to a point, its upazila and its district, which so fit together; without those that are not published. */
export const nearbyOf = (point: Point, catalogue: Parents & Pick<Catalogue, 'nearest'>) => {
  const union = catalogue.nearest('union', point)
  const upazila = union && catalogue.parentOf(union)
  const district = upazila && catalogue.parentOf(upazila)
  const near = (location: Location | undefined) => {
    if (!location?.published) return undefined
    const { type, id, name_en, name_bn } = location
    return {
      type,
      id,
      name_en,
      name_bn,
      distance_km: Math.round(kilometresBetween(location, point) * 10) / 10,
    }
  }
  return { union: near(union), upazila: near(upazila), district: near(district) }
}

// A body is written in two parts: where, which is the same at all times, and what weather, which is the same for every
// place of a cell and language.

/** The first part of a body with weather: whose weather it is. */
export const placeText = (location: object, nearby?: object): string =>
  `{"location":${JSON.stringify(location)},${nearby ? `"place":${JSON.stringify(nearby)},` : ''}`

const currentUnitsText = JSON.stringify({ time: 'iso8601', interval: 'seconds', ...currentUnits })
const hourlyUnitsText = JSON.stringify({ time: 'iso8601', ...hourlyUnits })
const dailyUnitsText = JSON.stringify({ time: 'iso8601', ...dailyUnits })

/** The other part of /weather. @param words the language of what its codes mean, where it says so */
export const weatherPart = (weather: Weather, timezone: string, words?: Language): Buffer =>
  textOutOfPool(
    `${block('current', weather.current, currentUnitsText, words)},${block('hourly', weather.hourly, hourlyUnitsText, words)},${dailyPart(weather, timezone, words)}`,
  )

/** The other part of /forecast. @param words as of `weatherPart` */
export const forecastPart = (forecast: Forecast, timezone: string, words?: Language): Buffer =>
  textOutOfPool(dailyPart(forecast, timezone, words))

const dailyPart = ({ daily, utcOffsetSeconds }: Forecast, timezone: string, words?: Language): string =>
  `${block('daily', daily, dailyUnitsText, words)},"timezone":${JSON.stringify(timezone)},"utc_offset_seconds":${utcOffsetSeconds}}`

const block = (name: string, values: string, units: string, words?: Language): string =>
  words
    ? `"${name}":${joined(values, wordsOf(values, words))},"${name}_units":${joined(units, { weather_text: '', icon: '' })}`
    : `"${name}":${values},"${name}_units":${units}`

const joined = (object: string, more: object): string =>
  `${object.slice(0, -1)},${JSON.stringify(more).slice(1)}`

type Code = number | null

/** What the codes of a block mean. Its text is parsed, because that is once a slice. */
const wordsOf = (values: string, language: Language) => {
  const { weather_code: given, is_day: isDay } = JSON.parse(values) as {
    weather_code: Code | Code[]
    is_day?: Code | Code[]
  }
  const days = [isDay].flat()
  const of = (code: Code, i: number) => ({
    weather_text: weatherTextOf(code, language),
    icon: iconOf(code, days[i]),
  })
  if (!Array.isArray(given)) return of(given, 0)
  const each = given.map(of)
  return {
    weather_text: each.map(({ weather_text }) => weather_text),
    icon: each.map(({ icon }) => icon),
  }
}

const nameIn = (lang: Language, { name_en, name_bn }: { name_en: string; name_bn: string }): string =>
  (lang === 'en' ? name_en : name_bn) || name_en || name_bn
