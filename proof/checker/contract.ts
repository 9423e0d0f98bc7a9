// The body of a 200 as the contract has it: each field and no other, the type of each value, the lengths of lists, and the order of
// times and places. The checker's own reading of the contract; which weather is right is in weather.ts.

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }
type Shape = (value: unknown) => string | undefined

const given = (value: unknown): string => JSON.stringify(value)?.slice(0, 60) ?? String(value)
const that =
  (is: (value: unknown) => boolean, what: string): Shape =>
  value =>
    is(value) ? undefined : `${given(value)} is no ${what}`

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const text = that(isText, 'text')
const number = that(Number.isFinite, 'number')
const integer = that(Number.isInteger, 'whole number')
const orNull =
  (shape: Shape): Shape =>
  value =>
    value === null ? undefined : shape(value)
const exactly = (wanted: Json): Shape => that(value => value === wanted, String(wanted))
const matching = (pattern: RegExp, what: string): Shape =>
  that(value => isText(value) && pattern.test(value), what)

/** An object of these fields and no others. */
const fields =
  (shapes: Readonly<Record<string, Shape>>): Shape =>
  value => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return `${given(value)} is no object`
    const object = value as Record<string, unknown>
    const more = Object.keys(object).find(name => !(name in shapes))
    if (more !== undefined) return `it has ${more} too`
    for (const [name, shape] of Object.entries(shapes)) {
      if (!(name in object)) return `it lacks ${name}`
      const fault = shape(object[name])
      if (fault) return `${name}: ${fault}`
    }
    return undefined
  }
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

const hourMs = 3_600_000
const sameFor = (names: readonly string[], shape: Shape): Record<string, Shape> =>
  Object.fromEntries(names.map(name => [name, shape]))

const wordsOf = (text: string): string[] => text.trim().split(/\s+/)
const currentIntegers = wordsOf('relative_humidity_2m is_day weather_code cloud_cover wind_direction_10m')
const currentNumbers = wordsOf(`temperature_2m apparent_temperature precipitation rain showers snowfall
  pressure_msl surface_pressure wind_speed_10m wind_gusts_10m`)
const current = fields({
  time: matching(/^\d{4}-\d\d-\d\dT\d\d:(?:00|15|30|45)$/, 'quarter-hour'),
  interval: exactly(900),
  ...sameFor(currentIntegers, orNull(integer)),
  ...sameFor(currentNumbers, orNull(number)),
})

const hourlyIntegers = wordsOf(`relative_humidity_2m precipitation_probability weather_code cloud_cover
  wind_direction_10m is_day`)
const hourlyNumbers = wordsOf(
  'temperature_2m apparent_temperature precipitation wind_speed_10m wind_gusts_10m',
)
const hours = 48
const hourly = fields({
  time: timesOf(hours, /^\d{4}-\d\d-\d\dT\d\d:00$/, hourMs),
  ...sameFor(hourlyIntegers, list(orNull(integer), hours)),
  ...sameFor(hourlyNumbers, list(orNull(number), hours)),
})

const dailyOf = (days: number): Shape =>
  fields({
    time: timesOf(days, /^\d{4}-\d\d-\d\d$/, 24 * hourMs),
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
const unitsOf = (names: readonly string[]): Shape =>
  fields(Object.fromEntries(names.map(name => [name, exactly(units[name] ?? '')])))
const currentUnits = unitsOf(['time', 'interval', ...currentIntegers, ...currentNumbers])
const hourlyUnits = unitsOf(['time', ...hourlyIntegers, ...hourlyNumbers])
const dailyUnits = unitsOf([
  ...['time', 'weather_code', 'temperature_2m_max', 'temperature_2m_min', 'precipitation_probability_max'],
])

const zone = { timezone: exactly('Asia/Dhaka'), utc_offset_seconds: exactly(21_600) }

/** A place by its type and id; a division has no parent. */
const place = (type: string, id: string | undefined, more: Readonly<Record<string, Shape>> = {}): Shape => {
  const parent = type === 'division' ? exactly(null) : text
  return fields({
    type: exactly(type),
    id: id === undefined ? matching(/^\d+$/, 'code') : exactly(id),
    ...sameFor(['name_en', 'name_bn', 'slug_en'], text),
    latitude: that(value => Number(value) >= 20 && Number(value) <= 27, 'latitude of Bangladesh'),
    longitude: that(value => Number(value) >= 87.5 && Number(value) <= 93, 'longitude of Bangladesh'),
    ...sameFor(['parent_en', 'parent_bn'], parent),
    ...more,
  })
}
const inList = { population: integer, area_sq_km: number }

const bengali = /[\u0980-\u09ff]/
/** The name that `lang` adds, in its script. */
const nameIn = (language: string): Shape =>
  that(value => isText(value) && bengali.test(value) === (language === 'bn'), `name in ${language}`)

const listOf =
  (type: string, limit: number, offset: number): Shape =>
  value => {
    const { results, total } = value as { results?: { population: number; id: string }[]; total?: number }
    const most = Math.max(0, Math.min(limit, Number(total) - offset))
    const fault = fields({
      results: list(place(type, undefined, inList), most),
      total: integer,
      type: exactly(type),
    })(value)
    if (fault) return fault
    const at = (results ?? []).findIndex((one, i, all) => {
      const before = all[i - 1]
      return before !== undefined && (before.population < one.population || before.id === one.id)
    })
    return at < 0 ? undefined : `${results?.[at]?.id} stands behind a place with fewer people`
  }

/** The parts of a path: those that it does not have are empty. */
export const partsOf = (path: string) => {
  const [, endpoint = '', type = '', id = '', more = ''] =
    /^\/(\w+)(?:\/(\w+)\/([^/?]+)(?:\/([^/?]+))?)?/.exec(path) ?? []
  return { endpoint, type, id, more, query: new URLSearchParams(path.split('?', 2)[1]) }
}

/** What is wrong with the body of a 200, in one sentence; undefined for nothing. */
export const shapeFault = (body: unknown, path: string): string | undefined => {
  const { endpoint, type, id, more, query } = partsOf(path)
  const language = query.get('lang') ?? 'bn'
  if (endpoint === 'locations' && type === '')
    return listOf(
      query.get('type') ?? '',
      Number(query.get('limit') ?? 50),
      Number(query.get('offset') ?? 0),
    )(body)
  if (endpoint === 'locations')
    return fields({
      location: place(type, id, { ...inList, website: orNull(text), bbs_code: exactly(Number(id)) }),
    })(body)
  if (endpoint === 'forecast') {
    const days = Number(query.get('days') ?? 7)
    return fields({ location: place(type, id), daily: dailyOf(days), daily_units: dailyUnits, ...zone })(body)
  }
  const names = { name: nameIn(language), ...(type !== 'division' && { parent: nameIn(language) }) }
  return fields({
    location: type === 'coords' ? point(Number(id), Number(more)) : place(type, id, names),
    ...{ current, current_units: currentUnits, hourly, hourly_units: hourlyUnits },
    ...{ daily: dailyOf(7), daily_units: dailyUnits },
    ...zone,
  })(body)
}

const point = (latitude: number, longitude: number): Shape => {
  const name = `${latitude.toFixed(3)}, ${longitude.toFixed(3)}`
  return fields({
    ...{ type: exactly('coords'), latitude: exactly(latitude), longitude: exactly(longitude) },
    ...{ name_en: exactly(name), name_bn: exactly(null), name: exactly(name) },
  })
}
