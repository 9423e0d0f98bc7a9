// The endpoints with weather: of a place, of a point, the forecast of a place, and both for a list of places. Tools call them without a
// listener.

import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Location } from '../catalogue/location-schema.ts'
import type { WeatherEndpoint } from '../common/endpoints.ts'
import type { Cell } from '../weather/cell.ts'
import { forecastDays } from '../weather/weather-variables.ts'
import { type AnswerParts, createAnswers } from './answer.ts'
import type { Compression } from './content-coding.ts'
import type { Endpoint } from './endpoint.ts'
import { createJoinedWeather, expectedError, type ListedPlace, type PlaceList } from './joined-weather.ts'
import { type Language, parametersOf, queryOf } from './parameters.ts'
import { listQueries } from './place-list.ts'
import {
  type CurrentCatalogue,
  createPartMaker,
  findLocation,
  type PartForm,
  type PlacePart,
  pointPart,
} from './places.ts'
import { badRequest, createDocUrl, type DocUrl } from './problem.ts'
import { createRenderedWeather, languageHeaders } from './rendered-weather.ts'
import { locatedAt } from './representation.ts'
import { sentences } from './sentences.ts'

export type WeatherEndpointParts = AnswerParts & {
  /** Raw coordinates must lie in the bounds that it has now. */
  readonly catalogue: CurrentCatalogue
  /** The places of the catalogue where others share them; its own by default. */
  readonly findPlace?: FindPlace | undefined
  /** Compresses bodies; by default with zlib. */
  readonly compression?: Compression | undefined
  /** Where the errors of places in a list are explained; by default a path from the root. */
  readonly docUrl?: DocUrl | undefined
}

export const weatherEndpointsOf = (
  parts: WeatherEndpointParts,
): Readonly<Record<WeatherEndpoint, Endpoint>> => {
  const { catalogue, calendar, compression, docUrl = createDocUrl(null) } = parts
  const answers = createAnswers(parts)
  const findPlace = parts.findPlace ?? createPlaces(catalogue, answers.cellAt)
  const rendered = createRenderedWeather(answers, calendar.zone, compression)
  const { weather, coords, forecast } = parametersOf(catalogue.current.bounds, catalogue.current.title)
  const read = (query: string, wanted: typeof weather.query | typeof coords.query) => {
    const given = queryOf(query, wanted)
    const lang = wanted.lang.read(given.lang)
    const included: readonly string[] = wanted.include.read(given.include) ?? []
    return { lang, words: included.includes('text') ? lang : undefined, hasPlace: included.includes('place') }
  }
  // Nearly all queries are one of these.
  const usual = new Map(['', 'lang=bn', 'lang=en'].map(query => [query, read(query, weather.query)]))
  const { lang: wordsIn, ...ofForecast } = forecast.query
  const readPoint = (lat: string | undefined, lng: string | undefined, near?: Catalogue): ListedPlace => {
    const latitude = coords.path.lat.read(lat)
    const longitude = coords.path.lng.read(lng)
    return { cell: answers.cellAt({ latitude, longitude }), place: pointPart(latitude, longitude, near) }
  }
  const listOf = createLists(catalogue, findPlace, readPoint)
  const joined = createJoinedWeather(answers.read, rendered, docUrl)

  return {
    weather: ({ params: { type = '', id = '' }, query, keyId }) => {
      if (type === 'coords') throw badRequest(sentences.path.longitudeMissing)
      const { lang, words } = usual.get(query) ?? read(query, weather.query)
      const place = findPlace(type, id)
      const found = rendered.represent(
        place.cell,
        undefined,
        place.part(lang),
        languageHeaders[lang],
        keyId,
        words,
      )
      return place.id === id ? found : located(found, place, lang, words)
    },
    coords: ({ params, query, keyId }) => {
      const { lang, words, hasPlace } = usual.get(query) ?? read(query, coords.query)
      const { cell, place } = readPoint(params.lat, params.lng, hasPlace ? catalogue.current : undefined)
      return rendered.represent(cell, undefined, place, languageHeaders[lang], keyId, words)
    },
    forecast: ({ params: { type = '', id = '' }, query, keyId }) => {
      const given = queryOf(query, ofForecast)
      const days = ofForecast.days.read(given.days)
      const hasText = given.include !== undefined && ofForecast.include.read(given.include)
      // Without the text `lang` is ignored, as the contract has it.
      const words = hasText ? wordsIn.read(queryOf(query, { lang: wordsIn }).lang) : undefined
      const place = findPlace(type, id)
      const headers = words ? languageHeaders[words] : ''
      const found = rendered.represent(place.cell, days, place.part('forecast'), headers, keyId, words)
      return place.id === id ? found : located(found, place, words, words, days)
    },
    weather_places: ({ query, keyId }) => {
      const { places, lang } = listQueries.weather_places(query)
      return joined(listOf(places, lang), { headers: languageHeaders[lang], consumer: keyId })
    },
    forecast_places: ({ query, keyId }) => {
      const { places, days } = listQueries.forecast_places(query)
      return joined(listOf(places, 'forecast'), { days, consumer: keyId })
    },
  }
}

