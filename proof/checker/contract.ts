// The fields of every body: each has a rule here and no other field may be there. Values of places are those of the catalogue, words
// those of the documented codes. Bodies of errors are in errors.ts, and which weather is right is in weather.ts.

import type { Answer } from '../history.ts'
import { errorOf, failuresOfWeather, problemOf } from './errors.ts'
import { day, type Facts, hour, singlePathsOf } from './facts.ts'
import { keyBody } from './key-body.ts'
import { isListed, isStatusPage, partsOf, refusalOf } from './paths.ts'
import { type Catalogue, catalogueFor } from './places.ts'
import { exactly, fields, given, type Shape, that } from './shapes.ts'
import { statusBody } from './status-body.ts'
import { iconOf, textOf } from './tables.ts'

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const number = that(Number.isFinite, 'number')
const integer = that(Number.isInteger, 'whole number')
const orNull =
  (shape: Shape): Shape =>
  value =>
    value === null ? undefined : shape(value)
const matching = (pattern: RegExp, what: string): Shape =>
  that(value => isText(value) && pattern.test(value), what)

const list =
  (shape: Shape, length: number): Shape =>
  value => {
    if (!Array.isArray(value)) return `${given(value)} is no list`
    if (value.length !== length) return `${value.length} in place of ${length}`
    return value.map(shape).find(fault => fault !== undefined)
  }
/** Times that are so far apart. */
const timesOf =
  (length: number, pattern: RegExp, stepMs: number): Shape =>
  value => {
    const fault = list(matching(pattern, 'time'), length)(value)
    if (fault) return fault
    const instants = (value as string[]).map(time => Date.parse(`${time}${time.length > 10 ? ':00' : ''}Z`))
    const at = instants.findIndex((instant, i) => i > 0 && instant - (instants[i - 1] ?? 0) !== stepMs)
    return at < 0 ? undefined : `${(value as string[])[at]} follows ${(value as string[])[at - 1]}`
  }

type Section = Readonly<Record<string, Shape>>
const sameFor = (names: readonly string[], shape: Shape): Record<string, Shape> =>
  Object.fromEntries(names.map(name => [name, shape]))

const wordsOf = (text: string): string[] => text.trim().split(/\s+/)
const currentIntegers = wordsOf('relative_humidity_2m is_day weather_code cloud_cover wind_direction_10m')
const currentNumbers = wordsOf(`temperature_2m apparent_temperature precipitation rain showers snowfall
  pressure_msl surface_pressure wind_speed_10m wind_gusts_10m`)
const current: Section = {
  time: matching(/^\d{4}-\d\d-\d\dT\d\d:(?:00|15|30|45)$/, 'quarter-hour'),
  interval: exactly(900),
  ...sameFor(currentIntegers, orNull(integer)),
  ...sameFor(currentNumbers, orNull(number)),
}

const hourlyIntegers = wordsOf(`relative_humidity_2m precipitation_probability weather_code cloud_cover
  wind_direction_10m is_day`)
const hourlyNumbers = wordsOf(
  'temperature_2m apparent_temperature precipitation wind_speed_10m wind_gusts_10m',
)
const hours = 48
const hourly: Section = {
  time: timesOf(hours, /^\d{4}-\d\d-\d\dT\d\d:00$/, hour),
  ...sameFor(hourlyIntegers, list(orNull(integer), hours)),
  ...sameFor(hourlyNumbers, list(orNull(number), hours)),
}

const dailyOf = (days: number): Section => ({
  time: timesOf(days, /^\d{4}-\d\d-\d\d$/, day),
  ...sameFor(['weather_code', 'precipitation_probability_max'], list(orNull(integer), days)),
  ...sameFor(['temperature_2m_max', 'temperature_2m_min'], list(orNull(number), days)),
})

const units: Readonly<Record<string, string>> = {
  ...{ time: 'iso8601', interval: 'seconds', weather_code: 'wmo code', is_day: '' },
  ...{ temperature_2m: '°C', apparent_temperature: '°C', temperature_2m_max: '°C', temperature_2m_min: '°C' },
  ...{ relative_humidity_2m: '%', cloud_cover: '%', precipitation_probability: '%' },
  ...{ precipitation_probability_max: '%', precipitation: 'mm', rain: 'mm', showers: 'mm', snowfall: 'cm' },
  ...{ pressure_msl: 'hPa', surface_pressure: 'hPa', wind_speed_10m: 'km/h', wind_gusts_10m: 'km/h' },
  wind_direction_10m: '°',
}

