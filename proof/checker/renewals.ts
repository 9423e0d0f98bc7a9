// Promise 16: a changed catalogue and a renewed certificate are in force at every gateway once they are applied, and what was
// before them until then.

import type { Answer } from '../history.ts'
import { renamedPlace } from '../steps.ts'
import type { Rule } from './rule.ts'

export const renewedInForce: Rule = (facts, report) => {
  const renewals = facts.of('renewed')
  for (const answer of facts.answers)
    for (const what of ['certificate', 'name'] as const) {
      const seen = what === 'certificate' ? answer.certificate : nameIn(answer)
      // Changes are steps of their own, so none comes while requests are under way.
      const due = renewals.findLast(each => each.what === what && each.seq < answer.sent.seq)?.value
      if (seen === undefined || due === undefined) continue
      report.saw()
      if (seen !== due) report.broken(answer, `its ${what} is ${seen}, and ${due} in force`)
    }
}

const nameIn = ({ status, path, body, method }: Answer): string | undefined => {
  if (status !== 200 || method === 'HEAD' || !path.includes(renamedPlace)) return undefined
  const { location } = JSON.parse(body) as { location?: { id?: string; name_en?: string } }
  return location?.id === renamedPlace ? location.name_en : undefined
}