/** Reads the places of a list; as long as place-list.ts remembers its query, they are the same object. */
const createLists = (
  catalogue: CurrentCatalogue,
  findPlace: FindPlace,
  readPoint: (lat: string | undefined, lng: string | undefined) => ListedPlace,
) => {
  /** What an item of a list names. @throws Problem as the endpoint of one place does */
  const readListed = (text: string, form: PartForm): ListedPlace => {
    const [type = '', id = '', ...more] = text.split('/')
    if (type === 'coords' && more.length === 1) return readPoint(id, more[0])
    if (id === '' || more.length > 0) throw badRequest(sentences.parameter.place(text))
    if (type === 'coords') throw badRequest(sentences.path.longitudeMissing)
    const { cell, part } = findPlace(type, id)
    return { cell, place: part(form) }
  }
  // Lists of a replaced catalogue would keep all of it in memory.
  let lists = new WeakMap<readonly string[], PlaceList>()
  let listsOf = catalogue.current
  return (texts: readonly string[], form: PartForm): PlaceList => {
    if (listsOf !== catalogue.current) {
      listsOf = catalogue.current
      lists = new WeakMap()
    }
    const known = lists.get(texts)
    if (known) return known
    const places = texts.map(text => {
      try {
        return readListed(text, form)
      } catch (error) {
        return expectedError(error)
      }
    })
    const list = { places, wasZipped: false, zipped: undefined, last: undefined }
    lists.set(texts, list)
    return list
  }
}

type MaybeLater = ReturnType<Endpoint>

/** The answer to a slug. Its `content-location` has what differs from the defaults of the query. */
const located = (
  found: MaybeLater,
  { id }: Place,
  lang: Language | undefined,
  words: Language | undefined,
  days = forecastDays,
): MaybeLater => {
  const query = {
    ...(lang === 'en' ? { lang } : {}),
    ...(days === forecastDays ? {} : { days: String(days) }),
    ...(words ? { include: 'text' } : {}),
  }
  return found instanceof Promise
    ? found.then(late => locatedAt(late, id, query))
    : locatedAt(found, id, query)
}

type Place = {
  readonly id: string
  readonly cell: Cell
  part(form: PartForm): PlacePart
}

/** The place of a path, by its id or its slug. @throws Problem as `findLocation` does */
type FindPlace = (type: string, id: string) => Place

/** The places of the current catalogue, each made at its first request. */
export const createPlaces = (
  catalogue: CurrentCatalogue,
  cellAt: (location: Location) => Cell,
): FindPlace => {
  let from = catalogue.current
  // By id, which no two published places of a catalogue share.
  let places = new Map<string, Place & { readonly type: string }>()
  let makePart = createPartMaker(from)
  const placeOf = (location: Location): Place => {
    const parts: Partial<Record<PartForm, PlacePart>> = {}
    const make = makePart
    return {
      id: location.id,
      cell: cellAt(location),
      part: form => {
        parts[form] ??= make(location, form)
        return parts[form]
      },
    }
  }

  return (type, id) => {
    if (from !== catalogue.current) {
      from = catalogue.current
      places = new Map()
      makePart = createPartMaker(from)
    }
    const known = places.get(id)
    if (known?.type === type) return known
    const location = findLocation(from, type, id)
    // Where this is its slug, it may be known by its id.
    const place = places.get(location.id) ?? { ...placeOf(location), type }
    places.set(location.id, place)
    return place
  }
}
