// The restrictions and custom rates of a key, as people and other programs write them: checked, and joined with what the key has already.

import { isAddressRange, isWholeRange, wholeRange } from '../common/address-range.ts'
import { type EndpointName, endpointNames } from '../common/endpoints.ts'
import { InputError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'
import { isWebOrigin } from '../common/web-origin.ts'
import { longestRestrictions, maxRate, maxRestricted } from '../stores/records.ts'
import { type KeyRecord, type RateLimits, type Restrictions, rateKinds } from '../stores/store.ts'
import { longestBurstSeconds } from '../stores/token-bucket.ts'

/** The terms of a key. */
export type Terms = Pick<KeyRecord, 'restrictions' | 'rates'>

/** Terms to set: what is absent stays, null lifts a restriction or a rate. */
export type GivenTerms = {
  readonly restrictions?: Partial<Restrictions> | undefined
  readonly rates?: Partial<RateLimits> | undefined
}

type Kind = {
  readonly name: string
  readonly allowed: string
  accepts(value: string): boolean
  /** What to write instead of a value that is not accepted, where that is clear. */
  instead?(value: string): string | undefined
}

const kinds: Readonly<Record<keyof Restrictions, Kind>> = {
  origins: {
    name: 'the origin',
    allowed: 'an origin as browsers send it, such as https://app.example.org or https://*.example.org',
    accepts: value => value !== '*' && isWebOrigin(value),
    instead: value => {
      const { origin = '' } = URL.parse(value) ?? {}
      return isWebOrigin(origin) ? `write ${origin}, as browsers send it` : undefined
    },
  },
  addresses: {
    name: 'the address',
    allowed: 'an IP address or a CIDR range such as 203.0.113.0/24',
    accepts: isWholeRange,
    instead: value =>
      isAddressRange(value)
        ? `write ${wholeRange(value)} for the range, or ${value.split('/')[0]} for the one address`
        : undefined,
  },
  endpoints: {
    name: 'the endpoint',
    allowed: `one of ${endpointNames.join(', ')}`,
    accepts: value => endpointNames.includes(value as EndpointName),
  },
}

const restrictionKinds = Object.keys(kinds) as readonly (keyof Restrictions)[]

const unbound: Restrictions = { origins: null, addresses: null, endpoints: null }
const unlimited: RateLimits = { perSecond: null, burst: null, perMinute: null }
const noTerms: Terms = { restrictions: null, rates: null }

/** The terms of a key after a change, as far as any are given. @throws InputError */
export const termsIn = ({ restrictions, rates }: GivenTerms, before = noTerms): Partial<Terms> => ({
  ...(restrictions && {
    restrictions: restrictionsOf({ ...unbound, ...before.restrictions, ...restrictions }),
  }),
  ...(rates && { rates: ratesOf({ ...unlimited, ...before.rates, ...withBurst(rates) }) }),
})

const restrictionsOf = (given: Restrictions): Restrictions | null => {
  const checked: Restrictions = {
    origins: checkedList('origins', given.origins),
    addresses: checkedList('addresses', given.addresses),
    endpoints: checkedList('endpoints', given.endpoints),
  }
  const { length } = JSON.stringify(checked)
  if (length > longestRestrictions)
    throw new InputError(
      `the restrictions must have at most ${longestRestrictions} characters as JSON, got ${length}`,
    )
  return Object.values(checked).every(list => list === null) ? null : checked
}

const checkedList = (kind: keyof Restrictions, given: readonly string[] | null): readonly string[] | null => {
  if (given === null) return null
  const list = [...new Set(given.map(value => value.trim()))]
  if (list.length === 0 || list.length > maxRestricted)
    throw new InputError(`${kind} must have 1 to ${maxRestricted} entries, got ${list.length}`)
  const { name, allowed, accepts, instead } = kinds[kind]
  for (const value of list) {
    if (accepts(value)) continue
    const fix = instead?.(value)
    throw new InputError(
      `${name} must be ${allowed}, got ${quoted(value)}${fix === undefined ? '' : `; ${fix}`}`,
    )
  }
  return list
}

/** There is no burst without a limit by the second. */
const withBurst = (given: Partial<RateLimits>): Partial<RateLimits> =>
  given.perSecond === null ? { burst: null, ...given } : given

const ratesOf = (given: RateLimits): RateLimits | null => {
  const { perSecond, burst } = given
  if (burst !== null && perSecond === null) throw new InputError('burst requires per-second')
  if (burst !== null && perSecond !== null && burst > perSecond * longestBurstSeconds)
    throw new InputError(
      `burst must be at most ${longestBurstSeconds} times per-second, which is ${perSecond}, got ${burst}`,
    )
  return rateKinds.every(kind => given[kind] === null) ? null : given
}

/** A list as text, parted by commas or blanks; null for `none`. */
const listIn = (given: string): string[] | null =>
  given.trim() === 'none' ? null : given.split(/[\s,]+/).filter(value => value !== '')

/** A rate as text; null for `none`. @throws InputError */
const rateIn = (name: string, given: string): number | null => {
  if (given === 'none') return null
  const value = /^[1-9]\d{0,6}$/.test(given) ? Number(given) : maxRate + 1
  if (value > maxRate)
    throw new InputError(`${name} must be none or an integer from 1 to ${maxRate}, got ${quoted(given)}`)
  return value
}

/** Terms as texts, by the names that options have. */
export type TermTexts = Partial<Record<keyof Restrictions | keyof RateLimits, string | undefined>>

/** What options or columns say, each of which may be missing or empty and then says nothing. @throws InputError */
export const givenTermsIn = (texts: TermTexts): GivenTerms => {
  const lists = restrictionKinds.flatMap(kind =>
    texts[kind] ? [[kind, checkedList(kind, listIn(texts[kind]))]] : [],
  )
  const rates = rateKinds.flatMap(kind => {
    const name = kind.replace(/[A-Z]/, letter => `-${letter.toLowerCase()}`)
    return texts[kind] ? [[kind, rateIn(name, texts[kind])]] : []
  })
  return {
    ...(lists.length > 0 && { restrictions: Object.fromEntries(lists) }),
    ...(rates.length > 0 && { rates: Object.fromEntries(rates) }),
  }
}
