// The endpoints, and what a key asks of itself, as the reference describes them: the parameters that check their requests, what each means in both
// languages, and a request that shows it.

import { type Parameters, parametersOf } from 'abohawa/api/parameters.ts'
import type { Bounds } from 'abohawa/catalogue/location-schema.ts'
import { type AnswerName, type EndpointName, keyPath, templateOf } from 'abohawa/common/endpoints.ts'
import type { Text } from './texts.ts'

export type Operation = {
  readonly name: AnswerName
  /** In camel case, for generated clients. */
  readonly id: string
  readonly tag: 'weather' | 'places' | 'keys'
  /** Below the prefix, in the form of OpenAPI. */
  readonly path: string
  readonly summary: Text
  readonly description: Text
  readonly parameters: { readonly path: Parameters; readonly query: Parameters }
  /** Values of a request that shows the endpoint, and what of its answer is printed. */
  readonly example: {
    readonly path: Readonly<Record<string, string>>
    readonly query: Readonly<Record<string, string>>
    readonly show: readonly (string | number)[]
  }
}

/** In the order of the reference. @param area what the bounds are called */
export const operationsFor = (bounds: Bounds, area: string): readonly Operation[] => {
  const operations = operationsByName(bounds)
  const parameters = parametersOf(bounds, area)
  const ofEndpoints = (Object.keys(operations) as EndpointName[]).map(name => ({
    name,
    path: templateOf(name),
    parameters: parameters[name],
    ...operations[name],
  }))
  return [...ofEndpoints, ofKey]
}

const ofKey: Operation = {
  name: 'key',
  path: keyPath,
  parameters: { path: {}, query: {} },
  id: 'getKey',
  tag: 'keys',
  summary: ['The key itself', 'কী-টি নিজে'],
  description: [
    'What the key in the header may do, what is left of its quota, and what it used on each of thirty days. Takes no unit of the quota and is not counted in its usage. A key that is bound to endpoints may ask it too; one that is bound to origins or addresses only from there.',
    'হেডারের কী কী করতে পারে, কোটার কত বাকি, আর ত্রিশ দিনের প্রতিদিন কত ব্যবহার হয়েছে। কোটার একক নেয় না, ব্যবহারেও গণনা হয় না। এন্ডপয়েন্টে সীমিত কী-ও এটি চাইতে পারে; উৎস বা ঠিকানায় সীমিত কী শুধু সেখান থেকে।',
  ],
  example: { path: {}, query: {}, show: ['remaining'] },
}

const operationsByName = (
  bounds: Bounds,
): Readonly<Record<EndpointName, Omit<Operation, 'name' | 'path' | 'parameters'>>> => ({
  weather: {
    id: 'getWeather',
    tag: 'weather',
    summary: ['Weather of a place', 'একটি স্থানের আবহাওয়া'],
    description: [
      'Current conditions, hours and days. Weather is given per grid cell of 0.1° (about 11 km), so places of one cell share it.',
      'বর্তমান অবস্থা, ঘণ্টা ও দিন। আবহাওয়া ০.১° (প্রায় ১১ কিমি) গ্রিড ঘর ধরে দেওয়া হয়, তাই একই ঘরের স্থানগুলোর আবহাওয়া এক।',
    ],
    example: {
      path: { type: 'district', id: '3026' },
      query: { lang: 'en' },
      show: ['current', 'temperature_2m'],
    },
  },
  coords: {
    id: 'getPointWeather',
    tag: 'weather',
    summary: ['Weather of a point', 'একটি বিন্দুর আবহাওয়া'],
    description: [
      `The same blocks for a point inside ${bounds.south}–${bounds.north}° N, ${bounds.west}–${bounds.east}° E; the edges are inside.`,
      `${bounds.south}–${bounds.north}° উত্তর, ${bounds.west}–${bounds.east}° পূর্বের ভেতরের বিন্দুর একই তথ্য; সীমারেখাও ভেতরে।`,
    ],
    example: {
      path: { lat: '23.81', lng: '90.41' },
      query: { lang: 'en' },
      show: ['current', 'temperature_2m'],
    },
  },
  forecast: {
    id: 'getForecast',
    tag: 'weather',
    summary: ['Daily forecast of a place', 'একটি স্থানের দৈনিক পূর্বাভাস'],
    description: ['The days alone, from the current local day on.', 'শুধু দিনগুলো, চলতি স্থানীয় দিন থেকে।'],
    example: {
      path: { type: 'upazila', id: '302672' },
      query: { days: '3' },
      show: ['daily', 'temperature_2m_max'],
    },
  },
  weather_places: {
    id: 'getWeatherOfPlaces',
    tag: 'weather',
    summary: ['Weather of up to 100 places', 'সর্বোচ্চ ১০০টি স্থানের আবহাওয়া'],
    description: [
      'What the endpoints of one place or point give for each, in one array. A place that has no weather has its error in its position. The request takes one unit for each distinct place, all of them or none; `x-ratelimit-cost` names them.',
      'প্রতিটি স্থান বা বিন্দুর নিজের এন্ডপয়েন্টের উত্তর, এক তালিকায়। যে স্থানের আবহাওয়া নেই তার জায়গায় তার ত্রুটি থাকে। প্রতিটি ভিন্ন স্থানের জন্য এক একক, সবগুলো বা একটিও না; `x-ratelimit-cost` তা জানায়।',
    ],
    example: {
      path: {},
      query: { places: 'district/3026,coords/23.81/90.41', lang: 'en' },
      show: [0, 'current', 'temperature_2m'],
    },
  },
  forecast_places: {
    id: 'getForecastOfPlaces',
    tag: 'weather',
    summary: ['Daily forecast of up to 100 places', 'সর্বোচ্চ ১০০টি স্থানের দৈনিক পূর্বাভাস'],
    description: [
      'The days of each place or point in one array; it costs what the weather of these places does.',
      'প্রতিটি স্থান বা বিন্দুর দিনগুলো এক তালিকায়; খরচ একই স্থানগুলোর আবহাওয়ার সমান।',
    ],
    example: {
      path: {},
      query: { places: 'district/3026,upazila/302672', days: '3' },
      show: [0, 'daily', 'temperature_2m_max'],
    },
  },
  locations: {
    id: 'listLocations',
    tag: 'places',
    summary: ['Places of a type', 'এক ধরনের স্থান'],
    description: [
      'A page of the published places, the most populous first. The header `link` leads to the next and the previous page.',
      'প্রকাশিত স্থানের একটি পাতা, বেশি জনসংখ্যা আগে। `link` হেডারে পরের ও আগের পাতা।',
    ],
    example: { path: {}, query: { type: 'district', q: 'ঢাকা' }, show: ['results', 0, 'id'] },
  },
  location: {
    id: 'getLocation',
    tag: 'places',
    summary: ['One place', 'একটি স্থান'],
    description: ['All that is known of a place, without weather.', 'আবহাওয়া ছাড়া স্থানের জানা সব তথ্য।'],
    example: { path: { type: 'division', id: '30' }, query: {}, show: ['location', 'population'] },
  },
})

