// The shares of hits, stale answers and misses, and the ages: the same in the text of a command as on its page, and by one
// definition, of the answers with weather. Answers without weather, such as lists of places, and failures are not among them.

import t from 'tap'
import { rehearsalText } from '../../src/cli/load/rehearse-text.ts'
import { leftText } from '../../src/cli/terminal.ts'
import { differences } from '../../src/load/report/comparison.ts'
import type { ReplayResult } from '../../src/load/report/result.ts'
import { reportPage as reportPageIn } from '../../src/load/report/run-page.ts'
import { createTally, servedShare } from '../../src/load/what-if/tally.ts'
import { drawnRehearsal } from '../support/replay-results.ts'

t.test('what is left is told when enough is done to tell', async t => {
  for (const [share, seconds, text] of [
    [0, 3, ''],
    [1 / 2_640, 3, ''],
    [0.05, 3, ''],
    [0.05, 30, ', 9 min 30 s left'],
    [0.1, 2, ', 18 s left'],
    [0.5, 0.5, ', 1 s left'],
    [1.1, 20, ', 0 s left'],
  ] as const)
    t.equal(leftText(share, seconds), text, `${share} after ${seconds} s`)
})

const timeZone = 'Asia/Dhaka'
const reportPage = (results: readonly ReplayResult[]) => reportPageIn(results, timeZone)

const textOf = (page: string): string =>
  page
    .slice(page.indexOf('<body>'), page.indexOf('<script'))
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')

t.test('a rehearsal has one stale share and one age, in its text, page and comparison', async t => {
  const outcomes = { hit: 500, stale: 155, miss: 345, none: 1_000 }
  const result = drawnRehearsal({}, { outcomes, age: { p50: 172, p95: 3_599, max: 5_399 } })
  const rehearsed = { name: '', result, days: [], providerRefused: 0, plans: [] }
  const text = rehearsalText([rehearsed], { 'own key': 1, substitute: 0, nothing: 0 })
  t.match(text, /as configured +50\.0 % +15\.5 % +34\.5 %.* 2 min +59 min +89 min/)
  const beside = textOf(reportPage([result, drawnRehearsal({ seed: 2 })]))
  t.match(beside, / 50% 15\.5% .* 2 min 59 min 1 h 29 min /)
  t.match(textOf(reportPage([result])), /hit 500 50% miss 345 34\.5% stale 155 15\.5%/)
  const stale = differences([result], [result]).find(({ metric }) => metric === 'stale')
  t.match(stale, { a: { value: 0.155 } })
})

t.test('a setting that fails is marked for no share of the rest', async t => {
  const settings = (value: string) => [{ path: 'cache.freshFor', value, default: '1h' }]
  const good = drawnRehearsal({}, { outcomes: { hit: 800, miss: 200 }, settings: settings('1h') })
  const weightless = { requests: 1, weight: 0, windows: [] }
  const failures = { outcomes: { hit: 90, miss: 10 }, statuses: { 200: 100, 503: 900 } }
  const failing = drawnRehearsal({ seed: 2 }, { ...failures, settings: settings('2h') })
  const weight = good.provider?.weight ?? 0
  const page = textOf(reportPage([good, { ...failing, provider: { ...weightless, weight: weight + 1 } }]))
  t.match(page, / 1h ★ 80% /)
  t.notMatch(page, /2h ★/)
})

t.test('what failed is no answer with weather', async t => {
  const tally = createTally(() => 0, 60_000, 0)
  for (const outcome of ['hit', 'hit', 'stale', 'miss'] as const) {
    tally.request()
    tally.onRead(outcome, 'memory', 0)
  }
  tally.request()
  tally.failed()
  const figures = tally.figures()
  t.match(figures, { weather: 5, failed: 1, hitShare: 0.5 })
  t.equal(servedShare(figures.stale, figures), 0.25)
  t.equal(servedShare(0, { weather: 2, failed: 2 }), 0, 'all failed')
})
