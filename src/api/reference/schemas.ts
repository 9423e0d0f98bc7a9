// The bodies of the responses as schemas, each field with its unit and meaning in both languages. They describe and do not
// check what the gateway sends: src/api/response-bodies.ts writes it, and the tests validate every response against them. The tests allow
// no other fields; the document does not say so, for consumers ignore fields that they do not know. Longer than 300 lines,
// because it is a list of fields.

import * as z from 'zod'
import { locationTypes } from '../../catalogue/location-schema.ts'
import type { EndpointName } from '../../common/endpoints.ts'
import { ranges } from '../../weather/ranges.ts'
import { currentUnits, dailyUnits, forecastDays, hourlyUnits } from '../../weather/weather-variables.ts'
import { described, type Text, text } from './texts.ts'

/** The schemas that have a name in the document. */
export const named = z.registry<{ id: string }>()

const field = <Schema extends z.ZodType>(schema: Schema, meaning: Text, unit?: string): Schema =>
  schema.meta({ ...described(meaning), ...(unit ? { 'x-unit': unit } : {}) })

const component = (id: string, meaning: Text, schema: z.ZodType): z.ZodType => {
  const made = schema.meta(described(meaning))
  named.add(made, { id })
  return made
}

const localTime = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d$/)
const localDate = z.string().regex(/^\d{4}-\d\d-\d\d$/)

type Variable = keyof typeof currentUnits | keyof typeof hourlyUnits | keyof typeof dailyUnits

const meanings: Readonly<Record<Variable, Text>> = {
  temperature_2m: text('Air temperature 2 m above the ground.', 'ভূমি থেকে ২ মিটার উপরে বায়ুর তাপমাত্রা।'),
  relative_humidity_2m: text(
    'Relative humidity 2 m above the ground.',
    'ভূমি থেকে ২ মিটার উপরে আপেক্ষিক আর্দ্রতা।',
  ),
  apparent_temperature: text(
    'What the temperature feels like, with wind, humidity and sun.',
    'বাতাস, আর্দ্রতা ও রোদ মিলিয়ে অনুভূত তাপমাত্রা।',
  ),
  is_day: text('1 by day, 0 by night.', 'দিনে ১, রাতে ০।'),
  precipitation: text(
    'Rain, showers and snow: of the quarter-hour in `current`, of the hour before `time` in `hourly`.',
    'বৃষ্টি, বর্ষণ ও তুষার: `current`-এ পোয়া ঘণ্টার, `hourly`-তে `time`-এর আগের ঘণ্টার।',
  ),
  rain: text('Rain of large-scale weather, in the quarter-hour.', 'পোয়া ঘণ্টায় বিস্তৃত আবহাওয়ার বৃষ্টি।'),
  showers: text('Convective rain, in the quarter-hour.', 'পোয়া ঘণ্টায় পরিচলন বৃষ্টি।'),
  snowfall: text('Fresh snow, in the quarter-hour.', 'পোয়া ঘণ্টায় নতুন তুষার।'),
  weather_code: text(
    'Weather as a WMO code: 0 clear, 1–3 clouds, 45–48 fog, 51–67 drizzle and rain, 71–77 snow, 80–86 showers, 95–99 thunderstorm. Of a day, the gravest.',
    'WMO কোডে আবহাওয়া: ০ পরিষ্কার, ১–৩ মেঘ, ৪৫–৪৮ কুয়াশা, ৫১–৬৭ গুঁড়ি ও বৃষ্টি, ৭১–৭৭ তুষার, ৮০–৮৬ বর্ষণ, ৯৫–৯৯ বজ্রঝড়। দিনের ক্ষেত্রে সবচেয়ে গুরুতরটি।',
  ),
  cloud_cover: text('Share of the sky under clouds.', 'মেঘে ঢাকা আকাশের অংশ।'),
  pressure_msl: text('Air pressure reduced to sea level.', 'সমুদ্রপৃষ্ঠে রূপান্তরিত বায়ুচাপ।'),
  surface_pressure: text('Air pressure at the ground.', 'ভূমিতে বায়ুচাপ।'),
  wind_speed_10m: text('Wind speed 10 m above the ground.', 'ভূমি থেকে ১০ মিটার উপরে বাতাসের গতি।'),
  wind_direction_10m: text(
    'Where the wind comes from: 0 north, 90 east.',
    'বাতাস কোন দিক থেকে আসে: ০ উত্তর, ৯০ পূর্ব।',
  ),
  wind_gusts_10m: text('Strongest gust 10 m above the ground.', 'ভূমি থেকে ১০ মিটার উপরে সবচেয়ে জোরালো দমকা।'),
  precipitation_probability: text(
    'Probability of at least 0.1 mm in the hour before `time`.',
    '`time`-এর আগের ঘণ্টায় অন্তত ০.১ মিমি বর্ষণের সম্ভাবনা।',
  ),
  temperature_2m_max: text('Highest temperature of the day.', 'দিনের সর্বোচ্চ তাপমাত্রা।'),
  temperature_2m_min: text('Lowest temperature of the day.', 'দিনের সর্বনিম্ন তাপমাত্রা।'),
  precipitation_probability_max: text(
    'Highest probability of precipitation in the day.',
    'দিনের সর্বোচ্চ বর্ষণ-সম্ভাবনা।',
  ),
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
      field(shape(valueSchema(name as Variable)), meanings[name as Variable], String(unit)),
    ]),
  )

