// Which requests reach the endpoints with weather, by method, path and key: what the API's router and its admission do with
// them before the cache is read. All else has no weather, and changes nothing in the cache.

import {
  apiPrefix,
  endpointNames,
  endpoints,
  hasWeather,
  type WeatherEndpoint,
} from '../../common/endpoints.ts'

/** A path of an endpoint with weather, in its parts. */
export type WeatherPath = {
  readonly endpoint: WeatherEndpoint
  /** Decoded. */
  readonly params: Readonly<Record<string, string>>
  /** Without its question mark. */
  readonly query: string
}

const patterns = endpointNames
  .filter(hasWeather)
  .map(name => ({ name, parts: endpoints[name].path.split('/') }))

/** The path in its parts; undefined where no endpoint with weather has it. */
export const weatherPathOf = (path: string): WeatherPath | undefined => {
  const [way = '', ...queries] = path.split('?')
  if (!way.startsWith(`${apiPrefix}/`)) return undefined
  const given = way.slice(apiPrefix.length).split('/')
  const endpoint = patterns.find(
    ({ parts }) =>
      parts.length === given.length && parts.every((part, i) => part.startsWith(':') || part === given[i]),
  )
  if (!endpoint) return undefined
  const params: Record<string, string> = {}
  for (const [i, name] of endpoint.parts.entries()) {
    if (!name.startsWith(':')) continue
    const value = decoded(given[i] ?? '')
    // Empty, or no text at all: refused by the router.
    if (value === undefined || value === '') return undefined
    params[name.slice(1)] = value
  }
  return { endpoint: endpoint.name, params, query: queries.join('?') }
}

const decoded = (part: string): string | undefined => {
  if (!part.includes('%')) return part
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}
