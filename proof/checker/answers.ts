// Promises 1 and 2: every request has an answer, and every answer is one of the contract: its status and headers here, its body in
// contract.ts.

import type { Answer } from '../history.ts'
import { partsOf, shapeFault } from './contract.ts'
import { type Facts, headerOf, isListed, isUnchecked, second, singlePathsOf } from './facts.ts'
import { isPaced } from './pace.ts'
import type { Rule } from './rule.ts'

export const answered: Rule = ({ answers, lives }, report) => {
  for (const answer of answers) {
    report.saw()
    if (answer.status !== 0) continue
    const hasEnded = lives.some(
      ({ gateway, run, what, seq }) =>
        gateway === answer.gateway &&
        run === answer.run &&
        (what === 'killed' || what === 'stopping') &&
        seq < answer.seq,
    )
    if (!hasEnded) report.broken(answer, answer.failure ?? 'no answer')
  }
}

const jsonType = 'application/json; charset=utf-8'
const statuses = new Set([200, 304, 400, 401, 403, 404, 405, 429, 500])

export const withinContract: Rule = (facts, report) => {
  for (const answer of facts.answers) {
    if (answer.status === 0) continue
    report.saw()
    const fault = faultOf(answer) ?? boundFault(facts, answer) ?? headerFault(facts, answer)
    if (fault) report.broken(answer, fault)
  }
}

const faultOf = (answer: Answer): string | undefined => {
  const { status, headers } = answer
  if (!statuses.has(status)) return 'a status that the contract does not have'
  const quota = (['limit', 'remaining', 'reset'] as const).map(name => headerOf(answer, name))
  if (!quota.every(value => Number.isInteger(value) && value >= 0))
    return `no whole numbers in the headers of the quota: ${quota}`
  const [limit = 0, remaining = 0] = quota
  if (remaining > limit) return `${remaining} remain of ${limit}`
  if (status === 401 && (limit !== 0 || remaining !== 0)) return '401 with a quota'
  if (status === 401 && !headers['www-authenticate']?.startsWith('ApiKey ')) return '401 without a challenge'
  if (!headers['x-request-id']) return 'no x-request-id'
  if (status === 304) return headers.etag ? undefined : '304 without a tag'
  if (headers['content-type'] !== jsonType) return `content-type is ${headers['content-type']}`
  return bodyFault(answer)
}

/** What a key is bound to comes behind the key and before its quota. */
const boundFault = ({ isBeyondBounds }: Facts, answer: Answer): string | undefined => {
  const { status, method, body } = answer
  if (!isBeyondBounds(answer)) return status === 403 ? 'its key may be used there' : undefined
  if (status !== 403) return status === 401 || isUnchecked(answer) ? undefined : 'its key is bound to others'
  return method === 'HEAD' || /"code":"key_endpoint_not_allowed"/.test(body)
    ? undefined
    : '403 for another reason'
}

const bodyFault = (answer: Answer): string | undefined => {
  const { status, path, method = 'GET' } = answer
  const right = method === 'POST' ? 405 : rightFor(path)
  if (method === 'HEAD') return answer.body === '' ? undefined : 'an answer to HEAD has a body'
  let body: Record<string, unknown>
  try {
    body = JSON.parse(answer.body)
  } catch {
    return 'its body is no JSON'
  }
  if (status === 200 && isListed(answer)) return listFault(body, singlePathsOf(answer))
  if (status === 200) return right === 200 ? shapeFault(body, path) : 'a wrong request has 200'
  if (typeof body.error !== 'string' || typeof body.code !== 'string') return 'an error without error or code'
  if (body.code === 'internal_error') return 'an unforeseen failure'
  const right429 = isPaced(answer) ? Number.isInteger(body.limit) : body.limit === headerOf(answer, 'limit')
  if (status === 429 && !(right429 && isInstant(body.reset_at))) return '429 without limit or reset_at'
  if ((status === 400 || status === 404 || status === 405) && right !== status)
    return `${right} is right here: ${body.code}`
  if (status === 500 && right !== 200 && !/store_unavailable/.test(body.code)) return `500 for ${path}`
  return undefined
}

