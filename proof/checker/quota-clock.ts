// When a request may have been counted, by the clock of quotas: the store's, or that of its gateway, which goes by its own while it can't
// measure the store's.

import type { Answer } from '../history.ts'
import { backAfterRealMs, type Facts, minute, second } from './facts.ts'

/** Twice the interval in which gateways measure the store's clock. */
const measuredWithinMs = minute
// A measurement counts whose reply took no longer, and its middle is taken for the instant at which the other clock was read.
const slowestReplyMs = 250

type Span = readonly [from: number, to: number]

/** From when it was sent to when it was answered; twice where its gateway may have gone by its own clock. */
export const quotaSpans = (facts: Facts, answer: Answer): readonly Span[] => {
  const { gateway, sent, at, seq } = answer
  const skew = facts.skewOf(answer)
  if (skew === 0) return [[sent.at, at]]
  // A gateway that began, or measures the store's clock, while Redis is away.
  const isAway = facts
    .troubles(gateway)
    .some(
      ({ from, to }) =>
        from.seq < seq && (sent.at - to.at < measuredWithinMs || sent.ms - to.ms < backAfterRealMs),
    )
  const uncertain = slowestReplyMs / 2 + 1
  return [[sent.at - uncertain, at + uncertain], ...(isAway ? [[sent.at + skew, at + skew] as const] : [])]
}

/** The whole seconds, rounded up, that it may be until an instant, ms since the epoch. */
export const secondsUntil = (facts: Facts, answer: Answer, instant: number): readonly Span[] =>
  quotaSpans(facts, answer).map(([from, to]) => [
    Math.max(1, Math.ceil((instant - to) / second)),
    Math.max(1, Math.ceil((instant - from) / second)),
  ])
