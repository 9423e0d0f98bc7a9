// The bodies of the responses as schemas, each field with its unit and meaning in both languages. They describe and do not
// check what the gateway sends: src/api/response-bodies.ts writes it, and the tests validate every response against them. The tests allow
// no other fields; the document does not say so, for consumers ignore fields that they do not know. Longer than 300 lines,
// because it is a list of fields.

import * as z from 'zod'
import { locationTypes } from '../../catalogue/location-schema.ts'
import type { EndpointName } from '../../common/endpoints.ts'
import { ranges } from '../../weather/ranges.ts'
import { currentUnits, dailyUnits, forecastDays, hourlyUnits } from '../../weather/weather-variables.ts'
import { described, type Text } from './texts.ts'

/** The schemas that have a name in the document. */
export const named = z.registry<{ id: string }>()

const field = <Schema extends z.ZodType>(schema: Schema, en: string, bn: string, unit?: string): Schema =>
  schema.meta({ ...described(en, bn), ...(unit ? { 'x-unit': unit } : {}) })

const component = (id: string, en: string, bn: string, schema: z.ZodType): z.ZodType => {
  const made = schema.meta(described(en, bn))
  named.add(made, { id })
  return made
}

const localTime = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d$/)
const localDate = z.string().regex(/^\d{4}-\d\d-\d\d$/)

type Variable = keyof typeof currentUnits | keyof typeof hourlyUnits | keyof typeof dailyUnits

const meanings: Readonly<Record<Variable, Text>> = {
  temperature_2m: ['Air temperature 2 m above the ground.', 'ভূমি থেকে ২ মিটার উপরে বায়ুর তাপমাত্রা।'],
  relative_humidity_2m: ['Relative humidity 2 m above the ground.', 'ভূমি থেকে ২ মিটার উপরে আপেক্ষিক আর্দ্রতা।'],
  apparent_temperature: [
    'What the temperature feels like, with wind, humidity and sun.',
    'বাতাস, আর্দ্রতা ও রোদ মিলিয়ে অনুভূত তাপমাত্রা।',
  ],
  is_day: ['1 by day, 0 by night.', 'দিনে ১, রাতে ০।'],
  precipitation: [
    'Rain, showers and snow: of the quarter-hour in `current`, of the hour before `time` in `hourly`.',
    'বৃষ্টি, বর্ষণ ও তুষার: `current`-এ পোয়া ঘণ্টার, `hourly`-তে `time`-এর আগের ঘণ্টার।',
  ],
  rain: ['Rain of large-scale weather, in the quarter-hour.', 'পোয়া ঘণ্টায় বিস্তৃত আবহাওয়ার বৃষ্টি।'],
  showers: ['Convective rain, in the quarter-hour.', 'পোয়া ঘণ্টায় পরিচলন বৃষ্টি।'],
  snowfall: ['Fresh snow, in the quarter-hour.', 'পোয়া ঘণ্টায় নতুন তুষার।'],
  weather_code: [
    'Weather as a WMO code: 0 clear, 1–3 clouds, 45–48 fog, 51–67 drizzle and rain, 71–77 snow, 80–86 showers, 95–99 thunderstorm. Of a day, the gravest.',
    'WMO কোডে আবহাওয়া: ০ পরিষ্কার, ১–৩ মেঘ, ৪৫–৪৮ কুয়াশা, ৫১–৬৭ গুঁড়ি ও বৃষ্টি, ৭১–৭৭ তুষার, ৮০–৮৬ বর্ষণ, ৯৫–৯৯ বজ্রঝড়। দিনের ক্ষেত্রে সবচেয়ে গুরুতরটি।',
  ],
  cloud_cover: ['Share of the sky under clouds.', 'মেঘে ঢাকা আকাশের অংশ।'],
  pressure_msl: ['Air pressure reduced to sea level.', 'সমুদ্রপৃষ্ঠে রূপান্তরিত বায়ুচাপ।'],
  surface_pressure: ['Air pressure at the ground.', 'ভূমিতে বায়ুচাপ।'],
  wind_speed_10m: ['Wind speed 10 m above the ground.', 'ভূমি থেকে ১০ মিটার উপরে বাতাসের গতি।'],
  wind_direction_10m: [
    'Where the wind comes from: 0 north, 90 east.',
    'বাতাস কোন দিক থেকে আসে: ০ উত্তর, ৯০ পূর্ব।',
  ],
  wind_gusts_10m: ['Strongest gust 10 m above the ground.', 'ভূমি থেকে ১০ মিটার উপরে সবচেয়ে জোরালো দমকা।'],
  precipitation_probability: [
    'Probability of at least 0.1 mm in the hour before `time`.',
    '`time`-এর আগের ঘণ্টায় অন্তত ০.১ মিমি বর্ষণের সম্ভাবনা।',
  ],
  temperature_2m_max: ['Highest temperature of the day.', 'দিনের সর্বোচ্চ তাপমাত্রা।'],
  temperature_2m_min: ['Lowest temperature of the day.', 'দিনের সর্বনিম্ন তাপমাত্রা।'],
  precipitation_probability_max: [
    'Highest probability of precipitation in the day.',
    'দিনের সর্বোচ্চ বর্ষণ-সম্ভাবনা।',
  ],
}

