// The body of an error: its code and fields, which are those of the request, the key and its quota, and what its sentence names.

import { isDeepStrictEqual } from 'node:util'
import type { Answer } from '../history.ts'
import { costOf, endpointOf, type Facts, headerOf, isoOf, second } from './facts.ts'
import { codesOfRefusedKey } from './keys.ts'
import { isPaced, paceOf } from './pace.ts'
import { isListed, isOfWeather, partsOf, refusalOf } from './paths.ts'
import { catalogueFor } from './places.ts'
import { quotaSpans } from './quota-clock.ts'
import { exactly, fields, type Shape, that } from './shapes.ts'
import { codesOf } from './tables.ts'

const unforeseen = 'internal_error'
const store = 'store_unavailable'
export const failuresOfWeather = codesOf(500).filter(code => code !== unforeseen && code !== store)

export const problemOf =
  (path: string, codes: readonly string[], more: Readonly<Record<string, unknown>>): Shape =>
  value => {
    const { code } = value as { code?: string }
    if (code === undefined || !codes.includes(code))
      return `code is ${code}, and ${codes.join(' or ')} is right`
    const fixed = Object.entries(more).map(([name, wanted]) => [
      name,
      typeof wanted === 'function' ? (wanted as Shape) : exactly(wanted),
    ])
    return fields({
      error: that(text => isSentence(path, text, value as Said), 'sentence about that'),
      code: exactly(code),
      doc_url: exactly(`/docs#error-${code}`),
      ...Object.fromEntries(fixed),
    })(value)
  }

/** The error of a status: its code, and the fields beside it. */
export const errorOf = (facts: Facts, answer: Answer): Shape => {
  const { status, path } = answer
  const refusal = refusalOf(catalogueFor(facts, answer), answer)
  if (status === 401) return problemOf(path, codesOfRefusedKey(facts, answer), { parameter: 'x-api-key' })
  if (status === 403) return refusalOfEndpoint(facts, answer)
  if (status === 429) return refusalOfLimits(facts, answer)
  if (status === 500) return problemOf(path, codesOfFailure(facts, answer, !refusal && isOfWeather(path)), {})
  if (refusal?.status !== status) return () => `${refusal?.status ?? 200} is right`
  return problemOf(
    path,
    [refusal.code],
    refusal.parameter === undefined ? {} : { parameter: refusal.parameter },
  )
}

/** The codes that may be the reason of a failure: what says that Redis or the provider fails comes only where one did. */
const codesOfFailure = (facts: Facts, { gateway, sent, ...answer }: Answer, isWeather: boolean): string[] => {
  const isAway = facts.isUnsettled(gateway, sent, answer) || facts.stalledMs > shortStallMs
  const hadFault = facts.steps.some(
    ({ seq, step }) => seq < answer.seq && (step.do === 'provider' || step.do === 'provider-link'),
  )
  const codes = failuresOfWeather.filter(code => hadFault || !codesOfProvider.has(code))
  return [...(isAway ? [store] : []), ...(isWeather ? codes : [])]
}
// A reply of Redis that passes a link takes several turns of this process, and each may be that late.
const shortStallMs = 60
// A body can also be too old for a clock that was moved while it was on its way.
const codesOfProvider = new Set(
  ['failing', 'cut_off', 'refused', 'denied', 'too_much', 'overloaded', 'busy'].map(
    word => `provider_${word}`,
  ),
)

const endpoints = [
  ...['weather', 'forecast', 'coords', 'weather_places', 'forecast_places'],
  ...['locations', 'location'],
]

/** Its sentence names the endpoints that the key is bound to and the one that was requested, and no other. */
const refusalOfEndpoint =
  ({ schedule }: Facts, answer: Answer): Shape =>
  value => {
    const fault = problemOf(answer.path, ['key_endpoint_not_allowed'], {})(value)
    if (fault) return fault
    const { error } = value as { error: string }
    const named = new Set(error.match(/[a-z_]+/g)?.filter(word => endpoints.includes(word)))
    const right = new Set([...(schedule.bound?.[answer.key] ?? []), endpointOf(answer)])
    return isDeepStrictEqual(named, right)
      ? undefined
      : `error: it names ${[...named].join(', ')}, and ${[...right].join(', ')} is right`
  }

const refusalOfLimits = (facts: Facts, answer: Answer): Shape => {
  const { path } = answer
  if (isPaced(answer)) {
    // By the seconds until then that the header has, rounded up.
    const wait = Number(answer.headers['retry-after']) * second
    const isSoon = (value: unknown): boolean => {
      const instant = Date.parse(String(value))
      const isWithin = ([from, to]: readonly [number, number]): boolean =>
        instant >= from + (wait > second ? wait - second : 0) && instant <= to + wait
      return isoOf(instant) === value && quotaSpans(facts, answer).some(isWithin)
    }
    return problemOf(path, ['rate_limited'], {
      policy: 'second',
      limit: paceOf(answer),
      reset_at: that(isSoon, 'time after which it may be sent again'),
    })
  }
  const left = headerOf(answer, 'remaining')
  const isShort = isListed(answer) && left > 0
  return problemOf(path, [isShort ? 'quota_insufficient' : 'quota_exhausted'], {
    limit: headerOf(answer, 'limit'),
    reset_at: isoOf(headerOf(answer, 'reset') * second),
    ...(isListed(answer) && { remaining: left, cost: costOf(answer) }),
  })
}

type Said = Readonly<Record<'code' | 'parameter' | 'limit' | 'remaining' | 'cost', unknown>>

/** Whether it quotes what was received, and has the numbers of that error and no other. Its wording is free. */
const isSentence = (path: string, text: unknown, said: Said): boolean => {
  if (typeof text !== 'string' || text.split(' ').length < 3) return false
  const quoted = [...text.matchAll(/"([^"]*)"/g)].map(([, given]) => given)
  const numbers = text.replaceAll(/"[^"]*"|\/\S*/g, '').match(/\d+(?:\.\d+)?/g) ?? []
  return (
    isDeepStrictEqual(quoted, quotedOf(path, said)) &&
    isDeepStrictEqual(numbers.map(Number).toSorted(byValue), [...numbersOf(said)].toSorted(byValue))
  )
}
const byValue = (one: number, other: number): number => one - other

/** What was received: the value that is wrong. */
const quotedOf = (path: string, { code, parameter }: Said): (string | undefined)[] => {
  const { type, id, more, query } = partsOf(path)
  if (code === 'path_not_found') return [`/api/v1${path}`]
  const given: Record<string, string | undefined> = { id, lat: id, lng: more }
  const own = { ...given, type: type === '' ? query.get('type') : type, days: query.get('days') }
  const value = own[parameter as keyof typeof own]
  return typeof value === 'string' ? [value] : []
}

/** What is allowed, and what is left. */
const numbersOf = ({ code, parameter, limit, remaining, cost }: Said): number[] => {
  if (code === 'number_invalid') return [1, 7]
  if (code === 'point_out_of_bounds') return parameter === 'lat' ? [20, 27] : [87.5, 93]
  if (code !== 'quota_insufficient') return typeof limit === 'number' ? [limit] : []
  return [cost, remaining, limit].flatMap(each => (typeof each === 'number' ? each : []))
}
