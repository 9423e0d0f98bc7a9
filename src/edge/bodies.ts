// The bodies of the answers: places and weather → the objects of the contract, field by field. Pure.

import type { Forecast, Weather } from '../answer.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Location } from '../catalogue/location.ts'
import { currentUnits, dailyUnits, hourlyUnits } from '../weather/variables.ts'
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

/** The summary with the names in the language asked for. */
export const namedSummaryOf = (location: Location, catalogue: Parents, lang: Language) => {
  const summary = summaryOf(location, catalogue)
  const parent = catalogue.parentOf(location)
  return { ...summary, name: nameIn(lang, summary), ...(parent ? { parent: nameIn(lang, parent) } : {}) }
}

export const listItemOf = (location: Location, catalogue: Parents) => ({
  ...summaryOf(location, catalogue),
  population: location.population,
  area_sq_km: location.area_sq_km,
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

export const weatherOf = (location: object, weather: Weather, timezone: string) => ({
  location,
  current: weather.current,
  current_units: { time: 'iso8601', interval: 'seconds', ...currentUnits },
  hourly: weather.hourly,
  hourly_units: { time: 'iso8601', ...hourlyUnits },
  daily: weather.daily,
  daily_units: { time: 'iso8601', ...dailyUnits },
  timezone,
})

export const forecastOf = (location: object, forecast: Forecast, timezone: string) => ({
  location,
  daily: forecast.daily,
  daily_units: { time: 'iso8601', ...dailyUnits },
  timezone,
})

const nameIn = (lang: Language, { name_en, name_bn }: { name_en: string; name_bn: string }): string =>
  (lang === 'en' ? name_en : name_bn) || name_en || name_bn