/** A value of a variable; null where the provider has none. */
const valueSchema = (name: Variable) => {
  const { least, most, whole } = ranges[name]
  return (whole ? z.int() : z.number()).min(least).max(most).nullable()
}

const fieldsOf = (units: object, shape: (value: z.ZodType) => z.ZodType): Record<string, z.ZodType> =>
  Object.fromEntries(
    Object.entries(units).map(([name, unit]) => [
      name,
      field(shape(valueSchema(name as Variable)), ...meanings[name as Variable], String(unit)),
    ]),
  )

const unitsOf = (units: object): Record<string, z.ZodType> =>
  Object.fromEntries(Object.entries(units).map(([name, unit]) => [name, z.literal(String(unit))]))

const iso8601 = z.literal('iso8601')
const longestHourly = 168

const current = component(
  'Current',
  'Conditions of the running quarter-hour. A value that the provider does not have is null.',
  'চলতি পোয়া ঘণ্টার অবস্থা। সরবরাহকারীর কাছে না থাকা মান null।',
  z.strictObject({
    time: field(
      localTime,
      'When the quarter-hour begins, local to `timezone`.',
      'পোয়া ঘণ্টা কখন শুরু, `timezone`-এর স্থানীয় সময়ে।',
      'iso8601',
    ),
    interval: field(z.int().min(1), 'How long it is.', 'কত দীর্ঘ।', 'seconds'),
    ...fieldsOf(currentUnits, value => value),
  }),
)

const currentUnitsSchema = component(
  'CurrentUnits',
  'The unit of each field of `current`.',
  '`current`-এর প্রতিটি ঘরের একক।',
  z.strictObject({ time: iso8601, interval: z.literal('seconds'), ...unitsOf(currentUnits) }),
)

const hourly = component(
  'Hourly',
  'Parallel arrays, one entry an hour from the running local hour on; 48 unless the operator sets another number.',
  'সমান্তরাল তালিকা, চলতি স্থানীয় ঘণ্টা থেকে প্রতি ঘণ্টায় একটি; পরিচালক না বদলালে ৪৮টি।',
  z.strictObject({
    time: field(
      z.array(localTime).min(1).max(longestHourly),
      'When the hours begin, local to `timezone`.',
      'ঘণ্টাগুলো কখন শুরু, `timezone`-এর স্থানীয় সময়ে।',
      'iso8601',
    ),
    ...fieldsOf(hourlyUnits, value => z.array(value).min(1).max(longestHourly)),
  }),
)

const hourlyUnitsSchema = component(
  'HourlyUnits',
  'The unit of each field of `hourly`.',
  '`hourly`-এর প্রতিটি ঘরের একক।',
  z.strictObject({ time: iso8601, ...unitsOf(hourlyUnits) }),
)

const daily = component(
  'Daily',
  'Parallel arrays, one entry a day from the current local day on.',
  'সমান্তরাল তালিকা, চলতি স্থানীয় দিন থেকে প্রতি দিনে একটি।',
  z.strictObject({
    time: field(
      z.array(localDate).min(1).max(forecastDays),
      'The days, local to `timezone`.',
      'দিনগুলো, `timezone`-এর স্থানীয় তারিখে।',
      'iso8601',
    ),
    ...fieldsOf(dailyUnits, value => z.array(value).min(1).max(forecastDays)),
  }),
)

