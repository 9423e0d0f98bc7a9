// Which endpoint of the API a request is for, by its path, under the names of the log and the metrics; and which place it
// names. Reads text only: whether there is such a place is for a catalogue.

import { apiPrefix, type Destination, endpointNames, endpoints } from '../../common/endpoints.ts'

export const endpointOf = (path: string): Destination => {
  const matched = endpointPath.exec(pathnameOf(path))
  return matched ? (endpointNames[matched.indexOf('', 1) - 1] ?? 'other') : 'other'
}
// A group for each endpoint: empty where its path matched.
const endpointPath = new RegExp(
  `^${apiPrefix}(?:${endpointNames.map(name => `${endpoints[name].path.replaceAll(/:\w+/g, '[^/]+')}()`).join('|')})$`,
)

/** Of a path and its query, the path. */
const pathnameOf = (path: string): string => {
  const query = path.indexOf('?')
  return query < 0 ? path : path.slice(0, query)
}

/** The place or point of a request for weather, such as `district/3026` or `23.81,90.41`; else the path. */
export const placeOf = (path: string): string => {
  const pathname = pathnameOf(path)
  const [, type, id, third] = placePath.exec(pathname) ?? []
  if (type === undefined) return pathname
  if (type === 'coords' && third !== undefined) return `${id},${third}`
  return third === undefined ? `${type}/${id}` : pathname
}
const placePath = /^\/api\/v1\/(?:weather|forecast)\/([^/]+)\/([^/]+)(?:\/([^/]+))?$/
