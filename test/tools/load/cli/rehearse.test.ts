// Without it rehearsals could ignore the clock of the traffic, or leave processes and files behind.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import type { RehearsedCase } from '../../../../tools/load/rehearsal/rehearsed-case.ts'
import { replayResult } from '../../../../tools/load/report/result.ts'
import { lineOf } from '../../../../tools/load/traffic/traffic-request.ts'
import { childrenOf } from '../../../support/proc.ts'
import { cleanEnv, product, runCommand, spawnProgram } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'
import { usualCatalogue } from '../../../support/usual-catalogue.ts'

const dhaka = '/api/v1/weather/coords/23.81/90.41'
const sylhet = '/api/v1/weather/coords/24.90/91.87'
const khulna = '/api/v1/weather/coords/22.82/89.55'

type Arrival = readonly [at: string, path: string, key?: string]

const fewPlaces = { ABOHAWA_CATALOGUE__PATH: usualCatalogue, ABOHAWA_TEST_CACHE__FRESH_SPREAD: '0' }

/** A traffic file of a day that begins at noon in Dhaka. */
const fileOf = (t: Test, arrivals: readonly Arrival[]): string => {
  const file = join(t.testdir({ tmp: {} }), 'day.ndjson')
  const lines = arrivals.map(([at, path, key = 'one']) =>
    lineOf({ at: Date.parse(`2026-11-${at}Z`), method: 'GET', path, key }),
  )
  writeFileSync(file, `${lines.join('\n')}\n`)
  return file
}

const noBudget = ['Minute', 'Hour', 'Day'].map(span => `provider.budget.per${span}=null`)

const rehearse = async (t: Test, file: string, ...args: string[]): Promise<RehearsedCase[]> => {
  const { code, stdout, stderr } = await runCommand(['rehearse', file, '--json', ...args], fewPlaces)
  t.equal(code, 0, stderr)
  const { cases } = JSON.parse(stdout) as { cases: RehearsedCase[] }
  for (const { result } of cases) replayResult.parse(result)
  return cases
}

t.test('weather turns stale and is refreshed by the clock of the traffic', async t => {
  const file = fileOf(t, [
    ['21T06:00:00', dhaka],
    // Two of one step may travel to the provider in one request.
    ['21T06:00:01', sylhet],
    // In demand since it was fetched: refreshed ahead.
    ['21T06:59:00', dhaka],
    ['21T07:01:30', dhaka],
    // Not in demand since: stale, and refreshed behind the answer.
    ['21T07:01:31', sylhet],
    ['21T07:01:41', sylhet],
    // Longer unused than stale weather may be served.
    ['21T07:10:00', khulna],
    ['21T08:25:00', khulna],
  ])
  const given = ['cache.freshFor=1h', 'cache.staleFor=10m', ...noBudget]
  const by = (freshness: string) => ['--case', [...given, `cache.freshness=${freshness}`].join(' ')]
  const [byAge, byRun] = await rehearse(t, file, ...by('age'), ...by('run'), '--parallel', '2')
  if (!byAge || !byRun) return t.fail('two cases')
  const { result } = byAge
  t.strictSame(result.outcomes, { miss: 4, hit: 3, stale: 1 })
  t.strictSame(result.statuses, { 200: 8 })
  // Four misses, one behind a stale answer, and three ahead: both places were in demand after they were loaded anew.
  t.equal(result.provider?.requests, 8)
  t.match(result.age, { p50: 0, max: 3691 })
  const totals = { due: 8, sent: 8, answered: 8, late: 0, dropped: 0, seconds: 145 * 60 }
  t.hasStrict(result, { kind: 'rehearsal', interrupted: false, totals })
  const weight = result.steps.reduce((sum, step) => sum + (step.weight ?? 0), 0)
  t.equal(weight, result.provider?.weight, 'every weight is in a step')
  t.hasStrict(result.settings, [{ path: 'provider.budget.perMinute', value: 'null', default: '600' }])
  t.ok((result.gateway?.cpuSeconds ?? 0) > 0 && (result.gateway?.memoryBytes ?? 0) > 1e7)

  t.ok((byRun.result.provider?.requests ?? 8) < 8, 'a run every six hours is loaded less often')
})

t.test('quotas end at midnight in Dhaka', async t => {
  const minutes = ['17:57:00', '17:58:00', '17:58:30', '17:59:59.999', '18:00:00', '18:01:00', '18:02:00']
  const arrivals = minutes.map((time): Arrival => [`21T${time}`, dhaka, 'key-1'])
  const file = fileOf(t, arrivals)
  const [rehearsed] = await rehearse(t, file, '--tier', 'free', '--set', 'quota.tiers.free=2')
  t.strictSame(rehearsed?.result.statuses, { 200: 4, 429: 3 })
})

