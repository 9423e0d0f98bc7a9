// The origins of web pages and apps, as browsers send them: how one is written in a list, and which a list means.

const pageless = ['file:', 'data:', 'javascript:', 'blob:', 'about:']
const form = /^(?:\*|[a-z][a-z0-9+.-]*:\/\/(?:\*\.)?[^/*A-Z"'\\\s]+)$/

/** Whether a text is an origin, one with a star for its first label, or the star for any. */
export const isWebOrigin = (value: string): boolean => {
  if (value === '*') return true
  if (!form.test(value)) return false
  // The star stands for a label, and not for all that is registered below a top-level domain.
  if (/:\/\/\*\.[^.]+$/.test(value) && !/\.localhost(?::\d+)?$/.test(value)) return false
  const one = value.replace('://*.', '://a.')
  const { protocol = '', host, origin } = URL.parse(one) ?? {}
  if (/^https?:$/.test(protocol)) return origin === one
  // Of an app or an extension. Other schemes of the web are no page's, and pages of files have the origin null.
  return origin === 'null' && !pageless.includes(protocol) && `${protocol}//${host}` === one
}

const label = /^[a-z0-9_-]{1,63}$/

/** Whether an origin is meant by one of those with a star for their first label. @param starred `https://*.host` */
export const createStarMatch = (starred: readonly string[]): ((origin: string) => boolean) => {
  const parts = starred.map(origin => origin.split('*', 2))
  return origin =>
    parts.some(
      ([before = '', after = '']) =>
        origin.startsWith(before) &&
        origin.endsWith(after) &&
        label.test(origin.slice(before.length, origin.length - after.length)),
    )
}

/** Whether an origin has a star for its first label. */
export const isStarred = (origin: string): boolean => origin.includes('://*.')
