// The bodies of responses: places and weather → the objects of the contract, field by field. Pure.

import type { Catalogue, ListPage } from '../catalogue/catalogue.ts'
import type { Location, LocationType } from '../catalogue/location-schema.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../weather/weather-variables.ts'
import type { Forecast, Weather } from './answer.ts'
import type { Language } from './parameters.ts'
import { unpooledText } from './unpooled.ts'

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

// A body is written in two parts: where, which is the same at all times, and what weather, which is the same for every
// place of a cell and language.

/** The first part of a body with weather: whose weather it is. */
export const placeText = (location: object): string => `{"location":${JSON.stringify(location)},`

const currentUnitsText = JSON.stringify({ time: 'iso8601', interval: 'seconds', ...currentUnits })
const hourlyUnitsText = JSON.stringify({ time: 'iso8601', ...hourlyUnits })
const dailyUnitsText = JSON.stringify({ time: 'iso8601', ...dailyUnits })

/** The other part of /weather. */
export const weatherPart = (weather: Weather, timezone: string): Buffer =>
  unpooledText(
    `"current":${weather.current},"current_units":${currentUnitsText},"hourly":${weather.hourly},"hourly_units":${hourlyUnitsText},${dailyPart(weather, timezone)}`,
  )

/** The other part of /forecast. */
export const forecastPart = (forecast: Forecast, timezone: string): Buffer =>
  unpooledText(dailyPart(forecast, timezone))

const dailyPart = ({ daily, utcOffsetSeconds }: Forecast, timezone: string): string =>
  `"daily":${daily},"daily_units":${dailyUnitsText},"timezone":${JSON.stringify(timezone)},"utc_offset_seconds":${utcOffsetSeconds}}`

const nameIn = (lang: Language, { name_en, name_bn }: { name_en: string; name_bn: string }): string =>
  (lang === 'en' ? name_en : name_bn) || name_en || name_bn