t.test('the text, the files of --out, and faulty lines', async t => {
  const folder = t.testdir({
    'day.ndjson': [
      lineOf({ at: Date.parse('2026-11-21T06:00:00Z'), method: 'GET', path: dhaka, key: 'a' }),
      'no line of traffic',
      lineOf({ at: Date.parse('2026-11-21T06:00:01Z'), method: 'GET', path: dhaka }),
    ].join('\n'),
  })
  const file = join(folder, 'day.ndjson')
  const out = join(folder, 'out.json')
  const args = ['rehearse', file, '--set', 'cache.freshFor=1h,3h', '--out', out, '--parallel', '2']
  const { code, stdout, stderr } = await runCommand(args, fewPlaces)
  t.equal(code, 0, stderr)
  t.match(stderr, /day\.ndjson:2: "no line of traffic" is not JSON/)
  t.match(stdout, /^2 requests of 1 key from 2026-11-21T06:00:00.000Z, for 1 s\.\n/)
  t.match(stdout, /\nsetting +hits .*\ncache\.freshFor=1h .* fits .*\ncache\.freshFor=3h /)
  for (const [i, value] of ['1h', '3h'].entries()) {
    const result = replayResult.parse(JSON.parse(readFileSync(join(folder, `out-${i + 1}.json`), 'utf8')))
    t.strictSame(result.statuses, { 200: 1, 401: 1 })
    t.equal(result.settings?.find(({ path }) => path === 'cache.freshFor')?.value ?? '1h', value)
    t.equal(result.traffic.faultyLines, 1)
  }
})

t.test('what was answered without a known key is sent with one, which no tier limits', async t => {
  // A log of nginx or Apache has no keys.
  const lineAt = (seconds: number, status: number): string =>
    `203.0.113.7 - - [21/Nov/2026:06:00:${10 + seconds} +0000] "GET ${dhaka} HTTP/1.1" ${status} 1834 "-" "curl/8"`
  const keyed = ['2026-11-21T06:00:20Z', '2026-11-21T06:00:21Z'].map(at =>
    lineOf({ at: Date.parse(at), method: 'GET', path: dhaka, key: 'one' }),
  )
  const folder = t.testdir({
    'access.log': [lineAt(0, 200), lineAt(1, 304), lineAt(2, 401)].join('\n'),
    'keyed.ndjson': keyed.join('\n'),
    'keyless.ndjson': lineOf({ at: Date.UTC(2026), method: 'GET', path: dhaka }),
  })
  const at = (name: string) => join(folder, name)
  const [log, known, out] = [at('access.log'), at('keyed.ndjson'), at('out.json')]
  const given = ['--tier', 'free', '--set', 'quota.tiers.free=1', '--out', out]
  const { code, stdout, stderr } = await runCommand(['rehearse', log, known, ...given], fewPlaces)
  t.equal(code, 0, stderr)
  t.match(stdout, /^Sent with unlimited keys: 2 with a recorded response/m)
  t.match(stdout, /^Sent without a key, and refused with 401: 1 recorded as refused/m)
  const { statuses, outcomes } = replayResult.parse(JSON.parse(readFileSync(out, 'utf8')))
  t.strictSame(statuses, { 200: 2, 304: 1, 401: 1, 429: 1 })
  t.strictSame(outcomes, { miss: 1, hit: 2, none: 2 })
  const none = await runCommand(['rehearse', at('keyless.ndjson')])
  t.match(none, { code: 1, stderr: /none of the 1 requests has a key id or a status/ })
})

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`)

const withoutProc = !existsSync('/proc/self/task') && 'needs /proc'
for (const signal of ['SIGINT', 'SIGKILL'] as const)
  t.test(`${signal} leaves no process`, { skip: withoutProc }, async t => {
    const second = (i: number) => new Date(Date.parse('2026-11-21T06:00:00Z') + i * 1_000).toISOString()
    const arrivals = Array.from({ length: 5_000 }, (_, i): Arrival => [second(i).slice(8, -1), dhaka])
    const file = fileOf(t, arrivals)
    const temporary = join(t.testdirName, 'tmp')
    const env = cleanEnv({ ...fewPlaces, TMPDIR: temporary })
    const line = [product, 'rehearse', file, '--json', '--step', '0ms']
    const { child, said, closed } = spawnProgram(t, line, { env })
    const folder = await until('its folder is there', () =>
      readdirSync(temporary).find(name => name.startsWith('abohawa-rehearsal-')),
    )
    const store = join(temporary, folder, 'rehearsal.db')
    await until('a request is counted', () => {
      const db = new DatabaseSync(store, { readOnly: true })
      try {
        return db.prepare('SELECT used FROM usage').get()
      } finally {
        db.close()
      }
    })
    const started = childrenOf(child.pid)
    t.equal(started.length, 2)
    child.kill(signal)
    const code = await closed
    await until('the processes have ended', () => !started.some(isAlive))
    if (signal === 'SIGKILL') return
    t.equal(code, 1)
    t.notOk(existsSync(join(temporary, folder)))
    const { cases } = JSON.parse(said.stdout) as { cases: RehearsedCase[] }
    const { interrupted, totals } = replayResult.parse(cases[0]?.result)
    t.equal(interrupted, true)
    t.ok(totals.sent > 0 && totals.sent < 5_000, `${totals.sent} requests`)
  })
