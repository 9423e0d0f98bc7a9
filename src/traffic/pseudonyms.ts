// Names for API keys: the same key has the same name within one reading, and nothing leads back, for the salt is random and
// stands nowhere. No key passes this file, however it is spelled and wherever in a path it stands.

import { createHmac, randomBytes } from 'node:crypto'
import { holdsKey, withoutKeys } from '../key-redaction.ts'
import type { TrafficRequest } from './traffic-request.ts'

/** The pseudonym of a key or of the id of one. */
export type Pseudonyms = (secret: string) => string

const mostKept = 100_000
const digits = 12

export const createPseudonyms = (salt: Buffer = randomBytes(32)): Pseudonyms => {
  let kept = new Map<string, string>()
  return secret => {
    const before = kept.get(secret)
    if (before !== undefined) return before
    const name = `anon_${createHmac('sha256', salt).update(secret).digest('hex').slice(0, digits)}`
    if (kept.size >= mostKept) kept = new Map()
    kept.set(secret, name)
    return name
  }
}

/** The same request with pseudonyms in place of API keys; a key in its path is its key where it has no other. */
export const withPseudonyms = (request: TrafficRequest, nameOf: Pseudonyms): TrafficRequest => {
  const { path, key, accepts, cell, tier } = request
  if (!holdsKey(`${key ?? ''} ${accepts ?? ''} ${cell ?? ''} ${tier ?? ''} ${path}`)) return request
  const { accepts: _a, cell: _c, tier: _t, ...rest } = request
  const found: string[] = []
  const cleaned = path.replaceAll(/[^/?&=;#]+/g, part => {
    if (!holdsKey(part)) return part
    found.push(nameOf(unescaped(part)))
    return found.at(-1) as string
  })
  const keyName = key === undefined ? found[0] : holdsKey(key) ? nameOf(key) : key
  return {
    ...rest,
    // A key whose spelling has one of the signs above in it.
    path: withoutKeys(cleaned).replaceAll('svc_live_…', 'hidden'),
    ...(keyName === undefined ? {} : { key: keyName }),
    ...(accepts === undefined || holdsKey(accepts) ? {} : { accepts }),
    ...(cell === undefined || holdsKey(cell) ? {} : { cell }),
    ...(tier === undefined || holdsKey(tier) ? {} : { tier }),
  }
}

const secretName = /pass|pwd|secret|token|key|auth|credential|signature|session|jwt|^sig$/i

/** The same request with pseudonyms in place of the values of parameters that are named like secrets: keys of other APIs. */
export const withoutSecretParameters = (request: TrafficRequest, nameOf: Pseudonyms): TrafficRequest => {
  const { path, key } = request
  const query = path.indexOf('?')
  if (query < 0 || !secretName.test(path.slice(query))) return request
  let found: string | undefined
  // From sign to sign, where no name begins twice: a pattern that looks for a name anywhere looks at a long one again and again.
  const cleaned = path.slice(query).replaceAll(/[?&;][^&;]*/g, part => {
    const equals = part.indexOf('=')
    const [name, value] = [part.slice(1, equals), part.slice(equals + 1)]
    if (equals < 0 || value === '' || !secretName.test(unescaped(name || value))) return part
    found ??= nameOf(unescaped(value))
    return `${part.slice(0, equals + 1)}${nameOf(unescaped(value))}`
  })
  const keyName = key ?? found
  return {
    ...request,
    path: path.slice(0, query) + cleaned,
    ...(keyName === undefined ? {} : { key: keyName }),
  }
}

// As often as a key was encoded, up to a bound.
const unescaped = (part: string): string => {
  let text = part
  for (let i = 0; i < 5 && text.includes('%'); i++)
    try {
      text = decodeURIComponent(text)
    } catch {
      return text
    }
  return text
}
