// Which endpoint a path is: five of them, by their first word and how many words follow. Knows names and no answers.

import { quoted } from '../outside-text.ts'
import { badRequest, notFound, type Problem } from './problem.ts'
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
    const route = path.includes('%') ? routeOfEncoded(path) : routeOfPlain(path)
    if (route) return route
  } catch {
    return other(badRequest(`the path is ${quoted(path)}; allowed: percent-encoded UTF-8`))
  }
  return other(notFound(`there is nothing at ${quoted(path)}; ${endpoints}`))
}

const prefix = '/api/v1/'

// Nearly every path is plain, and cut where its slashes are.
const routeOfPlain = (path: string): Route | undefined => {
  if (!path.startsWith(prefix)) return undefined
  const nameEnds = path.indexOf('/', prefix.length)
  if (nameEnds === -1) return routeTo(path.slice(prefix.length))
  const firstEnds = path.indexOf('/', nameEnds + 1)
  if (firstEnds === -1) return undefined
  const name = path.slice(prefix.length, nameEnds)
  const first = path.slice(nameEnds + 1, firstEnds)
  const secondEnds = path.indexOf('/', firstEnds + 1)
  if (secondEnds === -1) return routeTo(name, first, path.slice(firstEnds + 1))
  const third = path.slice(secondEnds + 1)
  return third.includes('/') ? undefined : routeTo(name, first, path.slice(firstEnds + 1, secondEnds), third)
}

// An encoded word may hold a slash, so words are told apart first. @throws URIError for what is no UTF-8
const routeOfEncoded = (path: string): Route | undefined => {
  const [root, api, version, name, first, second, third, ...more] = path.split('/').map(decodeURIComponent)
  if (root !== '' || api !== 'api' || version !== 'v1' || more.length > 0) return undefined
  return routeTo(name, first, second, third)
}

// A word that is empty names nothing.
const routeTo = (name?: string, first?: string, second?: string, third?: string): Route | undefined => {
  if (first === undefined) return name === 'locations' ? { endpoint: name, first: '', second: '' } : undefined
  if (!first || !second) return undefined
  if (third !== undefined)
    return name === 'weather' && first === 'coords' && third
      ? { endpoint: 'coords', first: second, second: third }
      : undefined
  if (name === 'weather' || name === 'forecast') return { endpoint: name, first, second }
  return name === 'locations' ? { endpoint: 'location', first, second } : undefined
}

const pathOf = (url: string): string => {
  const end = url.indexOf('?')
  const path = end === -1 ? url : url.slice(0, end)
  return path.startsWith('/') ? path : path.replace(/^https?:\/\/[^/]*/i, '')
}

const other = (problem: Problem): Route => ({ endpoint: 'other', problem })

const endpoints =
  'the endpoints are /api/v1/weather/{type}/{id}, /weather/coords/{lat}/{lng}, /forecast/{type}/{id}, /locations and /locations/{type}/{id}'
