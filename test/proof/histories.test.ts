// Without it a real fleet could break a promise, and the checker not find it.

import t from 'tap'
import { judge } from '../../proof/checker/judge.ts'
import { openLane } from '../../proof/fleet/lane.ts'
import type { Answer, History, HistoryEvent } from '../../proof/history.ts'
import type { PromiseNumber } from '../../proof/promises.ts'
import { runSchedule } from '../../proof/run.ts'
import { scheduleOf } from '../../proof/schedule.ts'

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
  const history = await runSchedule(lane, scheduleOf(1))
  const { violations, exercised } = judge(history)
  t.strictSame(violations, [])
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

  const others = history.events.filter(({ kind }) => kind !== 'answer')
  const verdictOn = (answer: Answer): string =>
    JSON.stringify(judge({ ...history, events: [...others, answer].toSorted((a, b) => a.seq - b.seq) }))
  for (const [kind, answer] of oneOfEach(history)) {
    // It is alone, which breaks promises about all answers.
    const usual = verdictOn(answer)
    const isFound = (other: Answer): boolean => verdictOn(other) !== usual
    const { headers, body } = answer
    const unnoticed = [
      ...Object.keys(headers).filter(name => !isFound({ ...answer, headers: { ...headers, [name]: '-' } })),
      ...leavesOf(body === '' ? {} : JSON.parse(body))
        .filter(([, other]) => !isFound({ ...answer, body: JSON.stringify(other) }))
        .map(([path]) => path),
    ]
    t.strictSame(unnoticed, [], `${kind}: each header and field has a rule`)
  }
})

/** The first answer of each endpoint and status, with the most fields. */
const oneOfEach = ({ events }: History): Map<string, Answer> => {
  const found = new Map<string, Answer>()
  for (const event of events) {
    if (event.kind !== 'answer' || event.status === 0 || event.method === 'HEAD') continue
    const [, path = ''] = /^(\/\w+(?:\.json|\?\w+=|\/coords)?)/.exec(event.path) ?? []
    const kind = `${event.status} ${event.status < 400 ? path : ''}`
    const known = found.get(kind)
    if (!known || (event.path.includes('include=') && !known.path.includes('include=')))
      found.set(kind, event)
  }
  return found
}

/** Each value in a body by its path, of lists that of the first item, with the body that has another there. */
const leavesOf = (value: unknown): [string, unknown][] => {
  if (typeof value !== 'object' || value === null)
    return [['', typeof value === 'number' ? value + 1e6 : '-']]
  const isList = Array.isArray(value)
  const names = Object.keys(value).slice(0, isList ? 1 : undefined)
  return names.flatMap(name =>
    leavesOf((value as Record<string, unknown>)[name]).map(([path, other]): [string, unknown] => [
      `${name} ${path}`,
      isList ? value.with(Number(name), other) : { ...value, [name]: other },
    ]),
  )
}
