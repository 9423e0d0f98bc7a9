// Promises 10 and 11: a key that is revoked, expired or replaced is refused, an issued one accepted, and a new tier or limit in force,
// as soon as a gateway must know of the change.

import type { Answer, KeyEvent, Moment } from '../history.ts'
import { describe, type Facts, headerOf, isoOf, isUnchecked, second } from './facts.ts'
import type { Rule } from './rule.ts'

const surelyChanged = ({ keyEvents }: Facts): Map<string, KeyEvent[]> => {
  const keys = new Map<string, KeyEvent[]>()
  for (const event of keyEvents) keys.set(event.key, [...(keys.get(event.key) ?? []), event])
  for (const [key, events] of keys) if (events.some(({ what }) => what === 'unsure')) keys.delete(key)
  return keys
}

/** What ends the secret that a request was sent with: the expiry of its key, or the rotation that replaced it. */
const endOf = (events: readonly KeyEvent[] | undefined, answer: Answer): KeyEvent | undefined =>
  events?.findLast(
    ({ what, until, seq }) =>
      until !== undefined && seq < answer.sent.seq && (what === 'rotated') === (answer.former === true),
  )

/** Gateways go by their own clocks, and a request may wait. */
const isPast = (facts: Facts, until: number, at: number): boolean => at > until + facts.skewSpan + second
const isBefore = (facts: Facts, until: number, at: number): boolean => at < until - facts.skewSpan - second

export const revokedRefused: Rule = (facts, report) => {
  const keys = surelyChanged(facts)
  for (const answer of facts.answers) {
    if (answer.status === 0) continue
    const events = keys.get(answer.key)
    const revoked = events?.find(({ what }) => what === 'revoked')
    const end = endOf(events, answer)
    const isEnded = end?.until !== undefined && isPast(facts, end.until, answer.sent.at)
    const why = [revoked, isEnded ? end : undefined].find(
      event => event && facts.isKnown(answer.gateway, event, answer.sent),
    )
    if (!why) continue
    report.saw()
    if (answer.status !== 401 && !isUnchecked(answer))
      report.broken(
        answer.seq,
        `${describe(answer)}: the key was ${why.what} at #${why.seq}${why.until === undefined ? '' : `, valid until ${isoOf(why.until)}`}`,
      )
  }
}

export const changesInForce: Rule = (facts, report) => {
  const keys = surelyChanged(facts)
  const configured = facts.history.events.flatMap(event =>
    event.kind === 'configured' && event.outcome === 'applied' ? [event] : [],
  )
  for (const answer of facts.answers) {
    if (answer.status === 0) continue
    const events = keys.get(answer.key)
    const issued = events?.find(({ what }) => what === 'issued')
    if (!events || !issued || !facts.isKnown(answer.gateway, issued, answer.sent)) continue
    const revoked = events.find(({ what }) => what === 'revoked')
    if (revoked && revoked.seq < answer.seq) continue
    const end = endOf(events, answer)
    if (end?.until !== undefined && !isBefore(facts, end.until, answer.at)) continue
    // A secret that is new must be known, and one that is replaced may end at once for whoever knows of no overlap.
    const rotation = events.findLast(({ what, seq }) => what === 'rotated' && seq < answer.seq)
    if (rotation && !facts.isKnown(answer.gateway, rotation, answer.sent)) continue
    if (answer.status === 401) {
      report.saw()
      report.broken(answer.seq, `${describe(answer)}: the key was issued at #${issued.seq}`)
      continue
    }
    // The tier in force is that of the last change; one on its way may be in force or not.
    const changes = events.filter(({ tier, seq }) => tier !== undefined && seq < answer.seq)
    const tier = changes.at(-1)?.tier
    const isSure = changes.every(change => facts.isKnown(answer.gateway, change, answer.sent))
    const isMoving = configured.some(({ seq }) => answer.sent.seq < seq && seq < answer.seq)
    const isLater = (moment: Moment) => moment.seq > answer.sent.seq && moment.seq < answer.seq
    if (tier === undefined || !isSure || isMoving || changes.some(isLater)) continue
    if (isUnchecked(answer)) continue
    const limit = Number(facts.settingsAt(answer.gateway, answer.sent.seq)[`quota.tiers.${tier}`])
    if (changes.length > 1 || answer.key !== 'plenty') report.saw()
    if (headerOf(answer, 'limit') !== limit)
      report.broken(
        answer.seq,
        `${describe(answer)}: its limit is ${headerOf(answer, 'limit')}, and ${limit} in force`,
      )
  }
}
