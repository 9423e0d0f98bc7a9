// Without this, a configuration of an earlier version would not start, or would start without saying what it ignored.

import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../src/config/load.ts'
import { removedSettings } from '../../src/config/removed.ts'
import { schemaAt } from '../../src/config/tree.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { faultsOfTexts } from './load-text.ts'

const old = `server: { port: 0, drainFor: 0s, requestTimeout: 10s }
ops: { port: 0 }
provider:
  name: own
  protocol: open-meteo
  budget: { perDay: 7, outageShare: 0.1 }
  fallbacks: [{ baseUrl: "http://b", protocol: open-meteo, budget: { outageShare: null } }]
quota: { testPerDay: none }
`
const env = { ABOHAWA_LOG__ACCESS_SHARE: '0.5' }
const given = [
  ['server.requestTimeout', 1],
  ['provider.name', 4],
  ['provider.protocol', 5],
  ['provider.fallbacks[0].protocol', 7],
  ['provider.budget.outageShare', 6],
  ['provider.fallbacks[0].budget.outageShare', 7],
  ['quota.testPerDay', 8],
] as const

t.test('a configuration that names removed settings is read without them', async t => {
  const file = join(t.testdir({ 'one.yaml': old }), 'one.yaml')
  const { config, origins, removed } = readConfig({ files: [file], env })
  t.match(removed, [
    ...given.map(([path, line]) => ({ path, at: { file, line } })),
    { path: 'log.accessShare', at: { variable: 'ABOHAWA_LOG__ACCESS_SHARE' } },
  ])
  t.match(config, { provider: { budget: { perDay: 7 }, fallbacks: [{ baseUrl: 'http://b' }] } })
  t.strictSame(
    [...origins.keys()].filter(path => /name|protocol|Share|testPerDay/.test(path)),
    [],
  )
  for (const path of removedSettings) t.equal(schemaAt(path.replace('*', '0').split('.')), undefined, path)
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
    [...given.map(([path]) => path), 'log.accessShare'].map(path => ['warn', path]),
  )
  t.match(warned[0], { file, line: 1 })
  t.match(await runCommand(['config', 'check', '--no-files', file]), {
    code: 0,
    stdout:
      /^The configuration is right\.\n\S+one\.yaml:1:34: server\.requestTimeout is removed and ignored\n/,
  })
})
