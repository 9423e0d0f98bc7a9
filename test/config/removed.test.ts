// Without this, a configuration of an earlier version would not start, or would start without saying what it ignored.

import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../src/config/load.ts'
import { removedSettings } from '../../src/config/removed.ts'
import { schemaAt } from '../../src/config/tree.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { faultsOfTexts, loadTexts } from './load-text.ts'

const old = `server: { port: 0, drainFor: 0s, requestTimeout: 10s }
ops: { port: 0 }
provider:
  name: own
  budget: { perDay: 7, outageShare: 0.1 }
  fallbacks: [{ baseUrl: "http://b", budget: { outageShare: null } }]
quota: { testPerDay: none }
`
const env = { ABOHAWA_LOG__ACCESS_SHARE: '0.5' }
const given = [
  ['server.requestTimeout', 1],
  ['provider.name', 4],
  ['provider.budget.outageShare', 5],
  ['provider.fallbacks[0].budget.outageShare', 6],
  ['quota.testPerDay', 7],
] as const

t.test('a configuration that names removed settings is read without them', async t => {
  const file = join(t.testdir({ 'one.yaml': old }), 'one.yaml')
  const { config, origins, removed } = readConfig({ files: [file], env })
  t.hasStrict(removed, [
    ...given.map(([path, line]) => ({ path, at: { file, line } })),
    { path: 'log.accessShare', at: { variable: 'ABOHAWA_LOG__ACCESS_SHARE' } },
  ])
  t.hasStrict(config, {
    provider: { budget: { perDay: 7 }, fallbacks: [{ baseUrl: 'http://b' }] },
    log: { access: 0.5 },
  })
  t.strictSame(
    [...origins.keys()].filter(path => /name|Share|testPerDay/.test(path)),
    [],
  )
  t.strictSame(origins.get('log.access'), { variable: 'ABOHAWA_LOG__ACCESS_SHARE' }, 'what was kept')
  for (const path of removedSettings) t.equal(schemaAt(path.replace('*', '0').split('.')), undefined, path)
})

t.test('an old share of access lines is kept, unless the new setting says otherwise', async t => {
  const accessWith = (log: string, share: string) =>
    loadTexts(t, { files: [log], env: { ABOHAWA_LOG__ACCESS_SHARE: share } }).log.access
  t.equal(accessWith('log: { access: true }', '0.1'), 0.1)
  t.equal(accessWith('log: { access: false }', '0.1'), false)
  t.equal(accessWith('log: { access: 0.3 }', '0.1'), 0.3)
  for (const wrong of ['2', 'some', '', ' ']) {
    t.equal(accessWith('{}', wrong), true, wrong)
    t.equal(accessWith('log: { accessShare: 0.1 }', wrong), 0.1, `a usable share before ${wrong}`)
    const file = join(t.testdir({ 'one.yaml': '{}' }), 'one.yaml')
    const { removed } = readConfig({ files: [file], env: { ABOHAWA_LOG__ACCESS_SHARE: wrong } })
    t.strictSame(
      removed.map(({ renamedTo }) => renamedTo),
      [undefined],
      `${wrong} is ignored`,
    )
  }
  for (const wrong of ['""', 'false', '[]', 'null'])
    t.equal(loadTexts(t, { files: [`log: { accessShare: ${wrong} }`], env: {} }).log.access, true, wrong)
})

t.test('other unknown names are refused as before', async t => {
  t.match(
    faultsOfTexts(t, { files: ['provider: { fallbacks: [{ baseUrl: "http://b", testPerDay: 1 }] }'] }),
    [/fallbacks\[0\]\.testPerDay is not a known setting/],
  )
})

t.test('serve warns of each once, and config check names it', async t => {
  const folder = t.testdir({ 'one.yaml': old })
  const file = join(folder, 'one.yaml')
  const { lines } = await startCommand(t, ['serve', '--config', file], ['api'], {
    ...env,
    ABOHAWA_STORE__PATH: ':memory:',
  })
  const warned = lines.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'setting removed, ignored')
  t.strictSame(
    warned.map(({ level, setting }) => [level, setting]),
    given.map(([path]) => ['warn', path]),
  )
  t.hasStrict(
    lines.map(line => JSON.parse(line)).find(({ msg }) => msg === 'setting renamed'),
    { level: 'warn', setting: 'log.accessShare', renamedTo: 'log.access' },
  )
  t.hasStrict(warned[0], { file, line: 1 })
  t.match(await runCommand(['config', 'check', '--no-files', file]), {
    code: 0,
    stdout:
      /^The configuration is right\.\n\S+one\.yaml:1:34: server\.requestTimeout is removed and ignored\n/,
  })
})
