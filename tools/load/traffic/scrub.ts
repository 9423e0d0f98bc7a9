// Removes from requests what others should not see: key ids get new pseudonyms, and parameters, keys or responses are left out.

import { type Pseudonyms, unescaped, withoutSecrets, withPseudonyms } from './pseudonyms.ts'
import { known } from './request-line.ts'
import type { TrafficRequest } from './traffic-request.ts'

export type Scrubbing = {
  /** Replaces keys, key ids and secret-looking values, also in our own files. */
  readonly scrub?: boolean
  readonly withoutParameter?: readonly string[]
  readonly withoutKeys?: boolean
  /** Without status, outcome, tier, cell, bytes and ms. */
  readonly withoutAnswers?: boolean
  /** The new instant of the first request; all others move by as much. */
  readonly start?: number
}

/** Undefined where nothing has to be scrubbed. @param nameOf the new pseudonyms of keys */
export const createScrub = (
  { scrub, withoutParameter = [], withoutKeys, withoutAnswers, start }: Scrubbing,
  nameOf: Pseudonyms,
): ((request: TrafficRequest) => TrafficRequest) | undefined => {
  const isMoved = start !== undefined
  if (!scrub && withoutParameter.length === 0 && !withoutKeys && !withoutAnswers && !isMoved) return undefined
  const parameters = new Set(withoutParameter)
  let moved: number | undefined
  return request => {
    const cleaned = scrub ? withPseudonyms(withoutSecrets(request, nameOf), nameOf) : request
    const { at, method, path, key, accepts, conditional, ...answer } = cleaned
    moved ??= start === undefined ? 0 : start - at
    return known({
      at: Math.max(0, at + moved),
      method,
      path: withoutParameters(path, parameters),
      key: key === undefined || withoutKeys ? undefined : scrub ? nameOf(key) : key,
      accepts,
      conditional,
      ...(withoutAnswers ? {} : answer),
    })
  }
}

const withoutParameters = (path: string, parameters: ReadonlySet<string>): string => {
  const query = path.indexOf('?')
  if (query < 0 || parameters.size === 0) return path
  const kept = parameters.has('*')
    ? []
    : path
        .slice(query + 1)
        .split('&')
        .filter(pair => !parameters.has(unescaped(pair.split('=', 1)[0] ?? '')))
  return path.slice(0, query) + (kept.length === 0 ? '' : `?${kept.join('&')}`)
}
