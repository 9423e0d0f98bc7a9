// Every header that an answer may have, and what its value must be by what the checker knows. A header without a rule is a fault of the
// checker, and so is one that its rule has not where it stands. Rules of other promises look at more: where one does, it is named.

import type { Answer } from '../history.ts'
import { cacheFault } from './cache-status.ts'
import { limitsOf } from './counts.ts'
import { type Facts, headerOf, isUnchecked, second } from './facts.ts'
import { expiriesOf, tiersOf } from './keys.ts'
import { isPaced, paceOf, rateOf } from './pace.ts'
import { isListed, isOfWeather, isStatusPage, languageOf, partsOf } from './paths.ts'
import { isPause } from './pauses.ts'
import { type Catalogue, catalogueFor, pageOf } from './places.ts'
import { secondsUntil } from './quota-clock.ts'

type Seen = {
  readonly facts: Facts
  readonly answer: Answer
  readonly catalogue: Catalogue
  /** 200 and 304, which have the same headers but those of the body. */
  readonly isFound: boolean
  readonly isPage: boolean
  readonly isWeather: boolean
  /** Whether its key and quota were known; undefined where nobody can tell. */
  readonly isDecided: boolean | undefined
}
/** What is wrong with a value, undefined for nothing. */
type Check = (value: string | undefined) => string | undefined
/** The value, undefined for none, or a check. */
type Rule = (seen: Seen) => string | undefined | Check

const matching =
  (pattern: RegExp): Check =>
  value =>
    pattern.test(value ?? '') ? undefined : `it is not of the form ${pattern.source}`
const oneOf =
  (...wanted: readonly (string | undefined)[]): Check =>
  value =>
    wanted.includes(value) ? undefined : `${wanted.join(' or ')} is right`
const anything: Check = () => undefined
const whole = /^\d+$/
const within =
  (least: number, most: number): Check =>
  value => {
    const number = Number(value)
    const isWithin = whole.test(value ?? '') && number >= least && number <= most
    return isWithin ? undefined : `${least.toFixed(1)} to ${most.toFixed(1)} is right`
  }

const smallest = 1_024

