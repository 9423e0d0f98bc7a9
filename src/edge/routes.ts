// Which endpoint a path is: five of them, by their first word and how many words follow. Knows names and no answers.

import { badRequest, notFound, type Problem, quoted } from './problem.ts'
import type { Representation } from './representation.ts'

/** Answers a GET or HEAD; the words are those of the path behind the endpoint's own, decoded. @throws Problem */
export type Answer = (url: string, first: string, second: string) => Representation | Promise<Representation>

export type EndpointName = 'weather' | 'coords' | 'forecast' | 'locations' | 'location'

export type Route =
  | { readonly endpoint: EndpointName; readonly first: string; readonly second: string }
  | { readonly endpoint: 'other'; readonly problem: Problem }

/** The route of a request's URL, of its path alone or with scheme and host. */
export const routeOf = (url: string): Route => {
  const path = pathOf(url)
  let words: string[]
  try {
    words = path.includes('%') ? path.split('/').map(decodeURIComponent) : path.split('/')
  } catch {
    return other(badRequest(`the path is ${quoted(path)}; allowed: percent-encoded UTF-8`))
  }
  const [root, api, version, name, first, second, third] = words
  if (root === '' && api === 'api' && version === 'v1') {
    const endpoint = endpointOf(name, words.length - 4, first)
    // A word that is empty names nothing.
    if (endpoint === 'coords' && second && third) return { endpoint, first: second, second: third }
    if (endpoint === 'locations') return { endpoint, first: '', second: '' }
    if (endpoint && endpoint !== 'coords' && first && second) return { endpoint, first, second }
  }
  return other(notFound(`there is nothing at ${quoted(path)}; ${endpoints}`))
}

const endpointOf = (
  name: string | undefined,
  behind: number,
  first: string | undefined,
): EndpointName | undefined => {
  if (name === 'weather') {
    if (behind === 2) return 'weather'
    return behind === 3 && first === 'coords' ? 'coords' : undefined
  }
  if (name === 'forecast') return behind === 2 ? 'forecast' : undefined
  if (name !== 'locations') return undefined
  if (behind === 0) return 'locations'
  return behind === 2 ? 'location' : undefined
}

const pathOf = (url: string): string => {
  const end = url.indexOf('?')
  const path = end === -1 ? url : url.slice(0, end)
  return path.startsWith('/') ? path : path.replace(/^https?:\/\/[^/]*/i, '')
}

const other = (problem: Problem): Route => ({ endpoint: 'other', problem })

const endpoints =
  'the endpoints are /api/v1/weather/{type}/{id}, /weather/coords/{lat}/{lng}, /forecast/{type}/{id}, /locations and /locations/{type}/{id}'
