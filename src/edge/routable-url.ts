// The URL that the router is given in place of a request's own. The router matches paths of valid percent-encoding alone;
// what else a client may send is told apart here, so that key and quota come before any refusal of a path.

// The root of the server, where nothing is. A path with an empty segment names nothing either; the router would take it
// for a path parameter.
const nowhere = '/'

/** The path and query to look up; for a URL that has no path to look up, the root. */
export const routableUrl = (url: string): string => {
  const relative = withoutOrigin(url)
  const path = withoutQuery(relative)
  if (!path.startsWith('/') || path.endsWith('/') || path.includes('//')) return nowhere
  // The router takes a # for the end of the path.
  if (path.includes('#') || (path.includes('%') && !isDecodable(path))) return nowhere
  return relative
}

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
  url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/]*/i, '')

const withoutQuery = (url: string): string => {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}
