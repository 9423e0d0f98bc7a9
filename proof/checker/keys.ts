// Promises 10 and 11: a revoked key is refused, an issued one accepted, and a new tier or limit in force, as soon as a gateway must
// know of the change.

import type { KeyEvent, Moment } from '../history.ts'
import { describe, type Facts, headerOf } from './facts.ts'
import type { Rule } from './rule.ts'

const surelyChanged = ({ keyEvents }: Facts): Map<string, KeyEvent[]> => {
  const keys = new Map<string, KeyEvent[]>()
  for (const event of keyEvents) keys.set(event.key, [...(keys.get(event.key) ?? []), event])
  for (const [key, events] of keys) if (events.some(({ what }) => what === 'unsure')) keys.delete(key)
  return keys
}

export const revokedRefused: Rule = (facts, report) => {
  const keys = surelyChanged(facts)
  for (const answer of facts.answers) {
    const revoked = keys.get(answer.key)?.find(({ what }) => what === 'revoked')
    if (!revoked || answer.status === 0 || !facts.isKnown(answer.gateway, revoked, answer.sent)) continue
    report.saw()
    if (answer.status !== 401 && !/store_unavailable/.test(answer.body))
      report.broken(answer.seq, `${describe(answer)}: the key was revoked at #${revoked.seq}`)
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
    if (/store_unavailable/.test(answer.body)) continue
    const limit = Number(facts.settingsAt(answer.gateway, answer.sent.seq)[`quota.tiers.${tier}`])
    if (changes.length > 1 || answer.key !== 'plenty') report.saw()
    if (headerOf(answer, 'limit') !== limit)
      report.broken(
        answer.seq,
        `${describe(answer)}: its limit is ${headerOf(answer, 'limit')}, and ${limit} in force`,
      )
  }
}
