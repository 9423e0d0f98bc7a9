// URLs without their secrets. Works on text, because URLs in messages are those that no parser understands: a password with an @, / or #
// in it. In doubt more is hidden.

const hidden = '***'

/** Text that is meant to be one URL, however wrong: `redis://me:***@host/0?password=***`. */
export const redactedUrl = (text: string): string => {
  const [scheme = ''] = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text) ?? []
  return scheme + withoutSecrets(text.slice(scheme.length))
}

/** The same for every URL in a sentence; each lasts until the next blank. */
export const redactedUrls = (sentence: string): string =>
  sentence.includes('://')
    ? sentence.replaceAll(
        // Only ASCII blanks: others, and invisible marks, may be a part of a password.
        /([a-z][a-z0-9+.-]{0,30}:\/\/)([^\t-\r ]*?)(["'`)]?[,;:.]?)(?![^\t-\r ])/gi,
        (_, scheme: string, rest: string, end: string) => scheme + withoutSecrets(rest) + end,
      )
    : sentence

// Names of parameters whose values are secrets, and names with an escape or a character beyond ASCII, which may be such a name. All
// that follows is hidden: a value with an & or # in it looks like several.
const secretParameter =
  /[?&;#][^=?&;#\s]{0,64}(?:pass|pwd|secret|token|key|auth|credential|signature|%|[^ -~])[^=?&;#\s]{0,64}=/i

/** @param rest of a URL, after its scheme */
const withoutSecrets = (rest: string): string => {
  const parameter = secretParameter.exec(rest)
  const end = parameter ? parameter.index + parameter[0].length : rest.length
  const at = rest.lastIndexOf('@')
  // An apparent parameter may be a part of the password, and the other way round.
  if (at >= end) return hidden
  const shown = rest.slice(at + 1, end) + (parameter ? hidden : '')
  if (!startsWithHost(shown)) return hidden
  return at === -1 ? shown : `${withoutPassword(rest.slice(0, at))}@${shown}`
}

// The last @ ends the password, so anything before it may belong to that, unless it looks like a plain name.
const withoutPassword = (account: string): string => {
  const [, user = ''] = /^([\w.~-]+):/.exec(account) ?? []
  return user !== '' && !/[/?#\\@\s]/.test(account) ? `${user}:${hidden}` : hidden
}

// A colon that no port follows, and signs that no host has, are those of a password whose host was forgotten.
const startsWithHost = (rest: string): boolean =>
  /^(?:\[[^\]]*\]|[\p{L}\p{M}\p{N}_.*-]*)(?::\d+)?(?:[/?#\s]|$)/u.test(rest)