const dailyUnitsSchema = component(
  'DailyUnits',
  'The unit of each field of `daily`.',
  '`daily`-এর প্রতিটি ঘরের একক।',
  z.strictObject({ time: iso8601, ...unitsOf(dailyUnits) }),
)

const zone = {
  timezone: field(z.string(), 'The IANA zone of all local times.', 'সব স্থানীয় সময়ের IANA অঞ্চল।'),
  utc_offset_seconds: field(
    z.int().min(-86_400).max(86_400),
    'How far local time is ahead of UTC at the instant of the response: times have no offset.',
    'উত্তরের মুহূর্তে স্থানীয় সময় UTC থেকে কত এগিয়ে: সময়ের ঘরগুলোতে তা লেখা থাকে না।',
    'seconds',
  ),
}

const longitude = (...meaning: Text) => field(z.number().min(-180).max(180), ...meaning, '°')
const latitude = (...meaning: Text) => field(z.number().min(-90).max(90), ...meaning, '°')

const summary = {
  type: field(z.enum(locationTypes), 'Level of administration.', 'প্রশাসনিক স্তর।'),
  id: field(
    z.string().regex(/^\d+$/),
    "The place's BBS code in decimal digits.",
    'স্থানের BBS কোড, দশমিক অঙ্কে।',
  ),
  name_en: field(z.string(), 'English name.', 'ইংরেজি নাম।'),
  name_bn: field(z.string(), 'Bengali name.', 'বাংলা নাম।'),
  slug_en: field(z.string(), 'English name for URLs.', 'URL-এর উপযোগী ইংরেজি নাম।'),
  latitude: latitude('Latitude of the place (WGS 84).', 'স্থানের অক্ষাংশ (WGS 84)।'),
  longitude: longitude('Longitude of the place (WGS 84).', 'স্থানের দ্রাঘিমাংশ (WGS 84)।'),
  parent_en: field(
    z.string().nullable(),
    'English name of the place above; null for divisions.',
    'উপরের স্তরের ইংরেজি নাম; বিভাগের জন্য null।',
  ),
  parent_bn: field(
    z.string().nullable(),
    'Bengali name of the place above; null for divisions.',
    'উপরের স্তরের বাংলা নাম; বিভাগের জন্য null।',
  ),
}

const location = component('Location', 'A place.', 'একটি স্থান।', z.strictObject(summary))

const namedLocation = component(
  'NamedLocation',
  'A place, with names in the requested language.',
  'একটি স্থান, চাওয়া ভাষার নামসহ।',
  z.strictObject({
    ...summary,
    name: field(
      z.string(),
      'Name in the language of `lang`; in the other where it is missing.',
      '`lang`-এর ভাষায় নাম; না থাকলে অন্যটিতে।',
    ),
    parent: field(
      z.string(),
      'Name of the place above in that language; left out for divisions.',
      'সেই ভাষায় উপরের স্তরের নাম; বিভাগে থাকে না।',
    ).optional(),
  }),
)

const pointLocation = component(
  'PointLocation',
  'A raw point.',
  'একটি বিন্দু।',
  z.strictObject({
    type: field(z.literal('coords'), 'Always `coords`.', 'সর্বদা `coords`।'),
    latitude: latitude('The requested latitude.', 'চাওয়া অক্ষাংশ।'),
    longitude: longitude('The requested longitude.', 'চাওয়া দ্রাঘিমাংশ।'),
    name_en: field(z.string(), 'The coordinates with three decimals each.', 'স্থানাঙ্ক, প্রতিটি তিন দশমিকে।'),
    name_bn: field(z.null(), 'Always null.', 'সর্বদা null।'),
    name: field(z.string(), 'The same as `name_en`.', '`name_en`-এর সমান।'),
  }),
)

const placeFacts = {
  population: field(z.int(), 'Inhabitants.', 'জনসংখ্যা।', 'people'),
  area_sq_km: field(z.number(), 'Area.', 'আয়তন।', 'km²'),
}

