// Promises 1 and 2: every request has an answer, and every answer is one of the contract.

import type { Answer } from '../history.ts'
import { describe, headerOf } from './facts.ts'
import type { Rule } from './rule.ts'

export const answered: Rule = ({ answers, lives }, report) => {
  for (const answer of answers) {
    report.saw()
    if (answer.status !== 0) continue
    const ended = lives.some(
      ({ gateway, run, what, seq }) =>
        gateway === answer.gateway &&
        run === answer.run &&
        (what === 'killed' || what === 'stopping') &&
        seq < answer.seq,
    )
    if (!ended) report.broken(answer.seq, `${describe(answer)}: ${answer.failure}`)
  }
}

const jsonType = 'application/json; charset=utf-8'
const statuses = new Set([200, 304, 400, 401, 404, 429, 500])

export const withinContract: Rule = ({ answers }, report) => {
  for (const answer of answers) {
    if (answer.status === 0) continue
    report.saw()
    const fault = faultOf(answer)
    if (fault) report.broken(answer.seq, `${describe(answer)}: ${fault}`)
  }
}

const faultOf = (answer: Answer): string | undefined => {
  const { status, headers, path } = answer
  if (!statuses.has(status)) return 'a status that the contract does not have'
  const [limit, remaining, reset] = [
    headerOf(answer, 'limit'),
    headerOf(answer, 'remaining'),
    headerOf(answer, 'reset'),
  ]
  if (![limit, remaining, reset].every(value => Number.isInteger(value) && value >= 0))
    return `no whole numbers in the headers of the quota: ${limit}, ${remaining}, ${reset}`
  if (remaining > limit) return `${remaining} remain of ${limit}`
  if (status === 401 && (limit !== 0 || remaining !== 0)) return '401 with a quota'
  if (status === 401 && !headers['www-authenticate']?.startsWith('ApiKey ')) return '401 without a challenge'
  if ((status === 429 || status === 500) && !/^[1-9]\d*$/.test(headers['retry-after'] ?? ''))
    return 'no retry-after'
  if (!headers['x-request-id']) return 'no x-request-id'
  if (status === 304) return headers.etag ? undefined : '304 without a tag'
  if (headers['content-type'] !== jsonType) return `content-type is ${headers['content-type']}`
  return bodyFault(answer, path)
}

const bodyFault = (answer: Answer, path: string): string | undefined => {
  let body: Record<string, unknown>
  try {
    body = JSON.parse(answer.body)
  } catch {
    return 'its body is no JSON'
  }
  const { status } = answer
  if (status === 200) return rightFor(path) === 200 ? fieldsMissing(body, path) : 'a wrong request has 200'
  if (typeof body.error !== 'string' || typeof body.code !== 'string') return 'an error without error or code'
  if (body.code === 'internal_error') return 'an unforeseen failure'
  if (status === 429 && (body.limit !== headerOf(answer, 'limit') || !isInstant(body.reset_at)))
    return '429 without limit or reset_at'
  if ((status === 400 || status === 404) && rightFor(path) !== status)
    return `${rightFor(path)} is right here: ${body.code}`
  if (status === 500 && rightFor(path) !== 200 && !/store_unavailable/.test(body.code))
    return `500 for ${path}`
  return undefined
}

const isInstant = (text: unknown): boolean => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(String(text))

/** What a request with a good key and enough quota gets, if its weather can be had. */
const rightFor = (path: string): 200 | 400 | 404 => {
  const [, endpoint, type, id, more] = /^\/(\w+)(?:\/(\w+)\/([^/?]+)(?:\/([^/?]+))?)?/.exec(path) ?? []
  const query = new URLSearchParams(path.split('?', 2)[1])
  if (endpoint === 'locations' && type === undefined) return types.has(query.get('type') ?? '') ? 200 : 400
  if (endpoint !== 'weather' && endpoint !== 'forecast' && endpoint !== 'locations') return 404
  if (endpoint === 'weather' && type === 'coords')
    return between(Number(id), 20, 27) && between(Number(more), 87.5, 93) ? 200 : 400
  if (!types.has(type ?? '')) return 400
  if (endpoint === 'forecast' && !between(Number(query.get('days') ?? 7), 1, 7)) return 400
  return id === '999999' ? 404 : 200
}
const types = new Set(['division', 'district', 'upazila', 'union'])
const between = (value: number, least: number, most: number): boolean => value >= least && value <= most

const zone = ['timezone', 'utc_offset_seconds']

const fieldsMissing = (body: Record<string, unknown>, path: string): string | undefined => {
  const wanted = path.startsWith('/weather/')
    ? ['location', 'current', 'current_units', 'hourly', 'hourly_units', 'daily', 'daily_units', ...zone]
    : path.startsWith('/forecast/')
      ? ['location', 'daily', 'daily_units', ...zone]
      : path.startsWith('/locations/')
        ? ['location']
        : ['results', 'total', 'type']
  const missing = wanted.filter(name => body[name] === undefined || body[name] === null)
  return missing.length === 0 ? undefined : `it lacks ${missing.join(', ')}`
}
