// Makes a case that fails smaller: tries the smaller ones that its session names, keeps the first that still breaks the
// same rule, and begins anew with it, for as long as that is cheap.

import type { System } from './system/system.ts'
import type { Session } from './target.ts'

const mostTries = 60
const mostMs = 2_000

/** The smallest case found, printed; undefined when none is smaller than the one given. */
export const minimised = async <Case>(
  session: Session<Case>,
  failing: Case,
  rule: string,
  system: System,
): Promise<string | undefined> => {
  const deadline = performance.now() + mostMs
  let smallest = failing
  let tries = 0
  for (let found = true; found; ) {
    found = false
    for (const candidate of session.smaller(smallest)) {
      if (tries++ >= mostTries || performance.now() > deadline || !system.gateway().isAlive()) break
      const findings = await session.run(candidate).catch(() => [])
      if (!findings.some(finding => finding.rule === rule)) continue
      smallest = candidate
      found = true
      break
    }
  }
  return smallest === failing ? undefined : session.print(smallest)
}
