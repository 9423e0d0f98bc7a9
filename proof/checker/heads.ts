// Part of promise 5: an answer to HEAD has the tag and the length of the body that a GET would have shown. Which of its other headers are
// right is in headers.ts.

import type { Answer } from '../history.ts'
import { type Facts, headerOf } from './facts.ts'
import { isStatusPage } from './paths.ts'
import type { Rule } from './rule.ts'
import { keptMs } from './status-spans.ts'

/** @param bodies by their tags */
export const headsAsGets = (
  facts: Facts,
  report: Parameters<Rule>[1],
  bodies: ReadonlyMap<string, string>,
): void => {
  for (const answer of [...facts.answers, ...facts.pages])
    if (answer.method === 'HEAD' && answer.status === 200) {
      const fault = tagFault(facts, answer) ?? lengthFault(facts, answer, bodies)
      if (fault) report.broken(answer, fault)
    }
}

/** No gateway goes back to what it had before, so that nothing else is between two answers with the same tag. */
const tagFault = (facts: Facts, answer: Answer): string | undefined => {
  const { gateway, run, path, sent, seq, headers } = answer
  const isPage = isStatusPage(answer)
  const shown = (isPage ? facts.pages : facts.answers).filter(
    each =>
      each.path === path &&
      each.gateway === gateway &&
      each.run === run &&
      each.method === undefined &&
      each.headers.etag !== undefined,
  )
  const before = shown.findLast(each => each.seq < sent.seq)
  const after = shown.find(each => each.sent.seq > seq)
  if (!before || !after || before.headers.etag !== after.headers.etag) return undefined
  // A status may come back, and a name.
  const isLong = isPage && after.at - before.sent.at >= keptMs
  const isRenewed = facts.of('renewed').some(each => each.seq > before.sent.seq && each.seq < after.seq)
  if (isLong || isRenewed || headers.etag === before.headers.etag) return undefined
  return `etag is ${headers.etag}, and #${before.seq} and #${after.seq} have ${before.headers.etag}`
}

/** How long a body is when compressed may change. */
const lengthFault = (
  facts: Facts,
  answer: Answer,
  bodies: ReadonlyMap<string, string>,
): string | undefined => {
  if (answer.headers['content-encoding'] !== undefined) return undefined
  const body = answer.path === '/key' ? keyBodyFor(facts, answer) : bodies.get(answer.headers.etag ?? '')
  if (body === undefined) return undefined
  const length = Buffer.byteLength(body)
  const said = answer.headers['content-length']
  return said === String(length) ? undefined : `content-length is ${said}, and its body has ${length} bytes`
}

/** That of another answer of the same day, with the counts that this one's headers have; undefined where more may differ. */
const keyBodyFor = (facts: Facts, answer: Answer): string | undefined => {
  const { key, seq } = answer
  const [limit, remaining, reset] = (['limit', 'remaining', 'reset'] as const).map(name =>
    headerOf(answer, name),
  ) as [number, number, number]
  const changes = [...facts.keyEvents.filter(each => each.key === key), ...facts.of('configured')]
  const other = facts.answers.findLast(
    each =>
      each.path === '/key' &&
      each.key === key &&
      each.former === answer.former &&
      each.status === 200 &&
      each.method === undefined &&
      each.seq < seq &&
      headerOf(each, 'reset') === reset &&
      !changes.some(change => change.seq > each.sent.seq && change.seq < seq),
  )
  // A limit that was lowered may be below what was used; and what Redis lost is not known.
  if (!other || remaining === 0 || facts.firstTrouble < seq) return undefined
  const { days = [], ...more } = JSON.parse(other.body) as { days?: object[] }
  const used = limit - remaining
  return JSON.stringify({ ...more, used, remaining, days: days.with(0, { ...days[0], used }) })
}
