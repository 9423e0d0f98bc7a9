// Promises 1 and 2: every request has an answer, and every answer is one of the contract: its headers are checked by headers.ts, its body
// by contract.ts.

import type { Answer } from '../history.ts'
import { bodyFault } from './contract.ts'
import { type Facts, isUnchecked } from './facts.ts'
import { headerFault } from './headers.ts'
import { isPaced } from './pace.ts'
import type { Rule } from './rule.ts'

export const answered: Rule = ({ answers, pages, lives }, report) => {
  for (const answer of [...answers, ...pages]) {
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

const statuses = new Set([200, 304, 400, 401, 403, 404, 405, 429, 500])

export const withinContract: Rule = (facts, report) => {
  const ids = new Set<string>()
  for (const answer of [...facts.answers, ...facts.pages]) {
    const { status, headers } = answer
    if (status === 0) continue
    report.saw()
    const id = headers['x-request-id'] ?? ''
    const fault = statuses.has(status)
      ? (headerFault(facts, answer) ?? boundFault(facts, answer) ?? bodyFault(facts, answer))
      : 'a status that the contract does not have'
    if (fault) report.broken(answer, fault)
    else if (ids.has(id)) report.broken(answer, `another answer has the id ${id} too`)
    ids.add(id)
  }
}

/** What a key is bound to comes behind the key and before its quota. */
const boundFault = ({ isBeyondBounds }: Facts, answer: Answer): string | undefined => {
  const { status } = answer
  if (!isBeyondBounds(answer)) return status === 403 ? 'its key may be used there' : undefined
  return status === 403 || status === 401 || isUnchecked(answer) || isPaced(answer)
    ? undefined
    : 'its key is bound to others'
}
