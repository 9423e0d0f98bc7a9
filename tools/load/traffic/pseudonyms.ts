// Replaces API keys and other secrets by pseudonyms. Equal keys have equal pseudonyms within one reading; the salt is random and is
// not kept, so nothing leads back to a key.

import { createHmac, randomBytes } from 'node:crypto'
import { holdsKey } from 'abohawa/common/key-redaction.ts'
import { endpointOf } from './endpoint-of-path.ts'
import { known } from './request-line.ts'
import type { TrafficRequest } from './traffic-request.ts'

export type Pseudonyms = (secret: string) => string

const maxKept = 100_000
const digits = 12

export const createPseudonyms = (salt: Buffer = randomBytes(32)): Pseudonyms => {
  let kept = new Map<string, string>()
  return secret => {
    const before = kept.get(secret)
    if (before !== undefined) return before
    const name = `anon_${createHmac('sha256', salt).update(secret).digest('hex').slice(0, digits)}`
    if (kept.size >= maxKept) kept = new Map()
    kept.set(secret, name)
    return name
  }
}

/** Replaces API keys by pseudonyms; a key in the path becomes the key of a request without one. */
export const withPseudonyms = (request: TrafficRequest, nameOf: Pseudonyms): TrafficRequest => {
  const { path, key, accepts, cell, tier } = request
  if (!holdsKey(`${key ?? ''} ${accepts ?? ''} ${cell ?? ''} ${tier ?? ''} ${path}`)) return request
  const found: string[] = []
  const cleaned = path.replaceAll(/[^/?&=;#]+/g, part => {
    if (!holdsKey(part)) return part
    found.push(nameOf(unescaped(part)))
    return found.at(-1) as string
  })
  const withoutKey = (text: string | undefined) => (text && holdsKey(text) ? undefined : text)
  return known({
    ...request,
    path: cleaned,
    key: key === undefined ? found[0] : holdsKey(key) ? nameOf(key) : key,
    accepts: withoutKey(accepts),
    cell: withoutKey(cell),
    tier: withoutKey(tier),
  })
}

// Anywhere in the name of a parameter; and whole words that also occur within harmless ones.
const secretPart =
  /pass|pwd|secret|token|key|auth|credential|signature|sess|jwt|hmac|csrf|xsrf|cookie|appid|saml/
const secretWords = /\b(?:sid|sig|pin|otp|totp|mfa|tan|pw|nonce|ticket|bearer)\b/
// Used once, so they don't identify a client.
const ofOneUse = /^(?:.*[^a-z])?(?:pin|otp|totp|mfa|tan|nonce|code|saml[a-z]*)$/
// A cheap first check for these, plain or encoded.
const mayBeSecret =
  /pass|pwd|secret|token|key|auth|credential|sig|sess|jwt|hmac|csrf|cookie|app|saml|sid|pin|otp|mfa|tan|pw|nonce|ticket|bearer|code|%/i

/** As lower-case words: `userPin` and `user_pin` are `user pin`. */
const wordsOf = (name: string): string =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/[^A-Za-z0-9]+/g, ' ')
    .trim()
    .toLowerCase()

const isSecret = (words: string): boolean =>
  words === 'code' || secretPart.test(words.replaceAll(' ', '')) || secretWords.test(words)

/** Whether a text has a parameter that is named like a secret, such as a URL in a parameter. */
const holdsSecret = (text: string): boolean =>
  [...text.matchAll(/[?&;#~]([^?&;#~=]*)=/g)].some(([, name = '']) => isSecret(wordsOf(name)))

const mayBeRandom = /[\w%-]{20}/
const uuid = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/i

/** Whether a text has a long random part, as in links of webhooks, bots and invitations. */
const isRandom = (text: string): boolean =>
  !holdsKey(text) && (uuid.test(text) || (text.match(/[\w-]{20,}/g) ?? []).some(isRandomPart))

const isRandomPart = (part: string): boolean => {
  if (/[A-Za-z\d]{32}/.test(part)) return true
  const isMixed = /[a-z]/.test(part) && /[A-Z]/.test(part)
  return /\d/.test(part) && (isMixed || /(?=\d*[A-Za-z])[A-Za-z\d]{20}/.test(part))
}

/**
 * Replaces the values of parameters that are named like secrets by pseudonyms, in the query, the fragment and the path
 * (`;jsessionid=…`); outside this API also long random parts, whatever their name.
 */
export const withoutSecrets = (request: TrafficRequest, nameOf: Pseudonyms): TrafficRequest => {
  const { path, key } = request
  const begin = path.search(/[?;#%]/)
  const hidesRandom = mayBeRandom.test(path) && endpointOf(path) === 'other'
  if (!hidesRandom && (begin < 0 || !mayBeSecret.test(path.slice(begin)))) return request
  let found: string | undefined
  const cleanedPart = (part: string): string => {
    const equals = part.indexOf('=')
    const value = part.slice(equals + 1)
    if (equals < 0 || value === '') return part
    const words = wordsOf(unescaped(part.slice(1, equals) || value))
    const plain = unescaped(value)
    if (!isSecret(words) && !holdsSecret(plain) && !(hidesRandom && isRandom(plain))) return part
    const name = nameOf(plain)
    if (isSecret(words) && !ofOneUse.test(words)) found ??= name
    return `${part.slice(0, equals + 1)}${name}`
  }
  const end = path.search(/[?#]/)
  const [way, query] = end < 0 ? [path, ''] : [path.slice(0, end), path.slice(end)]
  const cleaned = way.replaceAll(/[^/]+/g, segment => {
    const [first = ''] = segment.split(';', 1)
    const plain = unescaped(first)
    // The separator before the name may be encoded too.
    const isHidden = (first === segment && holdsSecret(plain)) || (hidesRandom && isRandom(plain))
    return (isHidden ? nameOf(plain) : first) + segment.slice(first.length).replaceAll(/;[^;]*/g, cleanedPart)
  })
  // Matches from separator to separator, so that a long name is scanned once.
  const rest = query.replaceAll(/[?&;#][^&;#]*/g, cleanedPart)
  return known({ ...request, path: cleaned + rest, key: key ?? found })
}

/** Decodes repeatedly, up to a bound. */
export const unescaped = (part: string): string => {
  let text = part
  for (let i = 0; i < 5 && text.includes('%'); i++)
    try {
      text = decodeURIComponent(text)
    } catch {
      return text
    }
  return text
}
