// The response bodies as schemas, each field with its unit and meaning in both languages. They describe what the gateway sends;
// tests validate every response against them, and allow no other fields.

import { locationTypes } from 'abohawa/catalogue/location-schema.ts'
import type { AnswerName } from 'abohawa/common/endpoints.ts'
import { ratePolicies } from 'abohawa/keys/rates.ts'
import * as z from 'zod'
import { instant, keySchema } from './key-schema.ts'
import { component, described, field, type Text } from './texts.ts'
import { daily, dailyUnitsSchema, weatherBlocks, zone } from './weather-schemas.ts'

const longitude = (...meaning: Text) => field(z.number().min(-180).max(180), ...meaning, '°')
const latitude = (...meaning: Text) => field(z.number().min(-90).max(90), ...meaning, '°')

const summary = {
  type: field(z.enum(locationTypes), 'Administrative level.', 'প্রশাসনিক স্তর।'),
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

const nearbyPlace = component(
  'NearbyPlace',
  'A place near a point.',
  'বিন্দুর কাছের একটি স্থান।',
  z.strictObject({
    type: summary.type,
    id: summary.id,
    name_en: summary.name_en,
    name_bn: summary.name_bn,
    distance_km: field(
      z.number().min(0),
      'From the point to that of the place, along the ground.',
      'বিন্দু থেকে স্থানের বিন্দুর দূরত্ব, ভূমি বরাবর।',
      'km',
    ),
  }),
)

const nearby = component(
  'Nearby',
  'The union nearest to a point, by the points of the places, with its upazila and its district; one that is not published is left out. The point may lie outside of all three.',
  'বিন্দুর সবচেয়ে কাছের ইউনিয়ন, স্থানের বিন্দু অনুসারে, তার উপজেলা ও জেলাসহ; প্রকাশিত না হলে থাকে না। বিন্দুটি তিনটিরই বাইরে হতে পারে।',
  z.strictObject({
    union: nearbyPlace.optional(),
    upazila: nearbyPlace.optional(),
    district: nearbyPlace.optional(),
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

const weather = component(
  'Weather',
  'Current conditions, hours and days of a place.',
  'একটি স্থানের বর্তমান অবস্থা, ঘণ্টা ও দিন।',
  z.strictObject({ location: namedLocation, ...weatherBlocks }),
)
const pointWeather = component(
  'PointWeather',
  'Current conditions, hours and days of a point.',
  'একটি বিন্দুর বর্তমান অবস্থা, ঘণ্টা ও দিন।',
  z.strictObject({ location: pointLocation, place: nearby.optional(), ...weatherBlocks }),
)
const days = { daily, daily_units: dailyUnitsSchema, ...zone }
const forecast = component(
  'Forecast',
  'The days of a place.',
  'একটি স্থানের দিনগুলো।',
  z.strictObject({ location, ...days }),
)
const pointForecast = component(
  'PointForecast',
  'The days of a point.',
  'একটি বিন্দুর দিনগুলো।',
  z.strictObject({ location: pointLocation, ...days }),
)

const error = field(
  z.string(),
  'One sentence for people. It may change: programs should read `code`.',
  'মানুষের জন্য একটি বাক্য। তা বদলাতে পারে: প্রোগ্রামে `code` পড়ুন।',
)
const code = field(
  z.string().regex(/^[a-z][a-z0-9_]+$/),
  'Stable, for programs. New codes may be added.',
  'স্থায়ী, প্রোগ্রামের জন্য। নতুন কোড যোগ হতে পারে।',
)

const parameter = field(
  z.string(),
  'The invalid parameter of path, query or headers. Left out if there is not exactly one.',
  'পথ, কোয়েরি বা হেডারের অবৈধ প্যারামিটার। ঠিক একটি না হলে থাকে না।',
).optional()
const docUrl = field(
  z.string().regex(/\/docs#error-[a-z0-9_]+$/),
  'The row of the code in the reference: a URL, or a path if the operator has not set `server.publicUrl`.',
  'নির্দেশিকায় কোডটির সারি: URL, বা পরিচালক `server.publicUrl` না দিলে পথ।',
)
const errorBody = component(
  'Error',
  'What went wrong.',
  'কী ভুল হয়েছে।',
  z.strictObject({ error, code, parameter, doc_url: docUrl }),
)

/** The bodies of 200, by endpoint, and that of a key. */
export const bodies = {
  weather,
  coords: pointWeather,
  forecast,
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
  key: keySchema,
  location: component(
    'LocationResponse',
    'A place.',
    'একটি স্থান।',
    z.strictObject({ location: locationDetail }),
  ),
  weather_places: component(
    'WeatherOfPlaces',
    'The weather of places and points in the requested order, or the error of one.',
    'চাওয়া ক্রমে স্থান ও বিন্দুর আবহাওয়া, বা কোনোটির ত্রুটি।',
    z
      .array(z.union([weather, pointWeather, errorBody]))
      .min(1)
      .max(100),
  ),
  forecast_places: component(
    'ForecastOfPlaces',
    'The days of places and points in the requested order, or the error of one.',
    'চাওয়া ক্রমে স্থান ও বিন্দুর দিনগুলো, বা কোনোটির ত্রুটি।',
    z
      .array(z.union([forecast, pointForecast, errorBody]))
      .min(1)
      .max(100),
  ),
} as const satisfies Record<AnswerName, z.ZodType>

component(
  'QuotaExhausted',
  'The daily quota is used up or too small, or the key sends too fast.',
  'দিনের কোটা শেষ, বা অনুরোধের খরচের চেয়ে কম বাকি, বা কী-টি খুব দ্রুত পাঠাচ্ছে।',
  z.strictObject({
    error,
    code: z
      .enum(['quota_exhausted', 'quota_insufficient', 'rate_limited'])
      .meta(described('Stable.', 'স্থায়ী।')),
    doc_url: docUrl,
    policy: field(
      z.enum(ratePolicies),
      'With `rate_limited`: the limit by the second or by the minute.',
      '`rate_limited` হলে: সেকেন্ডের না মিনিটের সীমা।',
    ).optional(),
    limit: field(
      z.int(),
      'The daily quota, or the requests a second or minute.',
      'দৈনিক কোটা, বা সেকেন্ডে বা মিনিটে অনুরোধ।',
      'requests',
    ),
    reset_at: field(
      instant,
      'When to retry, in UTC: the next local midnight, or when the next request is allowed.',
      'পরবর্তী স্থানীয় মধ্যরাত, বা যখন পরের অনুরোধ নেওয়া হবে, UTC-তে।',
      'iso8601',
    ),
    remaining: field(
      z.int().min(0),
      'For a list of places: units left of the quota.',
      'তালিকার অনুরোধে কোটার যা বাকি।',
      'requests',
    ).optional(),
    cost: field(
      z.int().min(1),
      'For a list of places: units the request would have cost.',
      'তালিকার অনুরোধে যা খরচ হতো।',
      'requests',
    ).optional(),
  }),
)
