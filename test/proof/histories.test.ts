// Without it a real fleet could break a promise, and the checker not find it.

import t from 'tap'
import { judge } from '../../proof/checker/judge.ts'
import { openLane } from '../../proof/fleet/lane.ts'
import type { Answer, History, HistoryEvent } from '../../proof/history.ts'
import type { PromiseNumber } from '../../proof/promises.ts'
import { scheduleOf } from '../../proof/schedule.ts'
import { runUndisturbed } from '../../proof/undisturbed.ts'

const brokenIn = (history: History): PromiseNumber[] => [
  ...new Set(judge(history).violations.map(({ promise }) => promise)),
]
/** The same history with another form of its first answer that fits. */
const changed = (
  history: History,
  fits: (answer: Answer) => boolean,
  change: (answer: Answer) => Answer,
): History => {
  const at = history.events.findIndex(event => event.kind === 'answer' && fits(event))
  const found = history.events[at] as Answer
  return { ...history, events: history.events.with(at, change(found) as HistoryEvent) }
}
const hasWeather = ({ status, path, body }: Answer): boolean =>
  status === 200 && path.includes('/weather') && body.length > 0

t.test('a history of faults keeps every promise, and a changed one is found out', async t => {
  const lane = await openLane()
  t.teardown(lane.close)
  const { history, verdict, isDisturbed } = await runUndisturbed(lane, scheduleOf(1), 4)
  const { violations, exercised } = verdict
  if (isDisturbed) t.comment(`no evidence: the machine stood still for ${history.stalledMs} ms in each try`)
  else t.strictSame(violations, [])
  for (const promise of [1, 2, 3, 4, 5, 7, 8, 9, 13] as const)
    t.ok((exercised[promise] ?? 0) > 0, `promise ${promise} was exercised`)

  // An answer that did not come, a status that the contract does not have, a temperature that the provider did not say.
  for (const [promise, change] of [
    [1, answer => ({ ...answer, status: 0, body: '', failure: 'none' })],
    [2, answer => ({ ...answer, status: 502 })],
    [
      3,
      ({ body, ...answer }) => ({
        ...answer,
        body: body.replace(/("temperature[^"]*": ?)-?[\d.]+/, '$1-77.7'),
      }),
    ],
  ] as [PromiseNumber, (answer: Answer) => Answer][])
    t.ok(brokenIn(changed(history, hasWeather, change)).includes(promise), `promise ${promise}`)
})
