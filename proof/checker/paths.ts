// What the path of a request asks for, and the error that it gets where it is wrong: its status, code and parameter.

import type { Answer } from '../history.ts'
import { statusPath } from '../steps.ts'

/** The parts of a path: those that it does not have are empty. */
export const partsOf = (path: string) => {
  const [, endpoint = '', type = '', id = '', more = ''] =
    /^\/(\w+)(?:\/(\w+)\/([^/?]+)(?:\/([^/?]+))?)?/.exec(path) ?? []
  const query = new URLSearchParams(path.split('?', 2)[1])
  const include = query.get('include')?.split(',') ?? []
  return { endpoint, type, id, more, query, include, language: query.get('lang') ?? 'bn' }
}

/** Whether a request is for the status page, which belongs to no key. */
export const isStatusPage = ({ path, method }: Pick<Answer, 'path' | 'method'>): boolean =>
  path === statusPath && method !== 'POST'

/** Whether a request is for a list of places. */
export const isListed = ({ path, method }: Pick<Answer, 'path' | 'method'>): boolean =>
  method !== 'POST' && /^\/(?:weather|forecast)\?(?:.*&)?places=/.test(path)

/** Whether a path is of weather, for one place or for many. */
export const isOfWeather = (path: string): boolean =>
  /^\/(?:weather|forecast)\//.test(path) || isListed({ path })

/** The language of an answer; undefined where it has none. */
export const languageOf = (path: string): string | undefined => {
  const { endpoint, include, language } = partsOf(path)
  return endpoint === 'weather' || include.includes('text') ? language : undefined
}

type Refusal = { readonly status: 400 | 404 | 405; readonly code: string; readonly parameter?: string }

const types = new Set(['division', 'district', 'upazila', 'union'])
const between = (value: number, least: number, most: number): boolean => value >= least && value <= most

/** The error of a request with a good key and enough quota; undefined for one that is right. */
export const refusalOf = (
  catalogue: { find(type: string, id: string): unknown },
  { path, method }: Pick<Answer, 'path' | 'method'>,
): Refusal | undefined => {
  if (method === 'POST') return { status: 405, code: 'method_not_allowed' }
  const { endpoint, type, id, more, query } = partsOf(path)
  if (endpoint === 'key' || isListed({ path })) return undefined
  const invalid = (code: string, parameter: string) => ({ status: 400, code, parameter }) as const
  if (endpoint === 'locations' && type === '')
    return types.has(query.get('type') ?? '') ? undefined : invalid('type_invalid', 'type')
  if (!['weather', 'forecast', 'locations'].includes(endpoint)) return { status: 404, code: 'path_not_found' }
  if (endpoint === 'weather' && type === 'coords') {
    if (!between(Number(id), 20, 27)) return invalid('point_out_of_bounds', 'lat')
    return between(Number(more), 87.5, 93) ? undefined : invalid('point_out_of_bounds', 'lng')
  }
  if (endpoint === 'forecast' && !between(Number(query.get('days') ?? 7), 1, 7))
    return invalid('number_invalid', 'days')
  if (!types.has(type)) return invalid('type_invalid', 'type')
  return catalogue.find(type, id) ? undefined : { status: 404, code: 'place_not_found', parameter: 'id' }
}
