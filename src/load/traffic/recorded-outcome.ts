// Reads the cache result from the text of `cache-status` (edge/rendered-weather.ts) in a log or a recorded response.

import type { RecordedAnswer } from './traffic-request.ts'

/** A negative ttl is that of a stale answer without a load behind it. No text: an answer without weather. */
export const outcomeOf = (status: string | undefined): Pick<RecordedAnswer, 'outcome' | 'tier' | 'cell'> => {
  if (status === undefined) return { outcome: 'none' }
  const cell = /key="([\d.,-]{1,60})"/.exec(status)?.[1]
  const where = cell === undefined ? {} : { cell }
  if (status.includes('fwd=miss')) return { outcome: 'miss', tier: 'provider', ...where }
  const outcome = status.includes('fwd=stale') || status.includes('ttl=-') ? 'stale' : 'hit'
  const tier = /detail=(\w{1,40})/.exec(status)?.[1]
  return tier === undefined ? { outcome, ...where } : { outcome, tier, ...where }
}
