// The provider's plan in a table of settings, as `whatif` and `rehearse` print it, and why it is not known. The verdicts
// themselves are in load/report/plans.ts.

import { isUnknownPlan, type PlanVerdict, smallestPlan } from '../../load/report/plans.ts'

/** The smallest plan that carries it, or what is known of it. */
export const planText = (plans: readonly PlanVerdict[]): string => {
  const smallest = smallestPlan(plans)
  if (!smallest) return 'none'
  if (isUnknownPlan(smallest)) return 'unknown'
  return smallest.isLeast ? `${smallest.plan} or more` : smallest.plan
}

/** Why a plan is not known, for all that were judged by the same traffic; empty where each is. */
export const planRemarks = (cases: readonly (readonly PlanVerdict[])[]): string[] =>
  cases.some(plans => smallestPlan(plans)?.isLeast)
    ? [
        'A plan is chosen by whole days without long gaps, because an hour says nothing of the peaks of a day, and a cache fills once: less than 23 hours, or gaps of more than an hour, say only which plans are too small.',
      ]
    : []
