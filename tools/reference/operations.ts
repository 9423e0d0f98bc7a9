// The endpoints in the reference: parameters, meanings in both languages, and an example request.

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
  summary: ['Your key', 'আপনার কী'],
  description: [
    'Limits, restrictions, remaining quota and usage of the key in the header. The request is free and not counted. Keys restricted to endpoints may use it too. Keys restricted to origins or addresses may use it only there.',
    'হেডারে দেওয়া কী-র সীমা, বিধিনিষেধ, বাকি কোটা ও ব্যবহার। অনুরোধটি কোটায় গণনা হয় না। এন্ডপয়েন্টে সীমিত কী-ও এটি চাইতে পারে। উৎস বা ঠিকানায় সীমিত কী শুধু সেখান থেকে চাইতে পারে।',
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
      'Current conditions, 48 hours and 7 days. Weather is per grid cell of 0.1° (11 km), so places in one cell get the same weather.',
      'বর্তমান অবস্থা, ৪৮ ঘণ্টা ও ৭ দিন। আবহাওয়া ০.১° (১১ কিমি) গ্রিড ঘর ধরে, তাই একই ঘরের স্থানগুলোর আবহাওয়া এক।',
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
      `The same for any point from ${bounds.south} to ${bounds.north}° N and ${bounds.west} to ${bounds.east}° E.`,
      `${bounds.south} থেকে ${bounds.north}° উত্তর ও ${bounds.west} থেকে ${bounds.east}° পূর্বের যেকোনো বিন্দুর একই তথ্য।`,
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
    description: ['Only the days, starting today.', 'শুধু দিনগুলো, আজ থেকে।'],
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
      'One array with the weather of each place or point. If a place fails, its error takes its position. The request costs one unit per distinct place, all or none. `x-ratelimit-cost` shows the cost.',
      'এক তালিকায় প্রতিটি স্থান বা বিন্দুর আবহাওয়া। কোনো স্থান ব্যর্থ হলে তার জায়গায় ত্রুটি থাকে। প্রতিটি ভিন্ন স্থানে এক একক খরচ, সবগুলো বা একটিও না। `x-ratelimit-cost` খরচ জানায়।',
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
      'One array with the days of each place or point. It costs as much as their weather.',
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
      'One page of places, most populous first. The header `link` has the next and previous page.',
      'স্থানের এক পাতা, বেশি জনসংখ্যা আগে। `link` হেডারে পরের ও আগের পাতা।',
    ],
    example: { path: {}, query: { type: 'district', q: 'ঢাকা' }, show: ['results', 0, 'id'] },
  },
  location: {
    id: 'getLocation',
    tag: 'places',
    summary: ['One place', 'একটি স্থান'],
    description: ['All details of a place except its weather.', 'আবহাওয়া ছাড়া স্থানের সব তথ্য।'],
    example: { path: { type: 'division', id: '30' }, query: {}, show: ['location', 'population'] },
  },
})

/** The meaning of each parameter, by name; by endpoint and name where it means less there. */
export const parameterMeanings: Readonly<Record<string, Text>> = {
  type: ['Administrative level.', 'প্রশাসনিক স্তর।'],
  id: [
    'The `id` from the list of places, or a `slug_en` that only one place of this type has.',
    'স্থানের তালিকার `id`, বা এই ধরনের একটিমাত্র স্থানের `slug_en`।',
  ],
  lat: ['Latitude in plain decimal degrees, without exponent.', 'সাধারণ দশমিক ডিগ্রিতে অক্ষাংশ, ঘাত ছাড়া।'],
  lng: ['Longitude in plain decimal degrees, without exponent.', 'সাধারণ দশমিক ডিগ্রিতে দ্রাঘিমাংশ, ঘাত ছাড়া।'],
  lang: [
    'Language of `location.name`, `location.parent` and `weather_text`. The forecast uses it only with `include=text`.',
    '`location.name`, `location.parent` ও `weather_text`-এর ভাষা। পূর্বাভাসে কেবল `include=text` থাকলে কাজ করে।',
  ],
  'weather_places.lang': [
    'Language of `location.name` and `location.parent`.',
    '`location.name` ও `location.parent`-এর ভাষা।',
  ],
  include: [
    'Additions to the response, separated by commas. `text`: meaning and icon of each `weather_code`. `place`: union, upazila and district near a point.',
    'উত্তরে সংযোজন, কমা দিয়ে আলাদা। `text`: প্রতিটি `weather_code`-এর অর্থ ও আইকন। `place`: বিন্দুর কাছের ইউনিয়ন, উপজেলা ও জেলা।',
  ],
  places: [
    'Places `type/id` and points `coords/lat/lng`, separated by commas. Repeated entries count once and are answered once.',
    'কমা দিয়ে আলাদা করা স্থান `type/id` ও বিন্দু `coords/lat/lng`। একই লেখা দুবার দিলে একবার গণনা ও একবার উত্তর।',
  ],
  days: ['Number of days, starting today.', 'দিনের সংখ্যা, আজ থেকে।'],
  division_id: [
    'Only districts of this division. Ignored for other types.',
    'শুধু এই বিভাগের জেলা; অন্য ধরনে উপেক্ষিত।',
  ],
  district_id: [
    'Only upazilas of this district. Ignored for other types.',
    'শুধু এই জেলার উপজেলা; অন্য ধরনে উপেক্ষিত।',
  ],
  upazila_id: [
    'Only unions of this upazila. Ignored for other types.',
    'শুধু এই উপজেলার ইউনিয়ন; অন্য ধরনে উপেক্ষিত।',
  ],
  q: [
    'Part of a name or alias, in English or Bengali. Percent-encode it.',
    'নাম বা প্রচলিত অন্য নামের অংশ, বাংলা বা ইংরেজিতে। শতকরা-এনকোড করুন।',
  ],
  limit: ['Places per page.', 'প্রতি পাতায় স্থান।'],
  offset: ['Number of matches to skip.', 'শুরুতে যতগুলো মিল বাদ যাবে।'],
}
