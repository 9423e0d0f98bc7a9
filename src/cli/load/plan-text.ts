// The provider's plan in a table of settings, as `whatif` and `rehearse` print it, and why it is not known. load/report/plans.ts
// decides.

import { isUnknownPlan, type PlanVerdict, smallestPlan } from '../../load/report/plans.ts'
import { whatIfWords } from '../../load/what-if/what-if-words.ts'
import { sayIn } from '../../page/words.ts'

/** The words of the page of `whatif`. */
export const say = sayIn(whatIfWords, 'en')

/** The smallest sufficient plan, or what is known of it. */
export const planText = (plans: readonly PlanVerdict[]): string => {
  const smallest = smallestPlan(plans)
  if (!smallest) return say('noPlan')
  if (isUnknownPlan(smallest)) return say('planUnknown')
  return smallest.isLeast ? say('planOrMore', smallest.plan) : smallest.plan
}

/** Why a plan is not known, for cases of the same traffic; empty where each plan is known. */
export const planRemarks = (cases: readonly (readonly PlanVerdict[])[]): string[] =>
  cases.some(plans => smallestPlan(plans)?.isLeast) ? [say('partOfDay')] : []
