// Hides API keys in text, plain and percent-encoded, by one pattern for all: a spelling forgotten in one of many is a key in the log.

/** Every key begins as one of these, in any letter case here. */
const prefixes = ['svc_live_', 'svc_test_'] as const

// Without any of these there is no key, which is cheaper to find out: the midst of a prefix, or an escape of a letter, a
// digit or `_`. No escape of Bengali is one.
const mayHold = /_[lLtT]|%[3-7]/

const percent = (character: string): string => `%${character.charCodeAt(0).toString(16)}`
const letterOf = (character: string): string =>
  `(?:${character}|${percent(character)}|${percent(character.toUpperCase())})`

// A key's secret is base62; what is no delimiter is hidden with it, so that a key which was mangled is hidden as well. A sentence
// about keys has only the prefix.
const sign = '(?:[\\w.+~-]|%(?:3\\d|[4-7][0-9a-f]))'
const beginnings = prefixes.map(prefix => `(${[...prefix].map(letterOf).join('')})`).join('|')
const keys = new RegExp(`(?:${beginnings})(?=[+.~_-]*[0-9a-z%])${sign}+`, 'gi')

/** The text with `svc_live_…` or `svc_test_…` for every API key and every beginning of one; the same text if it has none. */
export const withoutKeys = (text: string): string =>
  mayHold.test(text)
    ? text.replaceAll(keys, (_, live?: string) => `${prefixes[live === undefined ? 1 : 0]}…`)
    : text

/** Whether a text holds an API key or the beginning of one. */
export const holdsKey = (text: string): boolean => withoutKeys(text) !== text

/** As `withoutKeys`, for UTF-8 that should have no keys any more: a net for each line of the log, at the cost of nanoseconds. */
export const withoutPlainKeys = (bytes: Buffer): Buffer => {
  if (!bytes.includes('_live_') && !bytes.includes('_test_')) return bytes
  const text = bytes.toString()
  const safe = withoutKeys(text)
  return safe === text ? bytes : Buffer.from(safe)
}
