// Which recorded requests reach the cache when their traffic passes again. The logs of nginx and Apache have no keys: there the
// recorded answer says whether a request was admitted. One rule for all that try or rehearse traffic, and the key with which a
// request is sent in a rehearsal.

import type { TrafficRequest } from './traffic-request.ts'

const reasons = {
  method: 'with a method other than GET and HEAD',
  refused: 'recorded as refused or redirected',
  keyless: 'with neither a key nor a recorded answer',
}
export type LeftOutReason = keyof typeof reasons

/** Undefined for a request that reaches the cache, should its path have weather. */
export const leftOutOf = ({
  method,
  key,
  status,
  outcome,
}: Pick<TrafficRequest, 'method' | 'key' | 'status' | 'outcome'>): LeftOutReason | undefined => {
  if (method !== 'GET' && method !== 'HEAD') return 'method'
  if (status !== undefined && isRefusal(status)) return 'refused'
  const isAnswered = status !== undefined || (outcome !== undefined && outcome !== 'none')
  return key === undefined && !isAnswered ? 'keyless' : undefined
}

// A proxy before the gateway redirects: its client comes again.
const isRefusal = (status: number): boolean =>
  status === 401 || status === 403 || status === 429 || (status >= 300 && status < 400 && status !== 304)

/** How many requests were left out for each reason, in words of a sentence; undefined where none was. */
export const leftOutText = (
  counts: Readonly<Record<LeftOutReason, number>>,
  write: (count: number) => string,
): string | undefined => {
  const parts = Object.entries(reasons).flatMap(([reason, words]) => {
    const count = counts[reason as LeftOutReason]
    return count > 0 ? [`${write(count)} ${words}`] : []
  })
  return parts.length === 0 ? undefined : parts.join(', ')
}

/** `own key`: that of its id. `substitute`: one of several that nothing limits. `nothing`: it is answered with 401. */
export type SentWith = 'own key' | 'substitute' | 'nothing'

export const sentWithOf = (request: TrafficRequest): SentWith => {
  const reason = leftOutOf(request)
  const hasKey = request.key !== undefined
  if (reason === undefined) return hasKey ? 'own key' : 'substitute'
  // The quota of the rehearsal's own tier decides about these, and the API about methods.
  return hasKey && (reason === 'method' || request.status === 429) ? 'own key' : 'nothing'
}

/** So many that the share of the budget that is one key's bounds none of them. */
export const substituteKeys = 64

export const countSentWith = (requests: readonly TrafficRequest[]): Readonly<Record<SentWith, number>> => {
  const counts = { 'own key': 0, substitute: 0, nothing: 0 }
  for (const request of requests) counts[sentWithOf(request)] += 1
  return counts
}
