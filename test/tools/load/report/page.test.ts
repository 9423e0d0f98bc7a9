// Without it a report could run foreign scripts, or lack figures that were measured.

import { createHash } from 'node:crypto'
import t from 'tap'
import { rehearsalText } from '../../../../tools/load/cli/settings-text.ts'
import { comparePage } from '../../../../tools/load/report/compare-page.ts'
import { differences } from '../../../../tools/load/report/comparison.ts'
import type { ReplayResult } from '../../../../tools/load/report/result.ts'
import { reportPage as reportPageIn } from '../../../../tools/load/report/run-page.ts'
import { drawnRehearsal, drawnReplay } from './drawn-results.ts'

const timeZone = 'Asia/Dhaka'
const reportPage = (results: readonly ReplayResult[]) => reportPageIn(results, timeZone)

const run = drawnRehearsal()
const page = reportPage([run])
const bodyOf = (html: string): string => html.slice(html.indexOf('<body>'), html.indexOf('<script'))
const textOf = (html: string): string =>
  bodyOf(html)
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
const dataOf = (html: string) =>
  JSON.parse(/<script type="application\/json" id="data">([^<]*)<\/script>/.exec(html)?.[1] ?? '')
const settings = (value: string): ReplayResult['settings'] =>
  value === '1h' ? [] : [{ path: 'cache.freshFor', value, default: '1h' }]