const listItem = component(
  'LocationListItem',
  'A place in a list.',
  'তালিকার একটি স্থান।',
  z.strictObject({
    ...summary,
    ...placeFacts,
    matched_alias: field(
      z.string(),
      'The other name in use by which `q` found the place; left out where its name did.',
      'প্রচলিত অন্য যে নামে `q` স্থানটি পেয়েছে; নিজের নামে পেলে থাকে না।',
    ).optional(),
  }),
)

const locationDetail = component(
  'LocationDetail',
  'A place with all that is known of it.',
  'একটি স্থান, জানা সব তথ্যসহ।',
  z.strictObject({
    ...summary,
    ...placeFacts,
    website: field(
      z.string().nullable(),
      'Official website; null when there is none.',
      'সরকারি ওয়েবসাইট; না থাকলে null।',
    ),
    bbs_code: field(z.int(), 'Code of the Bangladesh Bureau of Statistics.', 'বাংলাদেশ পরিসংখ্যান ব্যুরোর কোড।'),
  }),
)

const weatherBlocks = {
  current,
  current_units: currentUnitsSchema,
  hourly,
  hourly_units: hourlyUnitsSchema,
  daily,
  daily_units: dailyUnitsSchema,
  ...zone,
}

/** The bodies of 200, by endpoint. */
export const bodies = {
  weather: component(
    'Weather',
    'Current conditions, hours and days of a place.',
    'একটি স্থানের বর্তমান অবস্থা, ঘণ্টা ও দিন।',
    z.strictObject({ location: namedLocation, ...weatherBlocks }),
  ),
  coords: component(
    'PointWeather',
    'Current conditions, hours and days of a point.',
    'একটি বিন্দুর বর্তমান অবস্থা, ঘণ্টা ও দিন।',
    z.strictObject({ location: pointLocation, ...weatherBlocks }),
  ),
  forecast: component(
    'Forecast',
    'The days of a place.',
    'একটি স্থানের দিনগুলো।',
    z.strictObject({ location, daily, daily_units: dailyUnitsSchema, ...zone }),
  ),
  locations: component(
    'LocationList',
    'A page of places, the most populous first; ties are ordered by `id`.',
    'স্থানের একটি পাতা, বেশি জনসংখ্যা আগে; সমান হলে `id` অনুসারে।',
    z.strictObject({
      results: z.array(listItem).max(100),
      total: field(
        z.int().min(0),
        'All matches, before `limit` and `offset`.',
        '`limit` ও `offset`-এর আগে মোট মিল।',
      ),
      type: field(z.enum(locationTypes), 'The requested type.', 'চাওয়া ধরন।'),
      approximate: field(
        z.literal(true),
        'The places were found by a looser comparison of spellings; left out otherwise.',
        'বানানের শিথিল তুলনায় স্থানগুলো পাওয়া গেছে; নইলে থাকে না।',
      ).optional(),
    }),
  ),
  location: component(
    'LocationResponse',
    'A place.',
    'একটি স্থান।',
    z.strictObject({ location: locationDetail }),
  ),
} as const satisfies Record<EndpointName, z.ZodType>

const error = field(
  z.string(),
  'One sentence: what is wrong, what was received, what is allowed. It may become clearer; programs read `code`.',
  'একটি বাক্য: কী ভুল, কী পাওয়া গেছে, কী চলে। বাক্য আরও স্পষ্ট হতে পারে; প্রোগ্রাম `code` পড়ে।',
)
const code = field(
  z.string().regex(/^[a-z][a-z0-9_]+$/),
  'Stable: never renamed. New ones may come.',
  'স্থায়ী: কখনো বদলায় না। নতুন যোগ হতে পারে।',
)

component('Error', 'What went wrong.', 'কী ভুল হয়েছে।', z.strictObject({ error, code }))
component(
  'QuotaExhausted',
  "The day's quota is used up.",
  'দিনের কোটা শেষ।',
  z.strictObject({
    error,
    code: z.literal('quota_exhausted').meta(described('Stable.', 'স্থায়ী।')),
    limit: field(z.int(), 'The daily quota.', 'দৈনিক কোটা।', 'requests'),
    reset_at: field(
      z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      'The next local midnight, in UTC.',
      'পরবর্তী স্থানীয় মধ্যরাত, UTC-তে।',
      'iso8601',
    ),
  }),
)
