// Without it `abohawa whatif` could give different figures for the same traffic, or hide what it left out.

import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { whatIfText } from '../../../../tools/load/cli/settings-text.ts'
import { lineOf } from '../../../../tools/load/traffic/traffic-request.ts'
import type { WhatIfResult } from '../../../../tools/load/what-if/what-if.ts'
import { checkMistakes } from '../../../support/printed.ts'
import { runCommand } from '../../../support/process.ts'

const begin = Date.parse('2026-11-16T06:00:00Z')
const minuteMs = 60_000

const writeTraffic = (t: Test, requests: number, everyMs: number): string => {
  const file = join(t.testdir(), 'traffic.ndjson')
  const lines = Array.from({ length: requests }, (_, i) =>
    lineOf({
      at: begin + i * everyMs,
      method: 'GET',
      path: `/api/v1/weather/district/${['3026', '2015', '1004'][i % 3]}`,
      key: `key-${i % 5}`,
      accepts: 'gzip',
    }),
  )
  writeFileSync(file, `${lines.join('\n')}\n`)
  return file
}

const byAge = { ABOHAWA_CACHE__FRESHNESS: 'age' }

const jsonOf = (stdout: string): WhatIfResult =>
  JSON.parse(stdout, (name, value) => {
    // JSON has null for what is no number; the age is -1 where no weather was served.
    const mayBeNull = ['budget', 'minute', 'hour', 'day']
    const isRight =
      value === null
        ? mayBeNull.includes(name)
        : typeof value !== 'number' || value >= (name === 'max' ? -1 : 0)
    if (!isRight) throw new Error(`${name} is ${value}`)
    return value
  })

/** What the command prints without --json, as the test of the table shows: the traffic need not be run again for it. */
const textOf = (stdout = ''): string => whatIfText(jsonOf(stdout))

t.test('every combination has its figures, the same each time and with any number of threads', async t => {
  // Longer than 15 minutes, so that what is fresh for so long is loaded again.
  const file = writeTraffic(t, 60, 20_000)
  const grid = ['--set', 'cache.freshFor=5m,15m', '--set', 'cache.cellDegrees=0.1,1']
  const given = ['whatif', file, ...grid, '--json', '--case', 'cache.memory=1MiB', '--instances', '2']
  const ended = await runCommand([...given, '--threads', '2'], byAge)
  t.equal(ended.code, 0, ended.stderr)
  const result = jsonOf(ended.stdout)
  const names = ['5m', '15m'].flatMap(fresh =>
    ['0.1', '1'].map(degrees => `cache.freshFor=${fresh} cache.cellDegrees=${degrees}`),
  )
  const tried = result.cases.map(({ name }) => name)
  t.strictSame(tried, [...names, 'cache.memory=1MiB'])
  t.hasStrict(result, {
    traffic: { requests: 60, faultyLines: 0, spanSeconds: 59 * 20, from: '2026-11-16T06:00:00.000Z' },
    instances: 2,
    budget: { minute: 600, hour: 5_000, day: 10_000 },
    unfinished: [],
  })
  for (const { requests, weather, hits, stale, misses, failed, steps, provider, memory } of result.cases) {
    t.equal(requests, 60)
    t.equal(weather, 60)
    // Programs read these names.
    t.strictSame(Object.keys(memory), ['mostBytes', 'mostEntries', 'sharedEntries', 'sharedBytes'])
    t.equal(hits.memory + hits.shared + stale + misses + failed, 60)
    const inSteps = steps.reduce((sum, step) => sum + step.hits + step.stale + step.misses, 0)
    const inDays = provider.days.reduce((sum, { weight }) => sum + weight, 0)
    t.strictSame([inSteps, inDays], [60, provider.weight])
  }
  const [short, , long] = result.cases
  t.ok((short?.provider.weight ?? 0) > (long?.provider.weight ?? 0), 'longer freshness costs less')
  t.ok(result.cases.some(({ paretoOptimal }) => paretoOptimal))
  const again = await runCommand([...given, '--threads', '1'], byAge)
  t.equal(again.stdout, ended.stdout)
})

