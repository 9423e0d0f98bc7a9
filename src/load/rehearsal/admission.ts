// With which key a request of a recording is sent in a rehearsal: what was answered without a known key, as in the logs of nginx
// and Apache, gets a substitute; what was refused is refused again. Which requests those are is in traffic/.

import { leftOutOf } from '../traffic/recorded-admission.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'

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
