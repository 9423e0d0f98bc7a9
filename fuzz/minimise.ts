// Shrinks a failing case: tries the smaller cases that its target proposes, keeps the first that still breaks the same rule,
// and repeats, for as long as that is cheap.

import type { Finding } from './finding.ts'
import type { Target } from './target.ts'

const maxTries = 60
const maxMs = 2_000

/**
 * The smallest case found, printed; undefined when none is smaller than the given one.
 * @param run the findings of a case; none when it can no longer be run
 */
export const minimised = async <Case>(
  { smaller, print }: Pick<Target<Case>, 'smaller' | 'print'>,
  failing: Case,
  rule: string,
  run: (given: Case) => Promise<readonly Finding[]>,
): Promise<string | undefined> => {
  const deadline = performance.now() + maxMs
  let smallest = failing
  let tries = 0
  for (let found = true; found; ) {
    found = false
    for (const candidate of smaller(smallest)) {
      if (tries++ >= maxTries || performance.now() > deadline) break
      if (!(await run(candidate)).some(finding => finding.rule === rule)) continue
      smallest = candidate
      found = true
      break
    }
  }
  return smallest === failing ? undefined : print(smallest)
}
