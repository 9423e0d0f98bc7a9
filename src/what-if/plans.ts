// The provider's plans, and which of them would carry what a setting spends. The budget that a gateway keeps to is
// configuration (provider.budget); this is what there is to choose from.

import type { CaseFigures, PlanVerdict } from './what-if-result.ts'

/** Limits in the provider's weight; null for none. */
type Plan = {
  readonly name: string
  readonly minute: number | null
  readonly hour: number | null
  readonly day: number | null
  readonly month: number | null
}

// https://open-meteo.com/en/pricing and the terms, as known in 2026-11: look there before you buy. The free plan is for non-commercial use; the paid ones are
// counted by the month alone, and the largest begins at its figure.
const plans: readonly Plan[] = [
  { name: 'free', minute: 600, hour: 5_000, day: 10_000, month: 300_000 },
  { name: 'standard', minute: null, hour: null, day: null, month: 1_000_000 },
  { name: 'professional', minute: null, hour: null, day: null, month: 5_000_000 },
  { name: 'enterprise', minute: null, hour: null, day: null, month: 50_000_000 },
]

const daysPerMonth = 30
// A shorter span does not say what a month has: it is not multiplied by more than if it were a day.
const leastDays = 1

type Spent = { readonly provider: Pick<CaseFigures['provider'], 'weight' | 'most'> }

/** What a month like the counted span would weigh. */
export const monthOf = ({ provider }: Spent, spanDays: number): number =>
  (provider.weight / Math.max(leastDays, spanDays)) * daysPerMonth

/** Whether each plan carries it, and its first limit that does not. @param spanDays what was counted */
export const verdictsOf = (figures: Spent, spanDays: number): PlanVerdict[] => {
  const most = { ...figures.provider.most, month: Math.round(monthOf(figures, spanDays)) }
  return plans.map(plan => {
    const limits = [
      ['minute', plan.minute],
      ['hour', plan.hour],
      ['day', plan.day],
      ['month', plan.month],
    ] as const
    const beyond = limits.find(([span, limit]) => limit !== null && most[span] > limit)
    return {
      plan: plan.name,
      carries: beyond === undefined,
      beyond: beyond ? { span: beyond[0], limit: beyond[1] ?? 0, weight: most[beyond[0]] } : null,
    }
  })
}

/** The first plan that carries it; undefined where none does. */
export const smallestPlan = (verdicts: readonly PlanVerdict[]): string | undefined =>
  verdicts.find(({ carries }) => carries)?.plan
