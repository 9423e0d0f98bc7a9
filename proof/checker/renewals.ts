// Promise 16: a changed catalogue and a renewed certificate are in force at every gateway once they are applied, and what was
// before them until then.

import { describe, type Facts } from './facts.ts'
import type { Rule } from './rule.ts'

/** The place that is renamed. */
const place = '3026'

export const renewedInForce: Rule = (facts, report) => {
  for (const answer of facts.answers) {
    for (const what of ['certificate', 'name'] as const) {
      const seen = what === 'certificate' ? answer.certificate : nameIn(answer)
      const due = inForce(facts, what, answer.sent.seq)
      if (seen === undefined || due === undefined) continue
      report.saw()
      if (seen !== due)
        report.broken(answer.seq, `${describe(answer)}: its ${what} is ${seen}, and ${due} in force`)
    }
  }
}

/** Changes are steps of their own, so none comes while requests are under way. */
const inForce = ({ history }: Facts, what: 'certificate' | 'name', seq: number): string | undefined =>
  history.events
    .flatMap(event =>
      event.kind === 'renewed' && event.what === what && event.seq < seq ? [event.value] : [],
    )
    .at(-1)

const nameIn = ({ status, path, body, method }: Facts['answers'][number]): string | undefined => {
  if (status !== 200 || method === 'HEAD' || !path.includes(place)) return undefined
  const { location } = JSON.parse(body) as { location?: { id?: string; name_en?: string } }
  return location?.id === place ? location.name_en : undefined
}
