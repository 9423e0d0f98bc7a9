// The body of `/key`: what the checker knows of the key and its changes, and the counts that the headers of the same answer have.

import type { Answer } from '../history.ts'
import { day, type Facts, headerOf, isoOf, second, unitsOf, zoneMs } from './facts.ts'
import { expiriesOf, tiersOf } from './keys.ts'
import { rateOf } from './pace.ts'
import { exactly, fields, type Shape, that } from './shapes.ts'

const days = 30

export const keyBody =
  (facts: Facts, answer: Answer): Shape =>
  value => {
    const [limit, remaining] = [headerOf(answer, 'limit'), headerOf(answer, 'remaining')]
    const events = facts.keyEvents.filter(({ key, seq }) => key === answer.key && seq < answer.seq)
    const issued = events.find(({ what }) => what === 'issued')
    const { used, tier } = (value ?? {}) as { used?: unknown; tier?: string }
    const isKnown = used !== null
    const bound = facts.schedule.bound?.[answer.key]
    const rate = rateOf(facts, tier)
    return fields({
      id: exactly(issued?.id),
      tier: that(one => tiersOf(facts, answer).includes(String(one)), 'tier of the key'),
      limit: exactly(limit),
      used: isKnown ? usedOf(limit, remaining) : unknownUsed(facts, answer),
      remaining: exactly(isKnown ? remaining : null),
      reason: exactly(isKnown ? null : 'store_unavailable'),
      reset_at: exactly(isoOf(headerOf(answer, 'reset') * second)),
      rates: exactly(rate === undefined ? null : { per_second: rate, burst: rate, per_minute: null }),
      restrictions: exactly(bound ? { origins: null, addresses: null, endpoints: bound } : null),
      created_at: exactly(issued && isoOf(issued.at)),
      expires_at: expiry(facts, answer),
      days: daysOf(facts, answer, used),
    })(value)
  }

/** A limit that was lowered may be below what was used. */
const usedOf = (limit: number, remaining: number): Shape =>
  remaining > 0
    ? exactly(limit - remaining)
    : that(used => Number(used) >= limit, `count of ${limit} or more`)

const unknownUsed = (facts: Facts, { gateway, sent }: Answer): Shape =>
  that(() => facts.isUnsettled(gateway, sent), 'count, although Redis serves')

const expiry = (facts: Facts, answer: Answer): Shape => {
  const wanted = expiriesOf(facts, answer).map(end => end ?? null)
  return that(one => wanted.includes(one as string), `expiry, which is ${wanted.join(' or ')}`)
}

/** Of thirty days, today first. Of a day before, there is what its answers took; less where Redis was away or all is not known. */
const daysOf =
  (facts: Facts, answer: Answer, used: unknown): Shape =>
  value => {
    const reset = headerOf(answer, 'reset')
    const isSure = facts.firstTrouble > answer.seq
    if (!Array.isArray(value) || value.length !== days) return `it has not ${days} days`
    for (const [i, one] of value.entries()) {
      const end = reset * second - i * day
      const most = facts.answers.filter(
        each => each.key === answer.key && (each.status === 0 || headerOf(each, 'reset') * second === end),
      )
      const least = isSure ? unitsOf(most.filter(facts.isCounted)) : 0
      // An hour after a day nothing says any more which units of an unanswered batch Redis has taken, so they are reported again.
      const unknown =
        i === 0 ? [] : most.filter(({ gateway, sent, seq }) => facts.isTroubled(gateway, sent.seq, seq))
      const isRight = (count: unknown): boolean =>
        i === 0 || used === null
          ? count === used
          : Number.isInteger(count) &&
            Number(count) >= least &&
            Number(count) <= unitsOf(most) + unitsOf(unknown)
      const fault = fields({
        day: exactly(new Date(end - 1 + zoneMs).toISOString().slice(0, 10)),
        used: that(isRight, 'count of that day'),
      })(one)
      if (fault) return fault
    }
    return undefined
  }
