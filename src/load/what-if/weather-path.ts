// Which requests reach the endpoints with weather, by method, path and key: what the API's router and its admission do with
// them before the cache is read. All else has no weather, and changes nothing in the cache.

import type { Endpoint } from '../../edge/endpoint.ts'
import { apiPrefix } from '../../edge/endpoint.ts'

/** A path of an endpoint with weather, in its parts. */
export type WeatherPath = {
  /** The number of the endpoint, in the order of weather-endpoints.ts. */
  readonly endpoint: number
  /** Decoded. */
  readonly params: Readonly<Record<string, string>>
  /** Without its question mark. */
  readonly query: string
}

/** The path in its parts; undefined where no endpoint with weather has it. @param paths of the endpoints, as Fastify writes them */
export const weatherPathOf = (path: string, paths: readonly Endpoint['path'][]): WeatherPath | undefined => {
  const [way = '', ...queries] = path.split('?')
  if (!way.startsWith(`${apiPrefix}/`)) return undefined
  const given = way.slice(apiPrefix.length).split('/')
  const endpoint = paths.findIndex(pattern => {
    const parts = pattern.split('/')
    return (
      parts.length === given.length && parts.every((part, i) => part.startsWith(':') || part === given[i])
    )
  })
  const names = paths[endpoint]?.split('/')
  if (!names) return undefined
  const params: Record<string, string> = {}
  for (const [i, name] of names.entries()) {
    if (!name.startsWith(':')) continue
    const value = decoded(given[i] ?? '')
    // Empty, or no text at all: refused by the router.
    if (value === undefined || value === '') return undefined
    params[name.slice(1)] = value
  }
  return { endpoint, params, query: queries.join('?') }
}

const decoded = (part: string): string | undefined => {
  if (!part.includes('%')) return part
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}