const unitsOf = (units: object): Record<string, z.ZodType> =>
  Object.fromEntries(Object.entries(units).map(([name, unit]) => [name, z.literal(String(unit))]))

const iso8601 = z.literal('iso8601')
const longestHourly = 168

const current = component(
  'Current',
  text(
    'Conditions of the running quarter-hour. A value that the provider does not have is null.',
    'চলতি পোয়া ঘণ্টার অবস্থা। সরবরাহকারীর কাছে না থাকা মান null।',
  ),
  z.strictObject({
    time: field(
      localTime,
      text('When the quarter-hour begins, local to `timezone`.', 'পোয়া ঘণ্টা কখন শুরু, `timezone`-এর স্থানীয় সময়ে।'),
      'iso8601',
    ),
    interval: field(z.int().min(1), text('How long it is.', 'কত দীর্ঘ।'), 'seconds'),
    ...fieldsOf(currentUnits, value => value),
  }),
)

const currentUnitsSchema = component(
  'CurrentUnits',
  text('The unit of each field of `current`.', '`current`-এর প্রতিটি ঘরের একক।'),
  z.strictObject({ time: iso8601, interval: z.literal('seconds'), ...unitsOf(currentUnits) }),
)

const hourly = component(
  'Hourly',
  text(
    'Parallel arrays, one entry an hour from the running local hour on; 48 unless the operator sets another number.',
    'সমান্তরাল তালিকা, চলতি স্থানীয় ঘণ্টা থেকে প্রতি ঘণ্টায় একটি; পরিচালক না বদলালে ৪৮টি।',
  ),
  z.strictObject({
    time: field(
      z.array(localTime).min(1).max(longestHourly),
      text('When the hours begin, local to `timezone`.', 'ঘণ্টাগুলো কখন শুরু, `timezone`-এর স্থানীয় সময়ে।'),
      'iso8601',
    ),
    ...fieldsOf(hourlyUnits, value => z.array(value).min(1).max(longestHourly)),
  }),
)

const hourlyUnitsSchema = component(
  'HourlyUnits',
  text('The unit of each field of `hourly`.', '`hourly`-এর প্রতিটি ঘরের একক।'),
  z.strictObject({ time: iso8601, ...unitsOf(hourlyUnits) }),
)

const daily = component(
  'Daily',
  text(
    'Parallel arrays, one entry a day from the current local day on.',
    'সমান্তরাল তালিকা, চলতি স্থানীয় দিন থেকে প্রতি দিনে একটি।',
  ),
  z.strictObject({
    time: field(
      z.array(localDate).min(1).max(forecastDays),
      text('The days, local to `timezone`.', 'দিনগুলো, `timezone`-এর স্থানীয় তারিখে।'),
      'iso8601',
    ),
    ...fieldsOf(dailyUnits, value => z.array(value).min(1).max(forecastDays)),
  }),
)