const rules: Readonly<Record<string, Rule>> = {
  allow: ({ answer }) => (answer.status === 405 ? 'GET, HEAD' : undefined),
  // Of weather, promise 4.
  'cache-control': ({ answer: { status, path }, isPage, isWeather }) => {
    if (status >= 400) return 'no-store'
    if (isPage) return 'no-cache'
    if (isWeather) return matching(/^private, max-age=\d+$/)
    return path === '/key' ? 'private, no-store' : 'private, max-age=60'
  },
  'cache-status': ({ facts, answer, catalogue, isFound, isWeather }) =>
    isFound && isWeather ? value => cacheFault(facts, answer, catalogue, value) : undefined,
  // The client ends the connection of a HEAD.
  connection: seen => {
    if (seen.facts.schedule.protocol === 'http2') return undefined
    if (seen.answer.method === 'HEAD') return 'close'
    return isStopping(seen) ? oneOf('keep-alive', 'close') : 'keep-alive'
  },
  'content-encoding': ({ answer: { status, path, method, encoding, body } }) => {
    if (status !== 200 || encoding === undefined || path === '/key') return undefined
    if (method === 'HEAD') return oneOf(encoding, undefined)
    return Buffer.byteLength(body) >= smallest ? encoding : undefined
  },
  'content-language': ({ answer: { path }, isFound, isWeather }) =>
    isFound && isWeather ? languageOf(path) : undefined,
  'content-length': ({ answer: { status, method, bytes } }) => {
    if (status === 304) return undefined
    return method === 'HEAD' ? matching(/^[1-9]\d*$/) : String(bytes)
  },
  'content-location': ({ answer, catalogue, isFound }) =>
    isFound ? locationOf(catalogue, answer) : undefined,
  'content-type': ({ answer }) => (answer.status === 304 ? undefined : 'application/json; charset=utf-8'),
  date: ({ answer, facts }) => {
    const skew = facts.skewOf(answer)
    const [from, to] = [answer.sent.at + skew - second, answer.at + skew]
    return value => within(from, to)(String(Date.parse(value ?? '')))
  },
  // Promise 5. Both parts of weather have a tag.
  etag: ({ answer: { path }, isFound, isWeather }) => {
    if (!isFound || path === '/key') return undefined
    return matching(isWeather && !isListed({ path }) ? /^W\/"[\w-]{44}"$/ : /^W\/"[\w-]{22}"$/)
  },
  'keep-alive': ({ answer }) => (answer.headers.connection === 'keep-alive' ? 'timeout=75' : undefined),
  // Promise 3. A list may be without any weather.
  'last-modified': ({ answer, isFound, isWeather }) => {
    if (!isFound || !isWeather) return undefined
    const isBare = isListed(answer) && !/ttl=/.test(answer.headers['cache-status'] ?? '')
    return isBare ? undefined : matching(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)
  },
  link: ({ answer: { path }, catalogue, isFound }) =>
    isFound && path.startsWith('/locations?') ? linksOf(catalogue, path) : undefined,
  'ratelimit-policy': seen => {
    const { facts, answer, isDecided } = seen
    if (isDecided === false) return undefined
    // A key that is refused at an endpoint, or asks about itself, may have units that nobody knows then.
    const isOfKey = answer.status === 403 || answer.path === '/key'
    const isUnknown = isOfKey && facts.isUnsettled(answer.gateway, answer.sent, answer)
    const day = `"daily";q=${headerOf(answer, 'limit')};w=86400`
    const policies = ratesOf(seen).map(rate => (rate === undefined ? day : `${day}, "second";q=${rate};w=1`))
    return oneOf(...policies, ...(isDecided === undefined || isUnknown ? [undefined] : []))
  },
  ratelimit: seen => {
    const { answer, facts } = seen
    const policy = answer.headers['ratelimit-policy']
    if (policy === undefined) return undefined
    return value => {
      const form = /^"daily";r=(\d+);t=(\d+)(?:, "second";r=(\d+);t=([123]))?$/.exec(value ?? '')
      const [, left, day, ofSecond] = form ?? []
      if (!form || (ofSecond === undefined) === policy.includes('"second"')) return 'it is of another form'
      if (Number(left) !== headerOf(answer, 'remaining')) return `${headerOf(answer, 'remaining')} remain`
      if (Number(ofSecond ?? 0) > Math.max(...ratesOf(seen).map(rate => rate ?? 0)))
        return 'more than its rate'
      return untilReset(facts, answer)(day)
    }
  },
  'retry-after': ({ answer, facts }) => {
    if (answer.status !== 429 && answer.status !== 500) return undefined
    if (answer.status === 500)
      return value => (isPause(facts, answer, value ?? '') ? undefined : 'it is no pause after that')
    return isPaced(answer) ? within(1, longestWaitOf(facts, answer)) : untilReset(facts, answer)
  },
  vary: ({ answer: { path }, isFound, isPage }) => {
    if (!isFound || path === '/key') return undefined
    return isPage ? 'accept-encoding' : 'accept-encoding, x-api-key'
  },
  'www-authenticate': ({ answer }) => (answer.status === 401 ? 'ApiKey realm="abohawa"' : undefined),
  'x-content-type-options': ({ isPage }) => (isPage ? 'nosniff' : undefined),
  'x-key-expires': ({ answer, facts, isPage, isDecided }) => {
    if (isPage || answer.status === 401) return undefined
    return oneOf(...expiriesOf(facts, answer), ...(isDecided === true ? [] : [undefined]))
  },
  // Promise 19.
  'x-ratelimit-cost': ({ isPage }) => (isPage ? undefined : anything),
  // Promises 6 to 9 and 11; here what holds of each answer alone.
  'x-ratelimit-limit': ({ facts, answer, isPage, isDecided }) => {
    if (answer.status === 401 || isPage) return '0'
    // Without a good connection to the store, whose the key is may not be known.
    return oneOf(...limitsOf(facts, answer.key).map(String), ...(isDecided ? [] : ['0']))
  },
  'x-ratelimit-remaining': ({ answer, isDecided }) =>
    isDecided === false ? '0' : within(0, headerOf(answer, 'limit')),
  'x-ratelimit-reset': () => matching(/^\d{10}$/),
  'x-request-id': () => matching(/^[\w-]{20}$/),
}

