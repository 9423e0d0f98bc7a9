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
  try {
    const route = routeTo(wordsOf(path))
    if (route) return route
  } catch {
    return other(badRequest(`the path is ${quoted(path)}; allowed: percent-encoded UTF-8`))
  }
  return other(notFound(`there is nothing at ${quoted(path)}; ${endpoints}`))
}

const routeTo = ([name, first, second, third, ...more]: readonly string[]): Route | undefined => {
  if (more.length > 0) return undefined
  if (name === 'weather' && first === 'coords' && second && third)
    return { endpoint: 'coords', first: second, second: third }
  if (third !== undefined) return undefined
  if (name === 'locations' && first === undefined) return { endpoint: 'locations', first: '', second: '' }
  // A word that is empty names nothing.
  if (!first || !second) return undefined
  if (name === 'weather' || name === 'forecast') return { endpoint: name, first, second }
  return name === 'locations' ? { endpoint: 'location', first, second } : undefined
}

const prefix = '/api/v1/'

// The words behind the prefix; none for a path elsewhere. @throws URIError for what is not percent-encoded UTF-8
const wordsOf = (path: string): string[] => {
  if (!path.includes('%')) return path.startsWith(prefix) ? path.slice(prefix.length).split('/') : []
  const words = path.split('/').map(decodeURIComponent)
  return `${words.slice(0, 3).join('/')}/` === prefix ? words.slice(3) : []
}

const pathOf = (url: string): string => {
  const end = url.indexOf('?')
  const path = end === -1 ? url : url.slice(0, end)
  return path.startsWith('/') ? path : path.replace(/^https?:\/\/[^/]*/i, '')
}

const other = (problem: Problem): Route => ({ endpoint: 'other', problem })

const endpoints =
  'the endpoints are /api/v1/weather/{type}/{id}, /weather/coords/{lat}/{lng}, /forecast/{type}/{id}, /locations and /locations/{type}/{id}'