const dailyUnitsSchema = component(
  'DailyUnits',
  text('The unit of each field of `daily`.', '`daily`-এর প্রতিটি ঘরের একক।'),
  z.strictObject({ time: iso8601, ...unitsOf(dailyUnits) }),
)

const zone = {
  timezone: field(z.string(), text('The IANA zone of all local times.', 'সব স্থানীয় সময়ের IANA অঞ্চল।')),
  utc_offset_seconds: field(
    z.int().min(-86_400).max(86_400),
    text(
      'How far local time is ahead of UTC at the instant of the response: times have no offset.',
      'উত্তরের মুহূর্তে স্থানীয় সময় UTC থেকে কত এগিয়ে: সময়ের ঘরগুলোতে তা লেখা থাকে না।',
    ),
    'seconds',
  ),
}

const longitude = (meaning: Text) => field(z.number().min(-180).max(180), meaning, '°')
const latitude = (meaning: Text) => field(z.number().min(-90).max(90), meaning, '°')

const summary = {
  type: field(z.enum(locationTypes), text('Level of administration.', 'প্রশাসনিক স্তর।')),
  id: field(
    z.string().regex(/^\d+$/),
    text("The place's BBS code in decimal digits.", 'স্থানের BBS কোড, দশমিক অঙ্কে।'),
  ),
  name_en: field(z.string(), text('English name.', 'ইংরেজি নাম।')),
  name_bn: field(z.string(), text('Bengali name.', 'বাংলা নাম।')),
  slug_en: field(z.string(), text('English name for URLs.', 'URL-এর উপযোগী ইংরেজি নাম।')),
  latitude: latitude(text('Latitude of the place (WGS 84).', 'স্থানের অক্ষাংশ (WGS 84)।')),
  longitude: longitude(text('Longitude of the place (WGS 84).', 'স্থানের দ্রাঘিমাংশ (WGS 84)।')),
  parent_en: field(
    z.string().nullable(),
    text('English name of the place above; null for divisions.', 'উপরের স্তরের ইংরেজি নাম; বিভাগের জন্য null।'),
  ),
  parent_bn: field(
    z.string().nullable(),
    text('Bengali name of the place above; null for divisions.', 'উপরের স্তরের বাংলা নাম; বিভাগের জন্য null।'),
  ),
}

const location = component('Location', text('A place.', 'একটি স্থান।'), z.strictObject(summary))

const namedLocation = component(
  'NamedLocation',
  text('A place, with names in the requested language.', 'একটি স্থান, চাওয়া ভাষার নামসহ।'),
  z.strictObject({
    ...summary,
    name: field(
      z.string(),
      text(
        'Name in the language of `lang`; in the other where it is missing.',
        '`lang`-এর ভাষায় নাম; না থাকলে অন্যটিতে।',
      ),
    ),
    parent: field(
      z.string(),
      text(
        'Name of the place above in that language; left out for divisions.',
        'সেই ভাষায় উপরের স্তরের নাম; বিভাগে থাকে না।',
      ),
    ).optional(),
  }),
)

const pointLocation = component(
  'PointLocation',
  text('A raw point.', 'একটি বিন্দু।'),
  z.strictObject({
    type: field(z.literal('coords'), text('Always `coords`.', 'সর্বদা `coords`।')),
    latitude: latitude(text('The requested latitude.', 'চাওয়া অক্ষাংশ।')),
    longitude: longitude(text('The requested longitude.', 'চাওয়া দ্রাঘিমাংশ।')),
    name_en: field(
      z.string(),
      text('The coordinates with three decimals each.', 'স্থানাঙ্ক, প্রতিটি তিন দশমিকে।'),
    ),
    name_bn: field(z.null(), text('Always null.', 'সর্বদা null।')),
    name: field(z.string(), text('The same as `name_en`.', '`name_en`-এর সমান।')),
  }),
)

const placeFacts = {
  population: field(z.int(), text('Inhabitants.', 'জনসংখ্যা।'), 'people'),
  area_sq_km: field(z.number(), text('Area.', 'আয়তন।'), 'km²'),
}

