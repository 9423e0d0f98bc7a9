// The rules that hold for every response of the API: a status of the contract, JSON, the rate-limit headers, an id, and
// nothing of the request in its headers. Checks one response alone; the targets decide which response is right.

import { demand } from '../fault.ts'
import { marker } from './request-text.ts'
import type { Answer } from './response-reader.ts'
import { decoded } from './response-reader.ts'

const statuses: ReadonlySet<number> = new Set([200, 304, 308, 400, 401, 403, 404, 405, 429, 500])
// A response without a body: what the client has already, or what leads to the reference.
const bare: ReadonlySet<number> = new Set([304, 308])
const jsonType = 'application/json; charset=utf-8'
const maxHeadBytes = 8 * 1024
const longestError = 1_000
const daySeconds = 86_400
/** Dhaka is six hours ahead of UTC all year. */
const dhakaSeconds = 6 * 3_600
const aMinute = 60
// The only headers that may repeat the request: a valid request id, and the query of a list, percent-encoded.
const mayEcho: ReadonlySet<string> = new Set(['x-request-id', 'link'])

export type Body = Readonly<Record<string, unknown>>

/** The body as JSON, of many places a list; undefined when it is empty or not JSON. */
export const jsonOf = ({ headers, body }: Answer): Body | undefined => {
  try {
    const bytes = decoded(body, headers.get('content-encoding'))
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return typeof value === 'object' && value !== null ? (value as Body) : undefined
  } catch {
    return undefined
  }
}

/** Whether the error says that something took too long; a busy machine may be the reason. */
export const isLate = ({ status, body }: Answer): boolean => status >= 400 && body.includes('in time')

/** @param hasBody false for responses to HEAD @throws Fault */
export const checkAnswer = (answer: Answer, hasBody = true): void => {
  checkStatus(answer)
  checkLimits(answer)
  checkHeaders(answer)
  if (hasBody && !bare.has(answer.status)) checkBody(answer)
}

/** The rules for a response whose headers are not known. @throws Fault */
export const checkContent = (answer: Answer): void => {
  demand(statuses.has(answer.status), 'a status that the contract does not have', answer.status)
  if (!bare.has(answer.status)) checkBody(answer)
}

const checkStatus = ({ status, headers }: Answer): void => {
  demand(statuses.has(status), 'a status that the contract does not have', status)
  const have = (of: readonly number[], name: string, form: RegExp): void =>
    demand(
      !of.includes(status) || form.test(headers.get(name) ?? ''),
      `${status} with another ${name}`,
      headers.get(name),
    )
  have([308], 'location', /^(?:(?:\.\.\/)?docs|api\/v1\/openapi\.json)$/)
  have([405], 'allow', /^GET, HEAD$/)
  have([401], 'www-authenticate', /^ApiKey /)
  have([429, 500], 'retry-after', /^[1-9]\d*$/)
}

const checkLimits = ({ status, headers }: Answer): void => {
  const given = ['limit', 'remaining', 'reset'].map(name => headers.get(`x-ratelimit-${name}`))
  const [limit = 0, remaining = 0, reset = 0] = given.map(Number)
  const holds = (is: boolean, what: string): void =>
    demand(is, 'rate-limit headers', `${what}: ${given.join(', ')}`)
  holds(
    given.every(value => /^\d+$/.test(value ?? '')),
    'no whole numbers from 0 on',
  )
  holds(remaining <= limit, 'more remains than the limit')
  const left = reset - Date.now() / 1000
  const isMidnight = (reset + dhakaSeconds) % daySeconds === 0
  const isNext = left >= -aMinute && left <= daySeconds + aMinute
  holds(isMidnight && isNext, 'the reset is not the next midnight')
  holds(status !== 401 || (limit === 0 && remaining === 0), '401 with a quota')
}

const checkHeaders = ({ status, headers, headBytes }: Answer): void => {
  demand(headBytes <= maxHeadBytes, 'a head of more than 8 KiB', `${headBytes} bytes`)
  const type = headers.get('content-type')
  demand(type === (bare.has(status) ? undefined : jsonType), 'content-type', type)
  // Every response is made for its instant, so `age` would be wrong.
  demand(!headers.has('age'), 'an age', headers.get('age'))
  const id = headers.get('x-request-id') ?? ''
  demand(/^[A-Za-z0-9._:/+=@-]{1,128}$/.test(id), 'x-request-id', id)
  for (const [name, value] of headers)
    demand(
      mayEcho.has(name) || !(name + value).includes(marker),
      'a header holds bytes of the request',
      name + value,
    )
}

const checkBody = (answer: Answer): void => {
  const body = jsonOf(answer)
  const isWhole = body !== undefined && (answer.status === 200 || !Array.isArray(body))
  demand(isWhole, 'a body that is not one JSON object', answer.body.toString('latin1'))
  if (answer.status === 200) return
  const { error, code, doc_url: docUrl } = body
  demand(typeof error === 'string' && error !== '', 'a failure without error', JSON.stringify(body))
  const isCode = typeof code === 'string' && /^[a-z][a-z0-9_]+$/.test(code)
  demand(isCode, 'a failure without code', JSON.stringify(body))
  demand(docUrl === `/docs#error-${code}`, 'a failure that leads nowhere', JSON.stringify(body))
  demand(error.length <= longestError, 'an error that is too long', error)
  demand(!/\p{Cc}/u.test(error) && error.isWellFormed(), 'an error with control characters', error)
}
