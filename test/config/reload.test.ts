// Reloading: whole or not at all, and what needs a restart is named. The parts are plain functions here; that
// the real ones do as they are told is proved in test/journeys/live-settings.test.ts.

import t, { type Test } from 'tap'
import { readConfig } from '../../src/config/load.ts'
import { createReload, type ReloadOptions } from '../../src/config/reload.ts'
import type { Config } from '../../src/config/schema.ts'
import { manualClock } from '../support/manual-clock.ts'

const setUp = (
  t: Test,
  { prepare = async () => [], apply = () => {} }: Partial<Pick<ReloadOptions, 'prepare' | 'apply'>> = {},
) => {
  const folder = t.testdir()
  const env: NodeJS.ProcessEnv = { ABOHAWA_STORE__PATH: `${folder}/a.db` }
  const told: unknown[] = []
  const reload = createReload({
    running: readConfig({ files: [], env }).config,
    read: () => readConfig({ files: [], env }),
    prepare,
    apply,
    needRestart: () => [],
    clock: manualClock(),
    observer: {
      onApplied: changes => told.push(changes.map(({ path, after }) => `${path}: ${after}`)),
      onRestartNeeded: paths => told.push({ restart: paths }),
      onRefused: reason => told.push({ refused: reason }),
      onOutcome: outcome => told.push(outcome),
    },
  })
  return { env, told, reload, folder }
}

t.test('nothing changed: nothing is done', async t => {
  const { reload, told } = setUp(t)
  t.equal(await reload.now(), 'unchanged')
  t.strictSame(told, ['unchanged'])
})

t.test('live changes are applied together, and the others are named and left', async t => {
  const applied: Config[] = []
  const { reload, told, env } = setUp(t, { apply: next => applied.push(next) })
  Object.assign(env, {
    ABOHAWA_CACHE__FRESH_FOR: '2h',
    ABOHAWA_QUOTA__TIERS__GOLD: '7',
    ABOHAWA_SERVER__PORT: '1',
    ABOHAWA_CACHE__MEMORY: '1MiB',
  })
  t.equal(await reload.now(), 'applied')
  t.strictSame(told, [
    ['cache.freshFor: 2h', 'quota.tiers.gold: 7'],
    { restart: ['server.port', 'cache.memory'] },
    'applied',
  ])
  const [next] = applied
  t.match(next, { server: { port: 8080 }, cache: { freshForMs: 7_200_000, memoryBytes: 64 * 2 ** 20 } })
  t.equal(reload.running(), next)
  t.strictSame(reload.restartNeeded(), ['server.port', 'cache.memory'])
  delete env.ABOHAWA_SERVER__PORT
  delete env.ABOHAWA_CACHE__MEMORY
  await reload.now()
  t.match(told.at(-2), { restart: [] }, 'taken back')
})

t.test('a fault changes nothing, and is remembered until the configuration is right', async t => {
  let applied = 0
  const { reload, told, env } = setUp(t, {
    apply: () => {
      applied += 1
    },
  })
  const before = reload.running()
  Object.assign(env, { ABOHAWA_CACHE__FRESH_FOR: '2h', ABOHAWA_SERVER__PORT: 'x' })
  t.equal(await reload.now(), 'refused')
  t.equal(applied, 0)
  t.equal(reload.running(), before)
  t.match(told, [{ refused: /^ABOHAWA_SERVER__PORT: server\.port is "x"/ }, 'refused'])
  t.match(reload.fault(), /server\.port is "x"/)
  delete env.ABOHAWA_SERVER__PORT
  t.equal(await reload.now(), 'applied')
  t.equal(reload.fault(), undefined)
})

t.test('the end of a fault is reported, also where the former configuration is put back', async t => {
  const { reload, told, env } = setUp(t)
  env.ABOHAWA_SERVER__PORT = 'x'
  await reload.now()
  delete env.ABOHAWA_SERVER__PORT
  told.length = 0
  await reload.now()
  t.strictSame(told, [[], 'applied'])
  await reload.now()
  t.strictSame(told.slice(2), ['unchanged'], 'once')
})

t.test('files that a configuration names are checked before anything is replaced', async t => {
  let applied = 0
  const { reload, told, env, folder } = setUp(t, {
    apply: () => {
      applied += 1
    },
  })
  for (const [variable, value, sentence] of [
    ['ABOHAWA_STORE__PATH', '/dev/null/a.db', /store\.path is \/dev\/null\/a\.db, which can't be written/],
    ['ABOHAWA_CATALOGUE__PATH', `${folder}/none.json`, /catalogue\.path: .*none\.json/],
  ] as const) {
    const former = env[variable]
    Object.assign(env, { ABOHAWA_CACHE__FRESH_FOR: '2h', [variable]: value })
    t.equal(await reload.now(), 'refused')
    t.match(told.at(-2), { refused: sentence })
    if (former === undefined) delete env[variable]
    else env[variable] = former
  }
  t.equal(applied, 0)
})

t.test('what is prepared is replaced, and where one thing can not be prepared nothing is', async t => {
  const steps: string[] = []
  let fault: Error | undefined
  const { reload, told, env } = setUp(t, {
    prepare: async () => {
      if (fault) throw fault
      return [() => steps.push('certificate')]
    },
    apply: () => steps.push('settings'),
  })
  t.equal(await reload.now(), 'applied')
  t.strictSame(steps, ['certificate'], 'although no setting has changed')
  fault = new Error('no such thing')
  env.ABOHAWA_CACHE__FRESH_FOR = '2h'
  t.equal(await reload.now(), 'refused')
  t.strictSame(steps, ['certificate'])
  t.match(told.slice(-2), [{ refused: 'no such thing' }, 'refused'])
  t.equal(reload.running().cache.freshForMs, 3_600_000)
})

t.test('what was refused is tried again in silence, until it is in effect', async t => {
  let fault: string | undefined = 'the certificate is missing'
  const { reload, told } = setUp(t, {
    prepare: async () => {
      if (fault !== undefined) throw new Error(fault)
      return []
    },
  })
  await reload.again()
  t.strictSame(told, [], 'nothing was refused')
  await reload.now()
  t.strictSame(told.splice(0), [{ refused: fault }, 'refused'])
  await reload.again()
  await reload.again()
  t.strictSame(told, [])
  await reload.now()
  t.strictSame(told.splice(0), [{ refused: fault }, 'refused'], 'whoever asks is told')
  fault = 'the key is missing'
  await reload.again()
  t.strictSame(told, [])
  t.equal(reload.fault(), fault)
  fault = undefined
  await reload.again()
  t.strictSame(told, [[], 'applied'])
  t.equal(reload.fault(), undefined)
})