/** Each place has the body of its own endpoint, or the error of a failure. */
const listFault = (body: unknown, paths: readonly string[]): string | undefined => {
  if (!Array.isArray(body)) return 'no list'
  for (const [i, one] of body.entries()) {
    const { error, code } = one as { error?: unknown; code?: unknown }
    if (code === 'internal_error') return 'an unforeseen failure'
    const fault =
      typeof error === 'string' && typeof code === 'string' ? undefined : shapeFault(one, paths[i] ?? '')
    if (fault) return `${paths[i]}: ${fault}`
  }
  return undefined
}

/** What is wrong with the headers beside those of the quota. */
const headerFault = (facts: Facts, answer: Answer): string | undefined => {
  const { status, headers, path } = answer
  const wait = headers['retry-after']
  if ((status === 429 || status === 500) && !/^[1-9]\d*$/.test(wait ?? '')) return 'no retry-after'
  if (status === 405 && headers.allow !== 'GET, HEAD') return `allow is ${headers.allow}`
  if (status >= 400) {
    if (headers['cache-control'] !== 'no-store')
      return `an error with cache-control ${headers['cache-control']}`
    if (status !== 429) return undefined
    return isPaced(answer) ? paceFault(answer) : waitFault(facts, answer)
  }
  if (path.startsWith('/locations') && headers['cache-control'] !== 'private, max-age=60')
    return `cache-control is ${headers['cache-control']}`
  return path.startsWith('/locations?') && status === 200 ? linkFault(answer) : undefined
}

/** A token comes back within a second, or some while Redis is away. */
const paceFault = ({ headers }: Answer): string | undefined =>
  Number(headers['retry-after']) <= 3
    ? undefined
    : `retry-after is ${headers['retry-after']} s for a limit by the second`

/** A refusal says how long it is until the quota begins again. */
const waitFault = (facts: Facts, answer: Answer): string | undefined => {
  const reset = headerOf(answer, 'reset')
  const wait = Number(answer.headers['retry-after'])
  const [most, least] = [reset - answer.sent.at / second, reset - answer.at / second]
  const tolerance = facts.skewSpan / second + 2
  if (wait <= most + tolerance && wait >= least - tolerance) return undefined
  return `retry-after is ${wait} s, and the day ends in ${least.toFixed(1)} s`
}

/** A list leads to the pages beside it, relative to its own URL. */
const linkFault = ({ headers, path, body, method }: Answer): string | undefined => {
  if (method === 'HEAD') return undefined
  const { query } = partsOf(path)
  const { total } = JSON.parse(body) as { total: number }
  const [limit, offset] = [Number(query.get('limit') ?? 50), Number(query.get('offset') ?? 0)]
  const wanted = [
    ...(offset + limit < total ? [['next', offset + limit, limit] as const] : []),
    ...(offset > 0 ? [['prev', Math.max(0, offset - limit), Math.min(limit, offset)] as const] : []),
  ]
  const found = [...(headers.link ?? '').matchAll(/<\?([^>]*)>; rel="(\w+)"/g)].map(([, text, rel]) => {
    const to = new URLSearchParams(text)
    return `${rel} ${to.get('type')} ${to.get('offset')} ${to.get('limit')}`
  })
  const right = wanted.map(([rel, to, size]) => `${rel} ${query.get('type')} ${to} ${size}`)
  return found.join() === right.join() ? undefined : `link leads to ${found.join()}, not ${right.join()}`
}

const isInstant = (text: unknown): boolean => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(String(text))

/** What a request with a good key and enough quota gets, if its weather can be had. */
const rightFor = (path: string): 200 | 400 | 404 => {
  if (isListed({ path })) return 200
  const { endpoint, type, id, more, query } = partsOf(path)
  if (endpoint === 'locations' && type === '') return types.has(query.get('type') ?? '') ? 200 : 400
  if (endpoint !== 'weather' && endpoint !== 'forecast' && endpoint !== 'locations') return 404
  if (endpoint === 'weather' && type === 'coords')
    return between(Number(id), 20, 27) && between(Number(more), 87.5, 93) ? 200 : 400
  if (!types.has(type)) return 400
  if (endpoint === 'forecast' && !between(Number(query.get('days') ?? 7), 1, 7)) return 400
  return id === '999999' ? 404 : 200
}
const types = new Set(['division', 'district', 'upazila', 'union'])
const between = (value: number, least: number, most: number): boolean => value >= least && value <= most
