// Which recorded requests reach the cache in `whatif` and `rehearse`, and with which key. Logs of nginx and Apache have no keys, so the
// recorded response shows whether a request was admitted.

import type { TrafficRequest } from './traffic-request.ts'

const reasons = {
  method: 'with a method other than GET and HEAD',
  refused: 'recorded as refused or redirected',
  keyless: 'with neither a key id nor a recorded response',
}
export type LeftOutReason = keyof typeof reasons

/** Undefined for a request that reaches the cache if its path has weather. */
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

// A redirect comes from a proxy, and the client comes again.
const isRefusal = (status: number): boolean =>
  status === 401 || status === 403 || status === 429 || (status >= 300 && status < 400 && status !== 304)

/** The counts by reason as part of a sentence; undefined without any. */
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

/** `substitute`: one of several unlimited keys. `nothing`: the response is 401. */
export type SentWith = 'own key' | 'substitute' | 'nothing'

export const sentWithOf = (request: TrafficRequest): SentWith => {
  const reason = leftOutOf(request)
  const hasKey = request.key !== undefined
  if (reason === undefined) return hasKey ? 'own key' : 'substitute'
  // The quota of the rehearsal decides about 429, and the API about methods.
  return hasKey && (reason === 'method' || request.status === 429) ? 'own key' : 'nothing'
}

/** Enough that no key reaches its share of the provider budget. */
export const substituteKeys = 64

export const countSentWith = (requests: readonly TrafficRequest[]): Readonly<Record<SentWith, number>> => {
  const counts = { 'own key': 0, substitute: 0, nothing: 0 }
  for (const request of requests) counts[sentWithOf(request)] += 1
  return counts
}
