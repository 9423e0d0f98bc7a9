// Pages of reports and comparisons as text: one file without outside resources, in both languages, with everything that was
// measured; text from outside stands in it as text.

import { createHash } from 'node:crypto'
import t from 'tap'
import { comparePage } from '../../../src/load/report/compare-page.ts'
import { compareWords } from '../../../src/load/report/compare-words.ts'
import { differences } from '../../../src/load/report/comparison.ts'
import { reportPage as reportPageIn } from '../../../src/load/report/page.ts'
import { figuresIn } from '../../../src/load/report/page-frame.ts'
import type { ReplayResult } from '../../../src/load/report/result.ts'
import { resultWords } from '../../../src/load/report/result-words.ts'
import { timeAxis } from '../../../src/load/report/shown-steps.ts'
import { drawnRehearsal, drawnReplay } from '../../support/replay-results.ts'

const timeZone = 'Asia/Dhaka'
const reportPage = (results: readonly ReplayResult[]) => reportPageIn(results, timeZone)

const run = drawnRehearsal()
const page = reportPage([run])
const english = (html: string): string => html.slice(0, html.indexOf('<div class="version" lang="bn"'))
const textOf = (html: string): string =>
  english(html)
    .replace(/^[\s\S]*<body>/, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
const settings = (value: string): ReplayResult['settings'] =>
  value === '1h' ? [] : [{ path: 'cache.freshFor', value, default: '1h' }]

t.test('each text has the same values in both languages, and Bengali letters', async t => {
  for (const { en, bn } of [resultWords, compareWords]) {
    const used = (text: string) => [...new Set(text.match(/\{\d\}/g))].sort()
    t.strictSame(Object.keys(bn).sort(), Object.keys(en).sort())
    for (const [name, text] of Object.entries(en)) {
      const other = bn[name as never] as string
      t.strictSame(used(other), used(text), name)
      const names = other.replaceAll(/SHA-256|HTTP|Node|CPU|p\d+|\b[AB]\b|\{\d\}/g, '')
      if (name !== 'otherLanguage') t.notMatch(names, /[A-Za-z]/, name)
    }
  }
})

t.test('the page needs nothing else and lets nothing else run', async t => {
  for (const html of [page, reportPage([run, drawnRehearsal({ seed: 2 })])]) {
    const policy = /content-security-policy" content="([^"]+)"/.exec(html)?.[1] ?? ''
    const script = /<script type="module">([\s\S]*?)<\/script>/.exec(html)?.[1] ?? ''
    t.match(policy, /^default-src 'none';/)
    t.match(policy, `'sha256-${createHash('sha256').update(script).digest('base64')}'`)
    t.equal(html.match(/<script/g)?.length, 1)
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
    'All thresholds passed: 2 of 2.',
    'p99&lt;200ms',
    run.traffic.sha256,
    '6,000',
    'cache.freshFor',
    'as recorded, 345 times as fast',
    'Requests per second',
    'Latency by percentile',
    'p99.9',
    'Hit share over time',
    'Age of the weather that was served',
    'Weight within an hour',
    'Event-loop delay',
    'not saturated',
    'Dropped',
    'AMD EPYC 7763',
  ])
    t.ok(text.includes(each), each)
  t.ok(text.indexOf('All thresholds passed') < text.indexOf('What was replayed'), 'the verdict comes first')
  t.match(page, /৬,০০০টি অনুরোধ/)
  t.equal(english(page).match(/<figure/g)?.length, 7)
  t.equal(english(page).match(/<details><summary>Values as a table/g)?.length, 7)
})

t.test('requests are those that ran, whatever the files have', async t => {
  const more = drawnReplay({}, { interrupted: true, traffic: { ...run.traffic, requests: 5 } })
  const html = reportPage([more])
  t.match(textOf(html), /Replay 6,000 requests, /)
  t.match(textOf(html), 'All figures count the requests that ran: 6,000.')
  t.match(textOf(html), 'Requests 6,000; the files have 5 ')
  t.match(html, '৬,০০০টি; ফাইলে আছে ৫টি')
})

t.test('where a policy of others lets no style through, no drawing fills the page', async t => {
  const drawings = page.match(/<svg [^>]*>/g) ?? []
  t.ok(drawings.length > 14, `${drawings.length}`)
  for (const drawing of drawings) t.match(drawing, / height="(34|200|10)"/)
})

t.test('what makes figures void comes before all else', async t => {
  const bad = drawnReplay(
    {},
    {
      interrupted: true,
      generator: { ...run.generator, saturated: true, reason: 'its busiest core was 99 % used' },
      thresholds: [{ threshold: 'p99<20ms', measured: '96 ms', passed: false }],
      bodies: { checked: 100, faults: [{ path: '/api/v1/x', fault: 'no field "current"', count: 3 }] },
    },
  )
  const text = textOf(reportPage([bad]))
  const order = [
    'These are the figures of the load generator',
    'its busiest core was 99 % used',
    'stopped before its end',
    'Thresholds failed: 1 of 1.',
    'What was replayed',
    'The settings of the target are not known.',
    'Of 100 bodies that were checked, 3 do not keep the contract.',
    'What the provider was sent is not known.',
  ].map(each => text.indexOf(each))
  t.notOk(order.includes(-1))
  t.strictSame(
    order,
    order.toSorted((a, b) => a - b),
  )
})

t.test('several settings: a row each, the paretoOptimal marked, each run whole', async t => {
  const html = reportPage(
    [
      ['30m', 0.7],
      ['1h', 0.83],
      ['3h', 0.9],
    ].map(([value, hitShare], seed) =>
      drawnRehearsal({ seed, hitShare: Number(hitShare) }, { settings: settings(String(value)) }),
    ),
  )
  const text = textOf(html)
  t.match(text, /30m .* 1h \(default\) .* 3h ★/)
  t.equal(english(html).match(/<tr class="marked"><th scope="row">3h ★/g)?.length, 1)
  t.equal(english(html).match(/<details class="whole">/g)?.length, 3)
  t.notMatch(text, 'not of the same traffic')
  const others = [run, drawnRehearsal({}, { traffic: { ...run.traffic, sha256: '0'.repeat(64) } })]
  t.match(textOf(reportPage(others)), 'not of the same traffic')

  t.notMatch(english(html), />Not answered</)
  const { totals } = run
  const failing = { ...run, totals: { ...totals, dropped: 1_234, failed: { timeout: 40, reset: 2 } } }
  const beside = english(reportPage([run, failing]))
  t.match(beside, /<th[^>]*>p99<\/th><th[^>]*>Not answered<\/th><th[^>]*>Dropped<\/th>/)
  t.match(beside, /<td[^>]*>42<\/td><td[^>]*>1,234<\/td>/)
})

t.test('text from outside stands in it as text', async t => {
  const hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\u001b[31m&amp;'
  const html = reportPage([
    drawnRehearsal(
      {},
      {
        command: hostile,
        traffic: { ...run.traffic, files: [hostile], sha256: hostile },
        settings: [{ path: hostile, value: hostile, default: hostile }],
        machine: { ...run.machine, cpu: hostile },
        thresholds: [{ threshold: hostile, measured: hostile, passed: true }],
        latencies: [{ ...run.latency, endpoint: hostile, outcome: hostile }],
        statuses: { [hostile]: 3 },
        outcomes: { hit: 1, [hostile]: 3 },
        totals: { ...run.totals, failed: { [hostile]: 1 } },
        generator: { ...run.generator, reason: hostile, saturated: true },
        bodies: { checked: 3, faults: [{ path: hostile, fault: hostile, count: 2 }] },
      },
    ),
  ])
  t.equal(html.match(/<script/g)?.length, 1)
  t.notMatch(html, /<img|\u202e|\p{Cc}(?<!\n)/u)
  t.match(html, '&lt;script&gt;')
})

t.test('runs of nothing, of one step and of many steps have a page', async t => {
  for (const run of [
    drawnRehearsal({ requests: 0 }),
    drawnReplay({ requests: 1 }),
    drawnReplay({}, { steps: [], histogram: run0().histogram }),
    drawnRehearsal({}, { traffic: { ...drawnRehearsal().traffic, from: null } }),
  ]) {
    const html = reportPage([run])
    t.notMatch(textOf(html), /NaN|undefined|Infinity|null/)
    t.notMatch(html, /"[^"]*NaN[^"]*"/)
  }
})
const run0 = () => drawnRehearsal({ requests: 10 })

t.test('times of day and their days are those of the zone of the gateway', async t => {
  const from = '2026-11-21T18:10:00.000Z'
  const run = drawnRehearsal({}, { traffic: { ...drawnRehearsal().traffic, from } })
  const begin = (zone: string) =>
    timeAxis(run, { steps: [], seconds: 200_000 }, figuresIn('en', zone)).write(0)
  t.equal(begin('Asia/Dhaka'), '22 Nov 00:10')
  t.equal(begin('Asia/Kathmandu'), '21 Nov 23:55')
  t.equal(begin('UTC'), '21 Nov 18:10')
})

t.test('a comparison has both sides, verdicts and how they were found', async t => {
  const [a, b] = [drawnRehearsal({}, { settings: [] }), drawnRehearsal({ seed: 2, slow: 1.4 })]
  const html = comparePage(
    {
      a: [a],
      b: [b],
      warnings: [{ obstacle: 'traffic', a: 'x', b: 'y' }],
      differences: differences([a], [b]),
      limits: [{ limit: 'p99>+10%', change: 0.4, verdict: 'failed' }],
      bodies: {
        paths: 3,
        same: 1,
        different: 1,
        missingInA: 1,
        missingInB: 0,
        examples: [{ path: '/x', a: ['200 ab'], b: [] }],
      },
    },
    timeZone,
  )
  const text = textOf(html)
  for (const each of [
    'The traffic differs: A has hash x, B has y.',
    'A: defaults. B: cache.freshFor=3h.',
    'Limits of change broken: 1 of 1.',
    'worse',
    'noise',
    'Intervals are of 99 %.',
    'Of 3 paths 1 were answered alike; 1 differ, 0 are missing in B, 1 in A.',
  ])
    t.ok(text.includes(each), each)
  t.notMatch(text, /NaN|undefined|Infinity/)
})
