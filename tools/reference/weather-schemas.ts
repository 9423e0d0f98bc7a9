// The weather in response bodies as schemas, each variable with its unit and meaning in both languages.

import { ranges } from 'abohawa/weather/ranges.ts'
import { currentUnits, dailyUnits, forecastDays, hourlyUnits } from 'abohawa/weather/weather-variables.ts'
import { icons } from 'abohawa/weather/weather-words.ts'
import * as z from 'zod'
import { component, field, type Text } from './texts.ts'

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
    'Weather as a WMO code: 0 clear, 1–3 clouds, 45–48 fog, 51–67 drizzle and rain, 71–77 snow, 80–86 showers, 95–99 thunderstorm. For a day: the most severe.',
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

/** What the codes mean, with `include=text`. */
const wordsOf = (shape: (value: z.ZodType) => z.ZodType) => ({
  weather_text: field(
    shape(z.string().nullable()),
    'With `include=text`: what `weather_code` means, in the language of `lang`.',
    '`include=text` থাকলে: `weather_code`-এর অর্থ, `lang`-এর ভাষায়।',
  ).optional(),
  icon: field(
    shape(z.string().nullable()),
    `With \`include=text\`: the name of an icon for it, one of ${icons.map(icon => `\`${icon}\``).join(', ')}. For a day: its day icon. Icons with a sun or moon are null if \`is_day\` is null.`,
    `\`include=text\` থাকলে: এর আইকনের নাম, ${icons.map(icon => `\`${icon}\``).join(', ')}-এর একটি। পুরো দিনের জন্য দিনেরটি; \`is_day\` null হলে সূর্য বা চাঁদের আইকনও null।`,
  ).optional(),
})
const noUnit = z.literal('').optional()
const wordUnits = { weather_text: noUnit, icon: noUnit }

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
    ...wordsOf(value => value),
  }),
)

const currentUnitsSchema = component(
  'CurrentUnits',
  'The unit of each field of `current`.',
  '`current`-এর প্রতিটি ঘরের একক।',
  z.strictObject({ time: iso8601, interval: z.literal('seconds'), ...unitsOf(currentUnits), ...wordUnits }),
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
    ...wordsOf(value => z.array(value).min(1).max(longestHourly)),
  }),
)

const hourlyUnitsSchema = component(
  'HourlyUnits',
  'The unit of each field of `hourly`.',
  '`hourly`-এর প্রতিটি ঘরের একক।',
  z.strictObject({ time: iso8601, ...unitsOf(hourlyUnits), ...wordUnits }),
)

export const daily = component(
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
    ...wordsOf(value => z.array(value).min(1).max(forecastDays)),
  }),
)

export const dailyUnitsSchema = component(
  'DailyUnits',
  'The unit of each field of `daily`.',
  '`daily`-এর প্রতিটি ঘরের একক।',
  z.strictObject({ time: iso8601, ...unitsOf(dailyUnits), ...wordUnits }),
)

export const zone = {
  timezone: field(z.string(), 'The IANA zone of all local times.', 'সব স্থানীয় সময়ের IANA অঞ্চল।'),
  utc_offset_seconds: field(
    z.int().min(-86_400).max(86_400),
    'How far local time is ahead of UTC at the instant of the response: times have no offset.',
    'উত্তরের মুহূর্তে স্থানীয় সময় UTC থেকে কত এগিয়ে: সময়ের ঘরগুলোতে তা লেখা থাকে না।',
    'seconds',
  ),
}

export const weatherBlocks = {
  current,
  current_units: currentUnitsSchema,
  hourly,
  hourly_units: hourlyUnitsSchema,
  daily,
  daily_units: dailyUnitsSchema,
  ...zone,
}
