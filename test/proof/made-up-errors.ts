// Refusals and failures of a made-up history, each with the headers and the body of its status.

import { type At, counted, type Given, list, midnight, noon, usualHeaders } from './made-up-history.ts'

/** The sentence has the numbers of the fields. @param about how it begins */
const problem = (
  code: string,
  more: Readonly<Record<string, unknown>> = {},
  about = 'what is wrong',
): string => {
  const numbers = Object.values(more).filter(each => typeof each === 'number')
  const named = code === 'quota_exhausted' ? [more.limit] : numbers
  const error = [about, ...named].join(' ')
  return JSON.stringify({ error, code, doc_url: `/docs#error-${code}`, ...more })
}

const resetAt = '2031-06-01T18:00:00.000Z'

export const exhausted = (afterMs: number, given: Given = {}): At =>
  counted(afterMs, 0, {
    status: 429,
    body: problem('quota_exhausted', { limit: 3, reset_at: resetAt }),
    ...given,
    headers: { 'retry-after': String(Math.ceil((midnight - noon - afterMs) / 1_000)), ...given.headers },
  })

/** The refusal of a key that is bound to another endpoint. @param bound what its sentence names */
export const beyondBounds = (afterMs: number, key: string, bound = 'weather', remaining = 3): At => {
  const body = problem('key_endpoint_not_allowed', {}, `the endpoint is ${bound}, got locations`)
  return counted(afterMs, remaining, { key, status: 403, body })
}

/** The provider answers with errors from the begin on. */
export const failing: At = {
  afterMs: 0,
  kind: 'step',
  step: { do: 'provider', id: 'p', fault: { mode: 'internal-error' } },
}

/** An error of this code. */
export const failed = (afterMs: number, remaining: number, code: string, given: Given = {}): At =>
  counted(afterMs, remaining, { status: 500, body: problem(code), ...given })

/** A list of two places that has the weather of neither. */
export const listFailed = (afterMs: number, left: number, headers: Record<string, string> = {}): At =>
  failed(afterMs, left, 'provider_failing', { path: list, headers: { 'x-ratelimit-cost': '2', ...headers } })

/** The refusal of a method. */
export const wrongMethod = (afterMs: number, remaining: number): At =>
  counted(afterMs, remaining, { method: 'POST', status: 405, body: problem('method_not_allowed') })

/** An answer to the key whose limit is two a second; a refusal without what remains. */
export const paced = (afterMs: number, remaining?: number): At => {
  const at = new Date(noon + afterMs + 500).toISOString()
  const usual = usualHeaders(afterMs, remaining ?? 1, '3')
  const answer = counted(afterMs, remaining ?? 1, {
    key: 'fast',
    ...(remaining === undefined && {
      status: 429,
      body: problem('rate_limited', { policy: 'second', limit: 2, reset_at: at }),
    }),
    headers: {
      'ratelimit-policy': `${usual['ratelimit-policy']}, "second";q=2;w=1`,
      ratelimit: `${usual.ratelimit}, "second";r=0;t=1`,
      ...(remaining === undefined && { 'retry-after': '1' }),
    },
  })
  return answer
}

export const refused = (afterMs: number, code = 'key_revoked', headers: Record<string, string> = {}): At =>
  counted(afterMs, 0, {
    status: 401,
    body: problem(code, { parameter: 'x-api-key' }),
    headers: { 'x-ratelimit-limit': '0', 'ratelimit-policy': '', ratelimit: '', ...headers },
  })

/** The refusal of a list of two places, with so many units left. */
export const listRefused = (afterMs: number, left: number): At => {
  const more = { limit: 3, reset_at: resetAt, remaining: left, cost: 2 }
  return counted(afterMs, left, {
    status: 429,
    path: list,
    body: problem(left > 0 ? 'quota_insufficient' : 'quota_exhausted', more),
    headers: {
      'retry-after': String(Math.ceil((midnight - noon - afterMs) / 1_000)),
      'x-ratelimit-cost': '2',
    },
  })
}
