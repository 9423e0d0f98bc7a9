// Without it, a damaged report of one instance could break the status of the whole fleet.

import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { stoppedReport } from '../../src/cache/heartbeat.ts'
import { type InstanceReport, readReport, writeReport } from '../../src/operate/instance-report.ts'
import { longestReport } from '../../src/stores/records.ts'
import { outputOf, withoutPrlimit } from '../support/process.ts'
import type { Memories } from './report-without-descriptors.ts'

const report: InstanceReport = {
  host: 'gw-1',
  pid: 4121,
  version: '1.0.0',
  startedAt: 1_795_000_000_000,
  phase: 'ready',
  configHash: 'a1b2c3d4e5f6',
  requestsPerSecond: 412.5,
  hitShare: 0.998,
  memoryBytes: 190_000_000,
  providerOutage: 'provider_failing',
  circuit: 'open',
  outages: [{ outage: 'store', since: 1_795_000_050_000 }],
  recentErrors: 12,
  seenAt: 1_795_000_100_000,
}
const unknown = Object.fromEntries(Object.keys(report).map(name => [name, null]))

t.test('a report is read as it was written', async t => {
  t.strictSame(readReport(writeReport(report)), report)
  const empty = { ...unknown } as unknown as InstanceReport
  t.strictSame(readReport(writeReport(empty)), empty)
  t.equal(readReport(stoppedReport), undefined, 'an instance that has stopped is not shown')
})

t.test('a report of a version that reports less has the rest unknown', async t => {
  const { circuit: _, outages: __, recentErrors: ___, ...earlier } = report
  const read = readReport(JSON.stringify(earlier))
  t.strictSame(read, { ...report, circuit: null, outages: null, recentErrors: null })
})

t.test('a process without a descriptor does not know its memory', { skip: withoutPrlimit }, async t => {
  const script = join(import.meta.dirname, 'report-without-descriptors.ts')
  const [without, later]: Memories = JSON.parse(
    await outputOf(t, ['prlimit', '--nofile=80', process.execPath, script]),
  )
  t.equal(without, null)
  t.ok(Number(later) > 10_000_000)
})

t.test('a report fits, however long the name of the host is', async t => {
  const written = writeReport({ ...report, host: 'ঢাকা'.repeat(500) })
  t.ok(Buffer.byteLength(written) <= longestReport)
  t.match(readReport(written), { pid: 4121, host: /^ঢাকা/ })
})

const invalid: [name: keyof InstanceReport, values: unknown[]][] = [
  ['host', [7, '', 'x'.repeat(101), {}, ['gw']]],
  ['pid', [0, -1, 1.5, '12', 1e300]],
  ['version', [1, '', true, 'x'.repeat(101)]],
  ['startedAt', [-1, 1.5, '2026-11-22', 8.64e15 + 1]],
  ['phase', ['stopping', 1, '']],
  ['configHash', [5, 'x'.repeat(101)]],
  ['requestsPerSecond', [-1, '4', 1e12]],
  ['hitShare', [-0.1, 1.1, '1', true]],
  ['memoryBytes', [-5, 0.5, 'much']],
  ['circuit', ['ajar', true, 1]],
  [
    'outages',
    [
      {},
      'provider',
      [{ outage: 'disk', since: 1 }],
      [{ outage: 'store', since: -1 }],
      [1, 2, 3],
      [{}, {}, {}],
    ],
  ],
  ['recentErrors', [-1, 0.5, '3']],
  ['seenAt', [-1, {}, 9e15]],
]
t.test('an invalid field is unknown, and the rest is taken', async t => {
  for (const [name, values] of invalid)
    for (const value of values) {
      const read = readReport(JSON.stringify({ ...report, [name]: value }))
      t.strictSame(read, { ...report, [name]: null }, `${name}: ${JSON.stringify(value)}`)
    }
})

t.test('what is no report is an unknown instance', async t => {
  const texts = ['', '{}', 'x', '[]', 'null', '7', '"ready"', '{"phase":', '\0', '{"__proto__":{"pid":1}}']
  for (const text of [undefined, ...texts]) t.strictSame(readReport(text), unknown, String(text))
})

t.test('text that could draw on a terminal or hold a key is made safe', async t => {
  const key = `svc_live_${'a'.repeat(38)}`
  const read = readReport(JSON.stringify({ ...report, host: `\u001b[2J${key}`, version: 'a\nb' }))
  t.notOk(read?.host?.includes('\u001b'))
  t.notMatch(read?.host, key)
  t.notMatch(read?.version, '\n')
})

t.test('reading never throws, whatever lies there', async t => {
  const text = fc.oneof(
    ...[fc.string(), fc.json()],
    fc.jsonValue().map(value => JSON.stringify({ ...report, host: value })),
  )
  const isReadable = (given: string) => {
    const read = readReport(given)
    return read === undefined || Object.keys(read).length === 14
  }
  fc.assert(fc.property(text, isReadable), { numRuns: 2_000 })
  t.end()
})
