// Without it a gap of years in a traffic file would keep a command busy for ever.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { lineOf } from '../../../../tools/load/traffic/traffic-request.ts'
import { childrenOf } from '../../../support/proc.ts'
import { product, runShared, spawnProgram } from '../../../support/process.ts'
import { patienceMs, until } from '../../../support/until.ts'

const file = (t: Test, ...instants: string[]): string => {
  const path = join(t.testdir(), 'traffic.ndjson')
  const lines = instants.map(at =>
    lineOf({ at: Date.parse(at), method: 'GET', path: '/api/v1/weather/district/3026', key: 'key-1' }),
  )
  writeFileSync(path, `${lines.join('\n')}\n`)
  return path
}

const [first, last] = ['2000-01-01T00:00:00.000Z', '2099-12-31T00:00:00.000Z']

t.test('a span that no clock passes is refused in one sentence before the work begins', async t => {
  const path = file(t, first, last)
  for (const command of ['whatif', 'rehearse']) {
    const { code, stderr } = await runShared([command, path])
    t.equal(code, 1, `${command}: ${stderr}`)
    t.equal(stderr.trim().split('\n').length, 1)
    t.match(stderr, `must last at most 400 days, but lasts 36,524 days from ${first} to ${last}`)
    t.match(stderr, /traffic import.* --from and --to, or shortens gaps with --longest-gap 10m/)
  }
  const replayed = await runShared(['replay', path, '--target', 'http://127.0.0.1:9', '--without-keys'])
  t.equal(replayed.code, 1)
  t.match(replayed.stderr, /at most 400 days, but the last request is due after 36,524 days; use --speed/)
})

// One signal; of two, the second one may come before the first is worked off.
for (const signals of [['SIGINT'], ['SIGTERM'], ['SIGTERM', 'SIGTERM']] as const)
  t.test(`${signals.join(' and ')} ends whatif in a year without requests`, async t => {
    const path = file(t, '2025-01-01T00:00:00Z', '2026-01-01T00:00:00Z')
    const line = [product, 'whatif', path, '--threads', '2', '--set', 'cache.freshFor=1h,2h,3h', '--json']
    const { child, said, closed } = spawnProgram(t, line)
    const threads = `/proc/${child.pid}/task`
    await until('a thread tries settings', () =>
      readdirSync(threads).some(id => readFileSync(join(threads, id, 'comm'), 'utf8').startsWith('settings')),
    )
    for (const signal of signals) child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs)
    const code = await closed
    clearTimeout(timer)
    t.equal(code, 1, said.stderr)
    if (signals.length > 1) return
    const { cases, unfinished } = JSON.parse(said.stdout)
    t.equal(cases.length + unfinished.length, 3)
    t.ok(unfinished.length > 0, 'what was tried until then is printed, the others are named')
  })

t.test('a signal ends a rehearsal within a gap of half a year', async t => {
  const path = file(t, '2025-01-01T00:00:00Z', '2025-06-01T00:00:00Z')
  const { child, said, closed } = spawnProgram(t, [product, 'rehearse', path, '--json'])
  await until('its processes run', () => childrenOf(child.pid).length === 2)
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs)
  const code = await closed
  clearTimeout(timer)
  t.equal(code, 1, said.stderr)
})
