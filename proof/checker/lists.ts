// Promise 19: a request for a list of places takes a unit for each place or none, and says how many. That the units are taken
// once is promise 7; the bodies of the places are checked as those of one place are.

import { costOf, headerOf, isUnchecked } from './facts.ts'
import { isPaced } from './pace.ts'
import { isListed } from './paths.ts'
import type { Rule } from './rule.ts'

export const allOrNone: Rule = ({ answers, isFree }, report) => {
  for (const answer of answers) {
    const { status, headers, body, method } = answer
    const said = headers['x-ratelimit-cost']
    if (status === 0) continue
    if (!isListed(answer) || status === 401) {
      if (said !== undefined) report.broken(answer, `it says that it costs ${said}`)
      continue
    }
    // Without a good connection to the store, whose the key is may not be known.
    if (said === undefined && isUnchecked(answer)) continue
    report.saw()
    const cost = status === 403 || isFree(answer) ? 0 : costOf(answer)
    if (said !== String(cost)) report.broken(answer, `it costs ${cost}, and says ${said}`)
    if (method === 'HEAD') continue
    if (status === 200) {
      const found = JSON.parse(body) as unknown[]
      if (found.length !== cost) report.broken(answer, `it has ${found.length} of ${cost} places`)
    }
    if (status === 429 && !isPaced(answer)) {
      const { remaining, cost: stated } = JSON.parse(body) as { remaining?: number; cost?: number }
      const left = headerOf(answer, 'remaining')
      if (stated !== cost || remaining !== left || !(left < cost))
        report.broken(answer, `it is refused with ${left} left, and says ${remaining} of ${stated}`)
    }
  }
}