/** A section of weather with the units of its fields; with words, where they are asked for, for each of its codes. */
const sectionOf = (name: string, section: Section, words: string | undefined): Section => {
  const unitNames = Object.keys(section)
  const unitsAre = fields({
    ...Object.fromEntries(unitNames.map(each => [each, exactly(units[each] ?? '')])),
    ...(words !== undefined && { weather_text: exactly(''), icon: exactly('') }),
  })
  return {
    [name]: words === undefined ? fields(section) : withWords(section, words),
    [`${name}_units`]: unitsAre,
  }
}

const withWords =
  (section: Section, language: string): Shape =>
  value => {
    const { weather_code: code, is_day: isDay } = value as Record<string, unknown>
    const days = [isDay].flat()
    const icons = [code].flat().map((each, i) => iconOf(each, days[i]))
    const texts = [code].flat().map(each => textOf(each, language))
    const same = (all: readonly unknown[]): Shape => exactly(Array.isArray(code) ? all : all[0])
    return fields({ ...section, weather_text: same(texts), icon: same(icons) })(value)
  }

const zone = { timezone: exactly('Asia/Dhaka'), utc_offset_seconds: exactly(21_600) }

/** What is wrong with the body of an answer, in one sentence; undefined for nothing. */
export const bodyFault = (facts: Facts, answer: Answer): string | undefined => {
  const { status, path } = answer
  if (answer.method === 'HEAD' || status === 304)
    return answer.body === '' ? statusFault(facts, answer) : 'it has a body'
  let body: unknown
  try {
    body = JSON.parse(answer.body)
  } catch {
    return 'its body is no JSON'
  }
  if (isStatusPage(answer)) return status === 200 ? statusBody(facts, answer)(body) : `${status} for a page`
  if (status !== 200) return errorOf(facts, answer)(body)
  const catalogue = catalogueFor(facts, answer)
  if (refusalOf(catalogue, answer)) return 'a wrong request has 200'
  if (path === '/key') return keyBody(facts, answer)(body)
  if (!isListed(answer)) return foundAt(catalogue, path)(body)
  const paths = singlePathsOf(answer)
  if (!Array.isArray(body) || body.length !== paths.length) return `it has not ${paths.length} places`
  return body.map((one, i) => itemAt(catalogue, paths[i] ?? '')(one)).find(fault => fault !== undefined)
}

/** Without a body, an answer has the status of its request, where nothing else decides that. */
const statusFault = (facts: Facts, answer: Answer): string | undefined => {
  const refusal = isStatusPage(answer) ? undefined : refusalOf(catalogueFor(facts, answer), answer)
  const [status, right] = [answer.status === 304 ? 200 : answer.status, refusal?.status ?? 200]
  return ofRequest.has(status) && status !== right ? `${right} is right` : undefined
}
const ofRequest = new Set([200, 400, 404, 405])

/** In a list each place has the body of its own endpoint, or its error. */
const itemAt =
  (catalogue: Catalogue, path: string): Shape =>
  value => {
    const { code } = value as { code?: string }
    if (code === undefined) return foundAt(catalogue, path)(value)
    const refusal = refusalOf(catalogue, { path })
    return problemOf(path, refusal ? [refusal.code] : failuresOfWeather, {
      ...(refusal?.parameter && { parameter: refusal.parameter }),
    })(value)
  }

const foundAt = (catalogue: Catalogue, path: string): Shape => {
  const { endpoint, type, id, more, query, include, language } = partsOf(path)
  if (endpoint === 'locations' && type === '') return exactly(catalogue.listOf(query))
  const words = include.includes('text') ? language : undefined
  const place = catalogue.find(type, id)
  if (endpoint === 'locations') return exactly({ location: place && catalogue.detailOf(place) })
  if (endpoint === 'forecast') {
    const daily = sectionOf('daily', dailyOf(Number(query.get('days') ?? 7)), words)
    return fields({ location: exactly(place && catalogue.summaryOf(place)), ...daily, ...zone })
  }
  const [latitude, longitude] = [Number(id), Number(more)]
  return fields({
    location: exactly(place ? catalogue.namedOf(place, language) : pointOf(latitude, longitude)),
    ...(include.includes('place') && { place: exactly(catalogue.nearOf(latitude, longitude)) }),
    ...sectionOf('current', current, words),
    ...sectionOf('hourly', hourly, words),
    ...sectionOf('daily', dailyOf(7), words),
    ...zone,
  })
}

const pointOf = (latitude: number, longitude: number) => {
  const name = `${latitude.toFixed(3)}, ${longitude.toFixed(3)}`
  return { type: 'coords', latitude, longitude, name_en: name, name_bn: null, name }
}
