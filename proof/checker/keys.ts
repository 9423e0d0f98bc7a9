// Promises 10 and 11: a key that is revoked, expired or replaced is refused, an issued one accepted, and a new tier or limit in force,
// as soon as a gateway must know of the change.

import type { Answer, KeyEvent, Moment } from '../history.ts'
import { type Facts, headerOf, isoOf, isUnchecked, second } from './facts.ts'
import type { Rule } from './rule.ts'
import { codesOf } from './tables.ts'

/** Answers to keys of which every change is sure, and the changes of the key. */
const answersToSure = ({ answers, keyEvents }: Facts): (readonly [Answer, readonly KeyEvent[]])[] => {
  const changes = Map.groupBy(keyEvents, ({ key }) => key)
  return answers.flatMap(answer => {
    const events = changes.get(answer.key)
    const isSure = answer.status !== 0 && events && events.every(({ what }) => what !== 'unsure')
    return isSure ? [[answer, events] as const] : []
  })
}

/** The tiers that a key had before an answer. */
export const tiersOf = ({ keyEvents }: Facts, { key, seq }: Answer): string[] =>
  keyEvents.flatMap(event => (event.key === key && event.seq < seq ? (event.tier ?? []) : []))

/** What ends the secret that a request was sent with: the expiry of its key, or the rotation that replaced it before that. */
const endOf = (
  events: readonly KeyEvent[],
  answer: { readonly sent: Moment; readonly former?: true | undefined },
): KeyEvent | undefined => {
  const before = events.filter(({ until, seq }) => until !== undefined && seq < answer.sent.seq)
  const expiry = before.findLast(({ what }) => what !== 'rotated')
  const rotation = answer.former ? before.findLast(({ what }) => what === 'rotated') : undefined
  return [expiry, rotation]
    .filter(end => end !== undefined)
    .toSorted((one, other) => (one.until ?? 0) - (other.until ?? 0))[0]
}

/** When an answer may say that its secret ends; undefined for that it does not. More than one where its gateway need not know yet. */
export const expiriesOf = (facts: Facts, answer: Answer): (string | undefined)[] => {
  const events = facts.keyEvents.filter(({ key }) => key === answer.key)
  const ends = [endOf(events, answer), endOf(events, { sent: answer.sent })]
  const isSure = ends.every(end => !end || facts.isKnown(answer.gateway, end, answer.sent))
  const said = ends.map(end => (end?.until === undefined ? undefined : isoOf(end.until)))
  return isSure ? said.slice(0, 1) : [...said, undefined]
}

/** Gateways go by their own clocks, and a request may wait. */
const toleranceMs = (facts: Facts): number => facts.skewSpan + second

export const revokedRefused: Rule = (facts, report) => {
  for (const [answer, events] of answersToSure(facts)) {
    const revoked = events.find(({ what }) => what === 'revoked')
    const end = endOf(events, answer)
    const isEnded = end?.until !== undefined && answer.sent.at > end.until + toleranceMs(facts)
    const why = [revoked, isEnded ? end : undefined].find(
      event => event && facts.isKnown(answer.gateway, event, answer.sent),
    )
    if (!why) continue
    report.saw()
    const until = why.until === undefined ? '' : `, valid until ${isoOf(why.until)}`
    if (answer.status !== 401 && !isUnchecked(answer))
      report.broken(answer, `the key was ${why.what} at #${why.seq}${until}`)
  }
}

export const changesInForce: Rule = (facts, report) => {
  for (const [answer, events] of answersToSure(facts)) {
    const isKnown = (event: Moment): boolean => facts.isKnown(answer.gateway, event, answer.sent)
    const isMeanwhile = ({ seq }: Moment): boolean => answer.sent.seq < seq && seq < answer.seq
    const before = events.filter(({ seq }) => seq < answer.seq)
    const issued = events.find(({ what }) => what === 'issued')
    if (!issued || !isKnown(issued) || before.some(({ what }) => what === 'revoked')) continue
    const end = endOf(events, answer)
    if (end?.until !== undefined && answer.at >= end.until - toleranceMs(facts)) continue
    // A secret that is new must be known, and one that is replaced may end at once for whoever knows of no overlap.
    const rotation = before.findLast(({ what }) => what === 'rotated')
    if (rotation && !isKnown(rotation)) continue
    if (answer.status === 401) {
      report.saw()
      report.broken(answer, `the key was issued at #${issued.seq}`)
      continue
    }
    // The tier in force is that of the last change; one on its way may be in force or not.
    const changes = before.filter(({ tier }) => tier !== undefined)
    const tier = changes.at(-1)?.tier
    if (tier === undefined || !changes.every(isKnown) || isUnchecked(answer)) continue
    if ([...changes, ...facts.configured].some(isMeanwhile)) continue
    const limit = Number(facts.settingsAt(answer.sent.seq)[`quota.tiers.${tier}`])
    if (changes.length > 1 || answer.key !== 'plenty') report.saw()
    if (headerOf(answer, 'limit') !== limit)
      report.broken(answer, `its limit is ${headerOf(answer, 'limit')}, and ${limit} in force`)
  }
}

/** Which codes the refusal of a key may have: what happened to it before, and what its gateway need not know yet. */
export const codesOfRefusedKey = (facts: Facts, answer: Answer): string[] => {
  const { gateway, key, sent, seq, at, former } = answer
  const events = facts.keyEvents.filter(each => each.key === key && each.seq < seq)
  if (events.some(({ what }) => what === 'unsure')) return codesOf(401)
  const issued = events.find(({ what }) => what === 'issued')
  // Until a key is issued, what is sent for it has not the form of one.
  if (!issued) return ['key_malformed']
  const isKnown = (event: Moment | undefined): boolean =>
    event !== undefined && facts.isKnown(gateway, event, sent)
  const revoked = events.find(({ what }) => what === 'revoked')
  if (isKnown(revoked)) return ['key_revoked']
  const until = endOf(events, { sent: answer })?.until
  const rotated = events.findLast(({ what }) => what === 'rotated')
  return [
    ...(issued.seq > sent.seq ? ['key_malformed'] : []),
    ...(revoked ? ['key_revoked'] : []),
    ...(until !== undefined && at >= until - toleranceMs(facts) ? ['key_expired'] : []),
    ...(rotated && former ? ['key_replaced'] : []),
    ...(!isKnown(issued) || (rotated && !isKnown(rotated)) ? ['key_unknown'] : []),
  ]
}