const listItem = component(
  'LocationListItem',
  text('A place in a list.', 'তালিকার একটি স্থান।'),
  z.strictObject({
    ...summary,
    ...placeFacts,
    matched_alias: field(
      z.string(),
      text(
        'The other name in use by which `q` found the place; left out where its name did.',
        'প্রচলিত অন্য যে নামে `q` স্থানটি পেয়েছে; নিজের নামে পেলে থাকে না।',
      ),
    ).optional(),
  }),
)

const locationDetail = component(
  'LocationDetail',
  text('A place with all that is known of it.', 'একটি স্থান, জানা সব তথ্যসহ।'),
  z.strictObject({
    ...summary,
    ...placeFacts,
    website: field(
      z.string().nullable(),
      text('Official website; null when there is none.', 'সরকারি ওয়েবসাইট; না থাকলে null।'),
    ),
    bbs_code: field(
      z.int(),
      text('Code of the Bangladesh Bureau of Statistics.', 'বাংলাদেশ পরিসংখ্যান ব্যুরোর কোড।'),
    ),
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
    text('Current conditions, hours and days of a place.', 'একটি স্থানের বর্তমান অবস্থা, ঘণ্টা ও দিন।'),
    z.strictObject({ location: namedLocation, ...weatherBlocks }),
  ),
  coords: component(
    'PointWeather',
    text('Current conditions, hours and days of a point.', 'একটি বিন্দুর বর্তমান অবস্থা, ঘণ্টা ও দিন।'),
    z.strictObject({ location: pointLocation, ...weatherBlocks }),
  ),
  forecast: component(
    'Forecast',
    text('The days of a place.', 'একটি স্থানের দিনগুলো।'),
    z.strictObject({ location, daily, daily_units: dailyUnitsSchema, ...zone }),
  ),
  locations: component(
    'LocationList',
    text(
      'A page of places, the most populous first; ties are ordered by `id`.',
      'স্থানের একটি পাতা, বেশি জনসংখ্যা আগে; সমান হলে `id` অনুসারে।',
    ),
    z.strictObject({
      results: z.array(listItem).max(100),
      total: field(
        z.int().min(0),
        text('All matches, before `limit` and `offset`.', '`limit` ও `offset`-এর আগে মোট মিল।'),
      ),
      type: field(z.enum(locationTypes), text('The requested type.', 'চাওয়া ধরন।')),
      approximate: field(
        z.literal(true),
        text(
          'The places were found by a looser comparison of spellings; left out otherwise.',
          'বানানের শিথিল তুলনায় স্থানগুলো পাওয়া গেছে; নইলে থাকে না।',
        ),
      ).optional(),
    }),
  ),
  location: component(
    'LocationResponse',
    text('A place.', 'একটি স্থান।'),
    z.strictObject({ location: locationDetail }),
  ),
} as const satisfies Record<EndpointName, z.ZodType>

const error = field(
  z.string(),
  text(
    'One sentence: what is wrong, what was received, what is allowed. It may become clearer; programs read `code`.',
    'একটি বাক্য: কী ভুল, কী পাওয়া গেছে, কী চলে। বাক্য আরও স্পষ্ট হতে পারে; প্রোগ্রাম `code` পড়ে।',
  ),
)
const code = field(
  z.string().regex(/^[a-z][a-z0-9_]+$/),
  text('Stable: never renamed. New ones may come.', 'স্থায়ী: কখনো বদলায় না। নতুন যোগ হতে পারে।'),
)

component('Error', text('What went wrong.', 'কী ভুল হয়েছে।'), z.strictObject({ error, code }))
component(
  'QuotaExhausted',
  text("The day's quota is used up.", 'দিনের কোটা শেষ।'),
  z.strictObject({
    error,
    code: z.literal('quota_exhausted').meta(described(text('Stable.', 'স্থায়ী।'))),
    limit: field(z.int(), text('The daily quota.', 'দৈনিক কোটা।'), 'requests'),
    reset_at: field(
      z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      text('The next local midnight, in UTC.', 'পরবর্তী স্থানীয় মধ্যরাত, UTC-তে।'),
      'iso8601',
    ),
  }),
)