t.test('the page needs nothing else and lets nothing else run', async t => {
  for (const html of [page, reportPage([run, drawnRehearsal({ seed: 2 })])]) {
    const policy = /content-security-policy" content="([^"]+)"/.exec(html)?.[1] ?? ''
    const run = [...html.matchAll(/<(script|style)(?: type="module")?>([\s\S]*?)<\/\1>/g)]
    t.equal(run.length, 3, 'a style, the library and the script')
    for (const [, , text = ''] of run)
      t.ok(policy.includes(`'sha256-${createHash('sha256').update(text).digest('base64')}'`))
    t.match(policy, /^default-src 'none';/)
    t.notMatch(policy, /unsafe|https?:/)
    t.notMatch(html, / (style|on[a-z]+)="/, 'nothing that the policy would stop')
    t.equal(html.match(/<script/g)?.length, 3)
    t.notMatch(html, /(src|href)="(?!data:|#)/)
    t.notMatch(html, /@import|url\(/)
    t.match(html, /--ground: light-dark\(/, 'the colours of the dashboard')
    const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
    t.equal(new Set(ids).size, ids.length, 'each id once')
  }
})

t.test('a report has all that was measured', async t => {
  const text = textOf(page)
  for (const each of [
    ...['All thresholds passed: 2 of 2.', 'p99&lt;200ms', run.traffic.sha256, '6,000', 'cache.freshFor'],
    ...['as recorded, 345 times as fast', 'p99.9', 'Age, oldest', 'Event-loop delay', 'not saturated'],
    ...['Dropped', 'AMD EPYC 7763', 'Time zone: Asia/Dhaka'],
  ])
    t.ok(text.includes(each), each)
  t.ok(text.indexOf('All thresholds passed') < text.indexOf('Traffic'), 'the verdict comes first')
  const places = [...page.matchAll(/data-of="0" data-charts="([^"]+)"/g)].flatMap(([, names = '']) =>
    names.split(' '),
  )
  t.strictSame(places, ['rate', 'percentiles', 'latency', 'hits', 'age', 'weight', 'lateness'])
})

t.test('the results stand in it as in their files', async t => {
  const { timeZone, runs } = dataOf(page)
  t.equal(timeZone, 'Asia/Dhaka')
  t.strictSame(runs[0].result, run)
  const [median] = runs[0].percentiles.filter(([percent]: [number]) => percent >= 50)
  t.ok(Math.abs(median[1] - (run.latency.p50 ?? 0)) < 0.1, `${median}`)
  t.equal(dataOf(reportPage([run, run])).points.length, 2)
})

t.test('what makes figures void comes before all else', async t => {
  const bad = {
    interrupted: true,
    generator: { ...run.generator, saturated: true, reason: 'its busiest core was 99 % used' },
    thresholds: [{ threshold: 'p99<20ms', measured: '96 ms', passed: false }],
    bodies: { checked: 100, faults: [{ path: '/api/v1/x', fault: 'no field "current"', count: 3 }] },
  }
  const text = textOf(reportPage([drawnReplay({}, bad)]))
  const order = [
    'These are the figures of the load generator',
    'its busiest core was 99 % used',
    'stopped before its end',
    'Thresholds failed: 1 of 1.',
    'Traffic',
    'The settings are not known.',
    'Of 100 checked bodies, 3 don’t match the API schema.',
    'The requests to the provider are not known.',
  ].map(each => text.indexOf(each))
  t.notOk(order.includes(-1))
  t.strictSame(
    order,
    order.toSorted((a, b) => a - b),
  )
})

t.test('several settings: a row each, the paretoOptimal marked, each run whole', async t => {
  const runs = Object.entries({ '30m': 0.7, '1h': 0.83, '3h': 0.9 }).map(([value, hitShare], seed) =>
    drawnRehearsal({ seed, hitShare }, { settings: settings(value) }),
  )
  const html = reportPage(runs)
  const text = textOf(html)
  t.match(text, /30m .* 1h \(default\) .* 3h ★/)
  t.equal(bodyOf(html).match(/<tr class="marked"><th scope="row">3\. 3h ★/g)?.length, 1)
  t.equal(bodyOf(html).match(/<details class="panel whole">/g)?.length, 3)
  t.notMatch(text, 'replayed different traffic')
  const others = [run, drawnRehearsal({}, { traffic: { ...run.traffic, sha256: '0'.repeat(64) } })]
  t.match(textOf(reportPage(others)), 'replayed different traffic')

  t.notMatch(bodyOf(html), />Unanswered</)
  const { totals } = run
  const failing = { ...run, totals: { ...totals, dropped: 1_234, failed: { timeout: 40, reset: 2 } } }
  const beside = bodyOf(reportPage([run, failing]))
  t.match(beside, /<th[^>]*>p99<\/th><th[^>]*>Unanswered<\/th><th[^>]*>Dropped<\/th>/)
  t.match(beside, /<td[^>]*>42<\/td><td[^>]*>1,234<\/td>/)
})

t.test('text from outside stands in it as text', async t => {
  const hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\u001b[31m&amp;'
  const written = {
    ...{ command: hostile, statuses: { [hostile]: 3 }, outcomes: { hit: 1, [hostile]: 3 } },
    traffic: { ...run.traffic, files: [hostile], sha256: hostile },
    settings: [{ path: hostile, value: hostile, default: hostile }],
    machine: { ...run.machine, cpu: hostile },
    thresholds: [{ threshold: hostile, measured: hostile, passed: true }],
    latencies: run.latencies.map(each => ({ ...each, endpoint: hostile, outcome: hostile })),
    totals: { ...run.totals, failed: { [hostile]: 1 } },
    generator: { ...run.generator, reason: hostile, saturated: true },
    bodies: { checked: 3, faults: [{ path: hostile, fault: hostile, count: 2 }] },
  }
  const html = reportPage([drawnRehearsal({}, written)])
  t.equal(html.match(/<script/g)?.length, 3)
  t.notMatch(html, /<img|\u202e|\p{Cc}(?<!\n)/u)
  t.match(html, '&lt;script&gt;')
})

t.test('runs of nothing, of one step and of many steps have a page', async t => {
  for (const each of [
    drawnRehearsal({ requests: 0 }),
    drawnReplay({ requests: 1 }),
    drawnReplay({}, { steps: [], histogram: drawnRehearsal({ requests: 10 }).histogram }),
    drawnRehearsal({}, { traffic: { ...run.traffic, from: null } }),
  ])
    t.notMatch(textOf(reportPage([each])), /NaN|undefined|Infinity|null/)
})

t.test('a comparison has both sides, verdicts and how they were found', async t => {
  const runs = (from: number, slow: number, changes = {}) =>
    Array.from({ length: 5 }, (_, i) => drawnRehearsal({ requests: 1_000, seed: from + i, slow }, changes))
  const [a, b] = [runs(1, 1, { settings: [] }), runs(101, 1.4)]
  const warnings = [{ obstacle: 'traffic', a: 'x', b: 'y' }] as const
  const limits = [{ limit: 'p99>+10%', change: 0.4, verdict: 'failed' }] as const
  const compared = { a, b, warnings, differences: differences(a, b), limits }
  const html = comparePage(compared, timeZone)
  t.match(textOf(html), 'Time zone: Asia/Dhaka')
  const text = textOf(html)
  for (const each of [
    'The traffic differs: A has hash x, B has y.',
    '5 against 5 runs',
    'Limits of change failed: 1 of 1.',
    'worse',
    'noise',
    'Compares the medians of the runs',
  ])
    t.ok(text.includes(each), each)
  t.notMatch(text, /NaN|undefined|Infinity/)
})

// The shares of hits, stale answers and misses are of the answers with weather: lists of places and failures are not among them.
t.test('a rehearsal has one stale share and one age, in its text, page and comparison', async t => {
  const outcomes = { hit: 500, stale: 155, miss: 345, none: 1_000 }
  const result = drawnRehearsal({}, { outcomes, age: { p50: 172, p95: 3_599, max: 5_399 } })
  const rehearsed = { name: '', result, days: [], providerRefused: 0 }
  const text = rehearsalText([rehearsed], { 'own key': 1, substitute: 0, nothing: 0 })
  t.match(text, /as configured +50\.0 % +15\.5 % +34\.5 %.* 2 min +59 min +1 h 29 min/)
  const beside = textOf(reportPage([result, drawnRehearsal({ seed: 2 })]))
  t.match(beside, / 50% 15\.5% .* 2 min 59 min 1 h 29 min /)
  t.match(textOf(reportPage([result])), /hit 500 50% miss 345 34\.5% stale 155 15\.5%/)
  const stale = differences([result], [result]).find(({ metric }) => metric === 'stale')
  t.match(stale, { a: { value: 0.155 } })
})

t.test('a setting that fails is marked for no share of the rest', async t => {
  const of = (value: string) => [{ path: 'cache.freshFor', value, default: '1h' }]
  const good = drawnRehearsal({}, { outcomes: { hit: 800, miss: 200 }, settings: of('1h') })
  const weightless = { requests: 1, weight: 0, windows: [] }
  const failures = { outcomes: { hit: 90, miss: 10 }, statuses: { 200: 100, 503: 900 } }
  const failing = drawnRehearsal({ seed: 2 }, { ...failures, settings: of('2h') })
  const weight = good.provider?.weight ?? 0
  const page = textOf(reportPage([good, { ...failing, provider: { ...weightless, weight: weight + 1 } }]))
  t.match(page, / 1h ★ 80% /)
  t.notMatch(page, /2h ★/)
})
