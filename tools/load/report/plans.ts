// Which of the provider's plans would carry what a run spent. A plan is chosen by whole days: demand has peaks and
// nights, and a cache fills once, so that no factor makes a day of an hour. Less than a day says only which plans are too small.

import { hourMs, utcDayMs } from 'abohawa/common/calendar.ts'
import { plans } from 'abohawa/protocol/terms.ts'

export type PlanVerdict = {
  readonly plan: string
  /** Null where too little was counted to say so. */
  readonly carries: boolean | null
  /** The first limit that is too small; `weight` is what was spent in its fullest window. */
  readonly beyond: {
    readonly span: 'minute' | 'hour' | 'day' | 'month'
    readonly limit: number
    readonly weight: number
  } | null
}

const daysPerMonth = 30
// A day's log rarely has a request in its first and its last second.
const missingMs = hourMs
// Nights have fewer requests, and a log that was not written has none.
const longestLullMs = hourMs

/** Of the traffic that was counted, the last whole days, and their time without requests. */
export type WholeDays = {
  /** Their begin, ms since the epoch. */
  readonly from: number
  readonly days: number
  /** In all gaps of more than an hour. */
  readonly quietMs: number
}

/** Undefined for less than 23 hours. @param instants of all requests, in order @param from when counting begins */
export const wholeDaysOf = (instants: Iterable<number>, from: number, to: number): WholeDays | undefined => {
  const whole = Math.floor((to - from + missingMs) / utcDayMs)
  if (whole === 0) return undefined
  const begin = Math.max(from, to - whole * utcDayMs)
  let quietMs = 0
  let last = begin
  for (const at of instants) {
    if (at - last > longestLullMs) quietMs += at - last
    last = Math.max(last, at)
  }
  return { from: begin, days: (to - begin) / utcDayMs, quietMs }
}

/** The spending: in the fullest windows, in all, and in the whole days. */
export type Spent = {
  readonly most: Readonly<Record<'minute' | 'hour' | 'day', number>>
  readonly weight: number
  readonly wholeDays: { readonly days: number; readonly quietSeconds: number; readonly weight: number } | null
}

/** The weight of a month of such days; null where no whole day was counted. */
export const monthOf = ({ wholeDays }: Pick<Spent, 'wholeDays'>): number | null =>
  wholeDays === null ? null : Math.round((wholeDays.weight / wholeDays.days) * daysPerMonth)

/**
 * Whether each plan carries it, and its first limit that does not. Time without requests may be time without a recording: a
 * plan carries it if it would also with as many requests then.
 */
export const verdictsOf = (spent: Spent): PlanVerdict[] => {
  const month = monthOf(spent)
  const most = { ...spent.most, month: Math.round(month ?? spent.weight * daysPerMonth) }
  const { days = 1, quietSeconds = 0 } = spent.wholeDays ?? {}
  const quiet = quietSeconds / (days * 86_400)
  const isUncertain = (limit: number | null): boolean =>
    month === null || (quietSeconds * 1000 > missingMs && limit !== null && month / (1 - quiet) > limit)
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
      carries: beyond === undefined ? (isUncertain(plan.month) ? null : true) : false,
      beyond: beyond ? { span: beyond[0], limit: beyond[1] ?? 0, weight: most[beyond[0]] } : null,
    }
  })
}

/**
 * The first plan that carries it, or, where that can't be said of it (`isLeast`), the first that is not too small; undefined
 * where all are too small.
 */
export const smallestPlan = (
  verdicts: readonly PlanVerdict[],
): { readonly plan: string; readonly isLeast: boolean } | undefined => {
  const first = verdicts.find(({ carries }) => carries !== false)
  return first && { plan: first.plan, isLeast: first.carries === null }
}

/** The smallest sufficient plan, or what is known of it; the smallest of all says nothing where it is only the least. */
export const planText = (verdicts: readonly PlanVerdict[]): string => {
  const smallest = smallestPlan(verdicts)
  if (!smallest) return 'none'
  if (smallest.isLeast && smallest.plan === plans[0]?.name) return 'unknown'
  return smallest.isLeast ? `${smallest.plan} or more` : smallest.plan
}

/** Why a plan is not known, for cases of the same traffic; empty where each plan is known. */
export const planRemarks = (cases: readonly (readonly PlanVerdict[])[]): string[] =>
  cases.some(verdicts => smallestPlan(verdicts)?.isLeast)
    ? [
        'The traffic is too short to say which plan is enough: a plan is chosen by whole days without long gaps, because an hour does not show the peaks of a day, and a cache fills once. Less than 23 hours, or gaps of more than an hour, only show which plans are too small.',
      ]
    : []