/** A line of nginx or Apache, which has no keys; its seconds are those after six o'clock. */
const combinedLine = (seconds: number, target: string, status: number, method = 'GET'): string =>
  `203.0.113.7 - - [16/Nov/2026:06:${new Date(seconds * 1_000).toISOString().slice(14, 19)} +0000] "${method} ${target} HTTP/1.1" ${status} 1834 "-" "curl/8"`

t.test('a log without keys counts what was answered, and says what is left out', async t => {
  const weather = '/api/v1/weather/district/3026'
  const log = join(t.testdir(), 'access.log')
  const lines = [
    ...[200, 304, 500, 401, 429, 301].map((status, i) => combinedLine(i, weather, status)),
    combinedLine(6, weather, 405, 'POST'),
    combinedLine(7, '/api/v1/locations?type=district', 200),
    combinedLine(8, '/api/v1/weather/district/999999', 404),
  ]
  writeFileSync(log, lines.join('\n'))
  const page = join(t.testdirName, 'page.html')
  const { stdout } = await runCommand(['whatif', log, '--json', '--out', page])
  const text = textOf(stdout)
  t.match(text, /^ {2}left out +1 with a method other than GET and HEAD, 3 recorded as refused or red/m)
  t.match(text, /^ {2}no weather +6 of 9 counted requests: those left out, other endpoints, refused places/m)
  const { cases, traffic } = jsonOf(stdout)
  t.match(cases, [{ requests: 9, weather: 3, none: 6, misses: 1, hits: { memory: 2 } }])
  t.strictSame(traffic.leftOut, { method: 1, refused: 3, keyless: 0 })
  t.match(readFileSync(page, 'utf8'), 'recorded as refused or redirected')
})

t.test('traffic without any request for weather is no traffic to judge by', async t => {
  const folder = t.testdir({
    'keyless.ndjson': lineOf({ at: begin, method: 'GET', path: '/api/v1/weather/district/3026' }),
    'lists.log': combinedLine(0, '/api/v1/locations?type=district', 200),
  })
  const none = 'none of the 1 requests is for weather that a cache could hold'
  await checkMistakes(t, [
    [
      `whatif ${join(folder, 'keyless.ndjson')}`,
      1,
      new RegExp(`${none}: 1 with neither a key id nor a recorded`),
    ],
    [`whatif ${join(folder, 'lists.log')}`, 1, new RegExp(none)],
  ])
})

t.test('--warm passes the traffic once before it is counted', async t => {
  const file = writeTraffic(t, 30, minuteMs)
  // Fresh for longer than the day between the two.
  const args = ['whatif', file, '--json', '--case', 'cache.freshFor=30h cache.staleFor=1h', '--warm']
  const [only] = jsonOf((await runCommand(args, byAge)).stdout).cases
  t.match(only, { requests: 30, misses: 0, hits: { memory: 30, shared: 0 }, provider: { weight: 0 } })
})

t.test('the table, the remarks and the page', async t => {
  const file = writeTraffic(t, 40, minuteMs)
  appendFileSync(file, 'no JSON\n')
  const page = join(t.testdirName, 'page.html')
  const line = `whatif ${file} --set cache.freshFor=10m,30m --threads 1 --warm-up 10m --out ${page}`
  const { code, stdout, stderr } = await runCommand(line.split(' '))
  t.equal(code, 0, stderr)
  for (const said of [
    /^ {2}traffic +40 requests in 39m$/m,
    /^ {2}start +cold, counted after 10m$/m,
    /^setting +hits +stale +misses +provider weight/m,
    /^cache\.freshFor=30m +\* +\d/m,
    '* marks the best settings: no other is better in hits, weight, age (p95) and memory together.',
  ])
    t.match(stdout, said)
  t.match(stderr, /traffic\.ndjson:41: /)
  t.match(stderr, `The page is in ${page}.`)
  const html = readFileSync(page, 'utf8')
  t.match(html, '<h2 id="settings">Settings</h2>')
  t.match(html, 'Peak UTC day')
  t.notMatch(html, /<(script|link|img)[^>]+(src|href)="https?:/)
})
