// Cases for tests of the checker: a made-up history that keeps a promise, and one that breaks it.

import t from 'tap'
import { judge } from '../../proof/checker/judge.ts'
import type { PromiseNumber } from '../../proof/promises.ts'
import type { Schedule } from '../../proof/steps.ts'
import { type At, historyOf } from './made-up-history.ts'

/** `more`: where the schedule of both differs from that of other cases. */
export type Case = readonly [
  promise: PromiseNumber,
  kept: readonly At[],
  broken: readonly At[],
  more?: Partial<Schedule>,
]

export const testCases = (cases: readonly Case[]): void => {
  for (const [i, [promise, kept, broken, more]] of cases.entries())
    t.test(`promise ${promise}, case ${i + 1}: what keeps it passes, what breaks it is found`, async t => {
      const right = judge(historyOf(kept, more))
      t.strictSame(right.violations, [])
      t.ok((right.exercised[promise] ?? 0) > 0, 'it was exercised')
      const { violations } = judge(historyOf(broken, more))
      const found = violations.some(violation => violation.promise === promise)
      t.ok(found, `broken: ${JSON.stringify(violations)}`)
    })
}
