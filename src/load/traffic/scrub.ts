// Takes out of requests what others should not see: ids of keys get new pseudonyms, and query parameters, keys, cells or what
// was answered are left out as wanted.

import { type Pseudonyms, withoutSecrets, withPseudonyms } from './pseudonyms.ts'
import type { TrafficRequest } from './traffic-request.ts'

export type Scrubbing = {
  /** Keys and their ids get new names, and so does what looks secret, also in our own files. */
  readonly renamesKeys: boolean
  /** Names of query parameters that are left out; `all` leaves out the query. */
  readonly parameters: ReadonlySet<string> | 'all'
  readonly withoutKeys: boolean
  /** Without status, outcome, tier, cell, bytes and ms. */
  readonly withoutAnswers: boolean
  /** The first instant becomes this one, and the others keep their distance. */
  readonly start?: number | undefined
}

/** Scrubs one request after the other; `nameOf` gives the new names of keys. */
export const createScrub = (
  { renamesKeys, parameters, withoutKeys, withoutAnswers, start }: Scrubbing,
  nameOf: Pseudonyms,
): ((request: TrafficRequest) => TrafficRequest) => {
  let moved: number | undefined
  return request => {
    const cleaned = renamesKeys ? withPseudonyms(withoutSecrets(request, nameOf), nameOf) : request
    const { at, method, path, key, accepts, conditional, ...answer } = cleaned
    moved ??= start === undefined ? 0 : start - at
    return {
      at: Math.max(0, at + moved),
      method,
      path: withoutParameters(path, parameters),
      ...(key === undefined || withoutKeys ? {} : { key: renamesKeys ? nameOf(key) : key }),
      ...(accepts === undefined ? {} : { accepts }),
      ...(conditional === undefined ? {} : { conditional }),
      ...(withoutAnswers ? {} : answer),
    }
  }
}

const withoutParameters = (path: string, parameters: ReadonlySet<string> | 'all'): string => {
  const query = path.indexOf('?')
  if (query < 0 || (parameters !== 'all' && parameters.size === 0)) return path
  const pathname = path.slice(0, query)
  if (parameters === 'all') return pathname
  const kept = path
    .slice(query + 1)
    .split('&')
    .filter(pair => !parameters.has(decoded(pair.split('=', 1)[0] ?? '')))
  return kept.length === 0 ? pathname : `${pathname}?${kept.join('&')}`
}

const decoded = (name: string): string => {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
