// Without it a header or a field of an answer could have a wrong value, and the checker not find it.

import t from 'tap'
import { judge } from '../../proof/checker/judge.ts'
import { openLane } from '../../proof/fleet/lane.ts'
import type { Answer, History, HistoryEvent } from '../../proof/history.ts'
import { runSchedule } from '../../proof/run.ts'
import { type Changed, withOtherBodies, withOtherHeaders } from './changed-answers.ts'
import { quietSchedule } from './quiet-schedule.ts'

/** Changes that no rule finds yet. One that is found must not be here. */
const unnoticed: readonly RegExp[] = [
  // The backoff of a cell is drawn at random.
  /500 "provider_failing", retry-after: one more/,
]

// Found where another answer shows it: of the same body, or from the same gateway before. A refresh may be too quick for that.
const foundAtTimes: readonly RegExp[] = [/fwd=stale .*(?:etag: other|cache-status: memory said as redis)/]

/**
 * An answer of each kind: its status, endpoint, method and what the cache did. Of those the first that took least of the clock, which
 * goes on where a machine is slow: until then more than one value is right.
 */
const oneOfEach = ({ events }: History): Map<string, Answer> => {
  const found = new Map<string, Answer>()
  for (const event of events) {
    if (event.kind !== 'answer' || event.status === 0) continue
    const { status, path, method = 'GET', headers } = event
    const [, endpoint = ''] = /^(\/\w+(?:\.json|\?\w+=|\/coords)?)/.exec(path) ?? []
    const [cached = ''] = /hit; ttl=-|hit|fwd=miss|fwd=stale/.exec(headers['cache-status'] ?? '') ?? []
    const [tier = ''] = /detail=\w+/.exec(headers['cache-status'] ?? '') ?? []
    const [code = ''] = /"(?:rate_limited|quota_\w+|provider_\w+)"/.exec(event.body) ?? []
    const kind = [method, status < 400 ? endpoint : '', status, cached, tier, code].filter(Boolean).join(' ')
    const known = found.get(kind)
    if (!known || clockTimeOf(event) < clockTimeOf(known)) found.set(kind, event)
  }
  return found
}

const clockTimeOf = ({ sent, at }: Answer): number => at - sent.at

/** Finds changes of an answer: in the history without the other answers, which is quick, or else in the whole history. */
const finderIn = (history: History, answer: Answer): ((changed: Answer) => boolean) => {
  const judged = (one: Answer, isAlone: boolean) =>
    judge({
      ...history,
      events: history.events.flatMap((event): HistoryEvent[] => {
        if (event === answer) return [one]
        return isAlone && event.kind === 'answer' ? [] : [event]
      }),
    }).violations
  // It is alone, which breaks promises about all answers.
  const usual = new Set(judged(answer, true).map(({ promise }) => promise))
  return changed =>
    judged(changed, true).some(({ promise }) => !usual.has(promise)) || judged(changed, false).length > 0
}

/** What is wrong where the last status page with an outage of weather has none. */
const faultsWithoutOutage = (history: History): string => {
  const { events } = history
  const at = events.findLastIndex(event => event.kind === 'answer' && event.body.includes('"of":"weather"'))
  const told = events[at] as Answer
  const hidden = { ...told, body: told.body.replace(/"outages":\[.*?\]/, '"outages":[]') }
  const { violations } = judge({ ...history, events: events.with(at, hidden) })
  return violations.map(({ detail }) => detail).join('\n')
}

t.test('a change of any header or field of any kind of answer is found', async t => {
  const lane = await openLane()
  t.teardown(lane.close)
  const history = await runSchedule(lane, quietSchedule)
  t.strictSame(judge(history).violations, [])
  const missed: string[] = []
  const bodies = new Set<string>()
  for (const [kind, answer] of oneOfEach(history)) {
    const isFound = finderIn(history, answer)
    // What the cache did changes headers only.
    const [form = ''] = /^.* \d{3}(?: ")?/.exec(kind) ?? []
    const changes: Changed[] = [
      ...withOtherHeaders(answer),
      ...(bodies.has(form) ? [] : withOtherBodies(answer)),
    ]
    bodies.add(form)
    for (const { what, answer: changed } of changes) if (!isFound(changed)) missed.push(`${kind}, ${what}`)
  }
  t.strictSame(
    missed.filter(what => ![...unnoticed, ...foundAtTimes].some(pattern => pattern.test(what))),
    [],
    'all others are found',
  )
  t.strictSame(
    unnoticed.filter(pattern => !missed.some(what => pattern.test(what))),
    [],
    'what is found is not said to be unnoticed',
  )
  t.match(faultsWithoutOutage(history), /it lacks the outage of weather/, 'so is an outage that is hidden')
})
