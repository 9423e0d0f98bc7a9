// The path and query that the router looks up, of a URL in any form that HTTP allows. Queries are read by parameters.ts.

import type { IncomingMessage } from 'node:http'
import { apiPrefix } from '../common/endpoints.ts'
import { isHttp2 } from './connection/connection.ts'

// No URL is longer, so that a path parameter of any length reaches its endpoint.
export const maxUrlLength = 16 * 1024

/** Where people and tools look for the reference first, and where it is from there: a proxy may serve all of it under a path. */
export const referenceRedirects: ReadonlyMap<string, string> = new Map([
  ['/', 'docs'],
  ['/docs/', '../docs'],
  ['/openapi.json', `${apiPrefix.slice(1)}/openapi.json`],
])

// No route is there. A path with an empty segment names nothing either; the router would take it for a path parameter.
const nowhere = '//'

/** The path and query to look up; for a URL that has no path to look up, one that no route has. */
export const routableUrl = (url: string): string => {
  const relative = withoutOrigin(url)
  const path = withoutQuery(relative)
  if (!path.startsWith('/') || path.endsWith('/') || path.includes('//'))
    return referenceRedirects.has(path) ? relative : nowhere
  // The router takes a # for the end of the path.
  if (path.includes('#') || (path.includes('%') && !isDecodable(path))) return nowhere
  return relative
}

/** The same for a request of HTTP/1.1 or HTTP/2. Node's parser refuses a URL beyond ASCII in HTTP/1.1. */
export const routableUrlOf = (request: IncomingMessage): string => {
  const { url = '' } = request
  return isHttp2(request) && !isAscii(url) ? nowhere : routableUrl(url)
}

/** Whether a URL is of visible ASCII alone, as HTTP wants it. */
export const isAscii = (url: string): boolean => /^[\x21-\x7e]*$/.test(url)

/** A query is left as it came, for parameters.ts to read. */
export const unread = (query: string): string => query

/** The path of a URL in origin form or in absolute form. */
export const pathOf = (url: string): string => withoutQuery(withoutOrigin(url))

/** Whether a path is percent-encoded UTF-8. */
export const isDecodable = (path: string): boolean => {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

const withoutOrigin = (url: string): string =>
  url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '')

const withoutQuery = (url: string): string => {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}