/** The meaning of each parameter, by name; by endpoint and name where it means less there. */
export const parameterMeanings: Readonly<Record<string, Text>> = {
  type: ['Level of administration.', 'প্রশাসনিক স্তর।'],
  id: [
    "The place's BBS code, as the list has it; or its `slug_en`, where no other place of the type has the same.",
    'স্থানের BBS কোড, তালিকায় যেমন; বা এর `slug_en`, যদি একই ধরনের অন্য স্থানের তা না থাকে।',
  ],
  lat: ['Latitude in plain decimal degrees, without exponent.', 'সাধারণ দশমিক ডিগ্রিতে অক্ষাংশ, ঘাত ছাড়া।'],
  lng: ['Longitude in plain decimal degrees, without exponent.', 'সাধারণ দশমিক ডিগ্রিতে দ্রাঘিমাংশ, ঘাত ছাড়া।'],
  lang: [
    'Language of `location.name`, `location.parent` and `weather_text`; of the forecast with `include=text` alone.',
    '`location.name`, `location.parent` ও `weather_text`-এর ভাষা; পূর্বাভাসে কেবল `include=text` থাকলে।',
  ],
  'weather_places.lang': [
    'Language of `location.name` and `location.parent`.',
    '`location.name` ও `location.parent`-এর ভাষা।',
  ],
  include: [
    'Additions to the body, with commas between: `text` says what each `weather_code` means and which icon it has, `place` names the union, upazila and district near a point.',
    'বডিতে সংযোজন, মাঝে কমা: `text` প্রতিটি `weather_code`-এর অর্থ ও আইকন জানায়, `place` বিন্দুর কাছের ইউনিয়ন, উপজেলা ও জেলার নাম দেয়।',
  ],
  places: [
    'Places `type/id` and points `coords/lat/lng`, separated by commas. The same text twice counts and answers once.',
    'কমা দিয়ে আলাদা করা স্থান `type/id` ও বিন্দু `coords/lat/lng`। একই লেখা দুবার দিলে একবার গণনা ও একবার উত্তর।',
  ],
  days: ['How many days, from the current one on.', 'কত দিন, চলতি দিন থেকে।'],
  division_id: [
    'Districts of this division alone; ignored with another type.',
    'শুধু এই বিভাগের জেলা; অন্য ধরনে উপেক্ষিত।',
  ],
  district_id: [
    'Upazilas of this district alone; ignored with another type.',
    'শুধু এই জেলার উপজেলা; অন্য ধরনে উপেক্ষিত।',
  ],
  upazila_id: [
    'Unions of this upazila alone; ignored with another type.',
    'শুধু এই উপজেলার ইউনিয়ন; অন্য ধরনে উপেক্ষিত।',
  ],
  q: [
    'Part of a name in either script, or of another name in use. Percent-encode it.',
    'যেকোনো লিপিতে নামের অংশ, বা প্রচলিত অন্য নামের। শতকরা-এনকোড করুন।',
  ],
  limit: ['Places of a page.', 'এক পাতায় স্থান।'],
  offset: ['Matches before the page.', 'পাতার আগের মিল।'],
}
