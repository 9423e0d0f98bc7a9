// Without it `replay report` could pass a broken limit, or fail with a stack trace.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { checkMistakes, type Mistake, runCommands } from '../../../support/printed.ts'
import { drawnRehearsal, drawnReplay } from '../report/drawn-results.ts'

const traffic = { ...drawnRehearsal({ requests: 10 }).traffic, sha256: 'f'.repeat(64) }
const side = (from: number, slow: number) =>
  JSON.stringify(
    Array.from({ length: 5 }, (_, i) =>
      drawnReplay({ requests: 1_000, seed: from + i, slow }, { settings: [] }),
    ),
  )
const folder = t.testdir({
  'a.json': JSON.stringify(drawnReplay({ seed: 1, slow: 10 }, { settings: [] })),
  'b.json': JSON.stringify(drawnReplay({ seed: 2, slow: 14 })),
  'five-a.json': side(1, 10),
  'five-b.json': side(101, 14),
  'other.json': JSON.stringify(drawnReplay({ seed: 2 }, { traffic })),
  'both.json': JSON.stringify([drawnRehearsal({ requests: 100 }), drawnRehearsal({ requests: 100 })]),
  'none.json': '[]',
  'text.json': 'p99 was good\u001b[31m',
  'old.json': '{"format":"abohawa-replay/0"}',
  'histogram.json': JSON.stringify(drawnRehearsal({ requests: 100 }, { histogram: 'AAAA' })),
})
const at = (name: string): string => join(folder, name)
const report = (...rest: string[]): string[] => ['replay', 'report', ...rest]
const [a, b] = [at('a.json'), at('b.json')]

const done = await runCommands([
  report(a, b),
  report(a, b, '--json', '--out', at('page.html')),
  report(a, b, '--fail-if', 'p50>+5%', '--fail-if', 'hits<-50%'),
  report(a, b, '--fail-if', 'p50>+80%'),
  report(a, at('other.json')),
  report(at('five-a.json'), at('five-b.json')),
  report(at('five-a.json'), at('five-a.json'), '--fail-if', 'max>-1%', '--out', at('undecided.html')),
  report(a, '--out', at('report.html')),
  report(at('both.json'), '--json', '--out', at('several.html')),
])
const outcome = (i: number) => done[i] ?? { code: -1, stdout: '', stderr: '' }

t.test('a comparison as text, as JSON and as a page', async t => {
  const { code, stdout } = outcome(0)
  t.equal(code, 0)
  t.match(stdout, /^A: .*a\.json\nB: .*b\.json\n\nmetric +A +B +change of B +verdict\n/)
  t.match(stdout, /^p90 .* \+\d\d\.\d% +-$/m)
  t.match(stdout, /^No verdicts: they require 5 undisturbed runs per side,/m)
  const { stdout: json } = outcome(1)
  const value = JSON.parse(json)
  t.hasStrict(value, { a, b, runs: { a: 1, b: 1 }, warnings: [], limits: [], out: at('page.html') })
  t.match(value.differences[0], { metric: 'p50', unit: 'ms', verdict: null, a: { value: Number } })
  t.match(readFileSync(at('page.html'), 'utf8'), '<title>Comparison</title>')
})

t.test('limits of change end with 99', async t => {
  t.equal(outcome(2).code, 99)
  t.match(outcome(2).stdout, /^p50>\+5% .* failed$/m)
  t.match(outcome(2).stdout, /^hits<-50% .* passed$/m)
  t.equal(outcome(3).code, 0)
})

t.test('a limit that the runs do not decide ends with 1, and says so', async t => {
  const { code, stdout } = outcome(6)
  t.equal(code, 1)
  t.match(stdout, /^max>-1% .* not decided$/m)
  t.match(stdout, /^Limits of change that these runs can’t decide: 1 of 1\. The change may be chance/m)
  t.match(readFileSync(at('undecided.html'), 'utf8'), 'that these runs can’t decide')
})

t.test('other traffic is compared with a warning on top; several runs a side by their medians', async t => {
  const differs = /Compare with care:\n {2}The traffic differs: A has hash 5d4.*, B has fff/
  t.match(outcome(4), { code: 0, stdout: differs })
  t.match(outcome(5), { code: 0, stdout: /^A: .*five-a\.json, 5 runs\nB: .*five-b\.json, 5 runs\n/ })
  t.match(outcome(5).stdout, /^p50 .* worse\n[\s\S]*^weather age, median .* noise$/m)
})

t.test('one file is a report of its runs, as text and as a page', async t => {
  const report = /^Replayed: .*\n\n {2}requests +[\d,]+ due[\s\S]*\nendpoint +outcome/
  t.match(outcome(7), { code: 0, stdout: report })
  t.match(readFileSync(at('report.html'), 'utf8'), '<title>Replay</title>')
  t.strictSame(JSON.parse(outcome(8).stdout), { file: at('both.json'), results: 2, out: at('several.html') })
  t.match(readFileSync(at('several.html'), 'utf8'), '<title>Settings compared</title>')
})

t.test('whatever else is given is one sentence', async t => {
  const no = 'is not a result of replay or rehearse'
  const notJson = /text\.json is not JSON; give a result of replay or rehearse/
  const mistakes: Mistake[] = [
    [report(), 2, /missing required argument 'file'/],
    [report(a, b, a), 2, /too many arguments/],
    [report(a, '--fail-if', 'p99>1%'), 2, /--fail-if requires two result files/],
    [report(a, b, '--fail-if', 'speed>1%'), 2, /--fail-if must be a change such as .*, got "speed>1%"/],
    [report(a, b, '--out', at('x.txt')), 2, /--out must end in \.html, got ".*x\.txt"/],
    [report(a, b, '--out', at('absent/x.html')), 1, /can't be written: ".*absent" is a folder that is mis/],
    [report(a, at('absent.json')), 1, /absent\.json can't be read: there is no such file/],
    [report('-'), 1, /a result can't be read from standard input; give a file/],
    [report(a, folder), 1, /can't be read: it is a directory/],
    [report(a, at('text.json')), 1, notJson],
    [report(a, at('old.json')), 1, new RegExp(`old\\.json ${no}: format: `)],
    [report(a, at('histogram.json')), 1, new RegExp(`histogram\\.json ${no}: histogram: `)],
    [report(a, at('none.json')), 1, /none\.json must have 1 to 200 results, got 0/],
  ]
  await checkMistakes(t, mistakes)
  t.notOk(existsSync(at('absent')))
})
