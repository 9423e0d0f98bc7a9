// The rules that hold for every response of the API: a status of the contract, JSON, the rate-limit headers, an id, and
// nothing of the request in its headers. Checks one response alone; the targets decide which response is right.

import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { type Finding, finding } from '../finding.ts'
import type { Answer } from './response-reader.ts'

/** A marker in generated requests that must not come back in a response header. */
export const marker = 'zq7mark'

const statuses: ReadonlySet<number> = new Set([200, 304, 308, 400, 401, 403, 404, 405, 429, 500])
// A response without a body: what the client has already, or what leads to the reference.
const bare: ReadonlySet<number> = new Set([304, 308])
const jsonType = 'application/json; charset=utf-8'
const maxHeadBytes = 8 * 1024
const longestError = 1_000
const daySeconds = 86_400
const aMinute = 60
// The only headers that may repeat the request: a valid request id, and the query of a list, percent-encoded.
const mayEcho: ReadonlySet<string> = new Set(['x-request-id', 'link'])

export const headerOf = ({ headers }: Answer, wanted: string): string | undefined =>
  headers.find(([name]) => name === wanted)?.[1]

export type Body = Readonly<Record<string, unknown>>

/** The body as JSON; undefined when it is empty or not JSON. */
export const jsonOf = (answer: Answer): Body | undefined => {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(decoded(answer)))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Body) : undefined
  } catch {
    return undefined
  }
}

const decoded = (answer: Answer): Uint8Array => {
  const coding = headerOf(answer, 'content-encoding')
  if (coding === 'gzip') return gunzipSync(answer.body, { maxOutputLength: 2 ** 24 })
  return coding === 'br' ? brotliDecompressSync(answer.body, { maxOutputLength: 2 ** 24 }) : answer.body
}

/** @param hasBody false for responses to HEAD */
export const brokenRules = (answer: Answer, hasBody = true): Finding[] => [
  ...statusRules(answer),
  ...limitRules(answer),
  ...headerRules(answer),
  ...(hasBody && !bare.has(answer.status) ? bodyRules(answer) : []),
]

/** The rules for a response whose headers are not known: its status and its body. */
export const brokenContent = (answer: Answer): Finding[] =>
  statuses.has(answer.status) ? (bare.has(answer.status) ? [] : bodyRules(answer)) : statusRules(answer)

/** Whether the error says that something took too long; a busy machine may be the reason. */
export const isLate = ({ status, body }: Answer): boolean => status >= 400 && body.includes('in time')

const statusRules = (answer: Answer): Finding[] => {
  const { status } = answer
  if (!statuses.has(status)) return [finding('a status that the contract does not have', String(status))]
  if (
    status === 308 &&
    !/^(?:(?:\.\.\/)?docs|api\/v1\/openapi\.json)$/.test(headerOf(answer, 'location') ?? '')
  )
    return [finding('308 to elsewhere', String(headerOf(answer, 'location')))]
  if (status === 405 && headerOf(answer, 'allow') !== 'GET, HEAD')
    return [finding('405 without the allowed methods', String(headerOf(answer, 'allow')))]
  if (status === 401 && !headerOf(answer, 'www-authenticate')?.startsWith('ApiKey '))
    return [finding('401 without a challenge', String(headerOf(answer, 'www-authenticate')))]
  if ((status === 429 || status === 500) && !/^[1-9]\d*$/.test(headerOf(answer, 'retry-after') ?? ''))
    return [finding(`${status} without retry-after`, String(headerOf(answer, 'retry-after')))]
  return []
}

const limitRules = (answer: Answer): Finding[] => {
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map(name =>
    headerOf(answer, `x-ratelimit-${name}`),
  )
  const wrong = (what: string) => finding('rate-limit headers', `${what}: ${limit}, ${remaining}, ${reset}`)
  if (![limit, remaining, reset].every(value => /^\d+$/.test(value ?? '')))
    return [wrong('no whole numbers from 0 on')]
  if (Number(remaining) > Number(limit)) return [wrong('more remains than the limit')]
  const left = Number(reset) - Date.now() / 1000
  if (left < -aMinute || left > daySeconds + aMinute) return [wrong('the reset is not the next midnight')]
  if (answer.status === 401 && (limit !== '0' || remaining !== '0')) return [wrong('401 with a quota')]
  return []
}

const headerRules = (answer: Answer): Finding[] => {
  const found: Finding[] = []
  if (answer.headBytes > maxHeadBytes)
    found.push(finding('a head of more than 8 KiB', `${answer.headBytes} bytes`))
  const type = headerOf(answer, 'content-type')
  if (type !== (bare.has(answer.status) ? undefined : jsonType))
    found.push(finding('content-type', String(type)))
  // Every response is made for its instant, so `age` would be wrong.
  if (headerOf(answer, 'age') !== undefined) found.push(finding('an age', String(headerOf(answer, 'age'))))
  if (!/^[A-Za-z0-9._:/+=@-]{1,128}$/.test(headerOf(answer, 'x-request-id') ?? ''))
    found.push(finding('x-request-id', String(headerOf(answer, 'x-request-id'))))
  const echoing = answer.headers.find(
    ([name, value]) => !mayEcho.has(name) && (name + value).includes(marker),
  )
  if (echoing) found.push(finding('a header holds bytes of the request', echoing.join(': ')))
  return found
}

const bodyRules = (answer: Answer): Finding[] => {
  const body = jsonOf(answer)
  if (!body) return [finding('a body that is not one JSON object', answer.body.toString('latin1'))]
  if (answer.status === 200) return []
  const { error, code } = body
  if (typeof error !== 'string' || error === '')
    return [finding('a failure without error', JSON.stringify(body))]
  if (typeof code !== 'string' || !/^[a-z][a-z0-9_]+$/.test(code))
    return [finding('a failure without code', JSON.stringify(body))]
  if (error.length > longestError) return [finding('an error that is too long', error)]
  if (/\p{Cc}/u.test(error) || !error.isWellFormed())
    return [finding('an error with control characters', error)]
  return []
}
