// What a request asks for, by its path: the endpoint, named as in log and metrics, the place, and the cell that a gateway would use.

import type { Catalogue } from 'abohawa/catalogue/catalogue.ts'
import { type Bounds, isLocationType } from 'abohawa/catalogue/location-schema.ts'
import {
  apiPrefix,
  type Destination,
  endpointNames,
  endpoints,
  hasWeather,
  isList,
  type WeatherEndpoint,
} from 'abohawa/common/endpoints.ts'
import type { Grid } from 'abohawa/weather/cell.ts'
import type { TrafficRequest } from './traffic-request.ts'

// A group for each parameter, and an empty one for the endpoint whose path matched.
const endpointPath = new RegExp(
  `^${apiPrefix}(?:${endpointNames.map(name => `${endpoints[name].path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}(?<${name}>)`).join('|')})$`,
)

type Parts = {
  readonly pathname: string
  readonly query: string
  readonly endpoint: Destination
  /** As sent; undefined for parameters of other endpoints. */
  readonly params: Readonly<Record<string, string | undefined>>
}

const read = (path: string): Parts => {
  const query = path.indexOf('?')
  const pathname = query < 0 ? path : path.slice(0, query)
  const params = endpointPath.exec(pathname)?.groups ?? {}
  const endpoint = endpointNames.find(name => params[name] === '') ?? 'other'
  const parts = { pathname, query: query < 0 ? '' : path.slice(query + 1), params }
  const isNothing =
    endpoint !== 'other' && isList(endpoint) && !/(?:^|&)places(?:=|\[|%5[bB])/.test(parts.query)
  return { ...parts, endpoint: isNothing ? 'other' : endpoint }
}

let lastPath = ''
let lastParts = read('')

/** Keeps the last path, because callers ask several times in a row. */
const partsOf = (path: string): Parts => {
  if (path !== lastPath) {
    lastParts = read(path)
    lastPath = path
  }
  return lastParts
}

export const endpointOf = (path: string): Destination => partsOf(path).endpoint

/** The place or point of a weather request, such as `district/3026` or `23.81,90.41`; for lists and others the path. */
export const placeOf = (path: string): string => {
  const { pathname, endpoint, params } = partsOf(path)
  if (!hasWeather(endpoint) || isList(endpoint)) return pathname
  return endpoint === 'coords' ? `${params.lat},${params.lng}` : `${params.type}/${params.id}`
}

/** For a list of places, the path of each place; for others the path itself. */
export const pathsOfPlaces = (path: string): string[] => {
  const { endpoint, query } = partsOf(path)
  if (!hasWeather(endpoint) || !isList(endpoint)) return [path]
  const places = new URLSearchParams(query).getAll('places').flatMap(text => text.split(','))
  const named = [...new Set(places.map(place => place.trim()))].filter(place => place !== '')
  return named.length === 0 ? [path] : named.map(place => `${apiPrefix}/weather/${place}`)
}

/** The parts of a path with weather. */
export type WeatherPath = {
  readonly endpoint: WeatherEndpoint
  readonly params: Readonly<Record<string, string>>
  /** Without its question mark. */
  readonly query: string
}

/** Undefined for a path without weather, and for one that the router refuses because it is not UTF-8. */
export const weatherPathOf = (path: string): WeatherPath | undefined => {
  const { endpoint, params, query } = partsOf(path)
  if (!hasWeather(endpoint)) return undefined
  try {
    const known = Object.entries(params).flatMap(([name, value]) =>
      value ? [[name, decodeURIComponent(value)]] : [],
    )
    return { endpoint, params: Object.fromEntries(known), query }
  } catch {
    return undefined
  }
}

/** The cell of a request; undefined where it is not answered with weather. */
export type CellOf = (request: Pick<TrafficRequest, 'cell' | 'path'>) => string | undefined

/** For use without a catalogue. */
export const recordedCell: CellOf = ({ cell }) => cell

/** The recorded cell, or the cell that a gateway with this catalogue and grid would use. */
export const createCellOf = (catalogue: Catalogue, bounds: Bounds, grid: Grid): CellOf => {
  const { south, north, west, east } = bounds
  const degrees = /^-?\d{1,3}(?:\.\d{1,20})?$/
  const pointOf = ({ lat = '', lng = '', type = '', id = '' }: Parts['params']) => {
    if (isLocationType(type)) {
      const [first, ...others] = catalogue.withSlug(type, id)
      return catalogue.find(type, id) ?? (others.length === 0 ? first : undefined)
    }
    const [latitude, longitude] = [Number(lat), Number(lng)]
    const isInside = latitude >= south && latitude <= north && longitude >= west && longitude <= east
    return isInside && degrees.test(lat) && degrees.test(lng) ? { latitude, longitude } : undefined
  }
  return ({ cell, path }) => {
    if (cell !== undefined) return cell
    const { endpoint, params } = partsOf(path)
    const point = hasWeather(endpoint) ? pointOf(params) : undefined
    return point && grid.cellOf(point.latitude, point.longitude).id
  }
}