/** What is wrong with the headers of an answer: the first that is missing, has another value, or has no rule. */
export const headerFault = (facts: Facts, answer: Answer): string | undefined => {
  const { status, path, headers } = answer
  const isPage = isStatusPage(answer)
  const seen: Seen = {
    ...{ facts, answer, isPage },
    catalogue: catalogueFor(facts, answer),
    isFound: status === 200 || status === 304,
    isWeather: isOfWeather(path),
    isDecided: isPage ? false : isDecidedFor(answer),
  }
  for (const [name, rule] of Object.entries(rules)) {
    const [value, wanted] = [headers[name], rule(seen)]
    const fault =
      typeof wanted === 'function'
        ? wanted(value)
        : value === wanted
          ? undefined
          : `${wanted ?? 'none'} is right`
    if (fault) return `${name} is ${value ?? 'missing'}: ${fault}`
  }
  const unknown = Object.keys(headers).find(name => !(name in rules))
  return unknown === undefined ? undefined : `no rule of the checker is about ${unknown}`
}

const isDecidedFor = (answer: Answer): boolean | undefined => {
  if (answer.status === 401) return false
  if (!isUnchecked(answer)) return true
  // An answer to HEAD does not say why it failed.
  return answer.method === 'HEAD' ? undefined : false
}

const isStopping = ({ facts: { lives }, answer: { gateway, run, seq } }: Seen): boolean =>
  lives.some(
    life => life.what === 'stopping' && life.gateway === gateway && life.run === run && life.seq < seq,
  )

/** How long it is until the quota begins again, in whole seconds. */
const untilReset = (facts: Facts, answer: Answer): Check => {
  const spans = secondsUntil(facts, answer, headerOf(answer, 'reset') * second)
  return value =>
    whole.test(value ?? '') && spans.some(([least, most]) => Number(value) >= least && Number(value) <= most)
      ? undefined
      : `${spans.map(([least, most]) => `${least} to ${most}`).join(' or ')} is right`
}

/** The most seconds until a token comes back; while Redis is away each gateway waits for as many tokens as there are gateways. */
const longestWaitOf = (facts: Facts, answer: Answer): number => {
  const { gateway, sent } = answer
  const gateways = facts.lives.filter(({ what }) => what === 'started').length
  const tokens = facts.isUnsettled(gateway, sent, answer) ? gateways : 1
  return Math.ceil(tokens / (paceOf(answer) ?? 1))
}

/** The requests a second that its key may have, by the tiers that it may have; undefined for no such limit. */
const ratesOf = ({ facts, answer }: Seen): (number | undefined)[] =>
  tiersOf(facts, answer).map(tier => rateOf(facts, tier))

/** The path with the id instead of a slug, and what differs from the defaults. */
const locationOf = (catalogue: Catalogue, { path }: Answer): string | undefined => {
  const { type, id, query, include } = partsOf(path)
  const place = catalogue.find(type, id)
  if (!place || place.id === id) return undefined
  const more = new URLSearchParams()
  if (languageOf(path) === 'en') more.set('lang', 'en')
  if ((query.get('days') ?? '7') !== '7') more.set('days', query.get('days') ?? '')
  if (include.includes('text')) more.set('include', 'text')
  return more.size > 0 ? `${place.id}?${more}` : place.id
}

/** A list leads to the pages beside it, relative to its own URL. */
const linksOf = (catalogue: Catalogue, path: string): string | undefined => {
  const { query } = partsOf(path)
  const total = catalogue.totalOf(query)
  const { limit, offset } = pageOf(query)
  const end = Math.min(offset, total)
  const beside = [
    ...(offset + limit < total ? [['next', offset + limit, limit] as const] : []),
    ...(end > 0 ? [['prev', Math.max(0, end - limit), Math.min(limit, end)] as const] : []),
  ]
  const links = beside.map(([rel, to, size]) => {
    const next = new URLSearchParams()
    for (const name of ['type', 'division_id', 'district_id', 'upazila_id', 'q']) {
      const value = query.get(name)
      if (value) next.set(name, value)
    }
    next.set('limit', String(size))
    next.set('offset', String(to))
    return `<?${next}>; rel="${rel}"`
  })
  return links.length > 0 ? links.join(', ') : undefined
}
