// Without it `--set` and `--case` could try other settings than those that were given.

import t from 'tap'
import { type GivenSettings, settingCases } from '../../../tools/load/setting-grid.ts'

const none = { files: [], env: {} }
const names = (given: GivenSettings): string[] => settingCases(given, none).map(({ name }) => name)
const refusal = (given: GivenSettings): string => {
  try {
    settingCases(given, none)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

t.test('the grid has every combination, the last setting changing first', t => {
  const cases = settingCases({ set: ['cache.freshFor=30m,1h', 'cache.freshness=age,run'] }, none)
  const [early, late] = ['cache.freshFor=30m', 'cache.freshFor=1h']
  const [age, run] = ['cache.freshness=age', 'cache.freshness=run']
  const wanted = [`${early} ${age}`, `${early} ${run}`, `${late} ${age}`, `${late} ${run}`]
  t.strictSame(names({ set: ['cache.freshFor=30m,1h', 'cache.freshness=age,run'] }), wanted)
  t.equal(cases[1]?.config.cache.freshForMs, 30 * 60_000)
  t.equal(cases[1]?.config.cache.freshness, 'run')
  t.strictSame(cases[1]?.values, { 'cache.freshFor': '30m', 'cache.freshness': 'run' })
  t.strictSame(cases[1]?.env, { ABOHAWA_CACHE__FRESH_FOR: '30m', ABOHAWA_CACHE__FRESHNESS: 'run' })
  t.end()
})

t.test('single cases follow the grid and are not multiplied with it; each combination counts once', t => {
  const asLists = 'server.trustedProxies=[10.0.0.0/8, 10.0.0.1],10.0.0.1'
  for (const [given, wanted] of [
    [
      { set: ['cache.freshFor=30m,1h'], case: ['cache.freshFor=3h cache.freshness=run'] },
      ['cache.freshFor=30m', 'cache.freshFor=1h', 'cache.freshFor=3h cache.freshness=run'],
    ],
    [{ case: ['cache.memory=64MiB'] }, ['cache.memory=64MiB']],
    [{ set: ['cache.freshFor=60m,1h'], case: ['cache.freshFor=3600s'] }, ['cache.freshFor=1h']],
    [{ set: [asLists] }, ['10.0.0.0/8, 10.0.0.1', '10.0.0.1'].map(all => `server.trustedProxies=[ ${all} ]`)],
  ] as const)
    t.strictSame(names(given), wanted)
  t.end()
})

t.test('nothing given is one case: the configuration as it is', t => {
  const [only, ...others] = settingCases({}, { files: [], env: { ABOHAWA_CACHE__FRESH_FOR: '2h' } })
  t.strictSame(others, [])
  t.equal(only?.name, '')
  t.equal(only?.config.cache.freshForMs, 2 * 3_600_000)
  t.end()
})

t.test('null, names in a map and lists can be given', t => {
  const [first] = settingCases(
    { case: ['provider.budget.perDay=null quota.tiers.free=7 server.trustedProxies=10.0.0.0/8,::1'] },
    none,
  )
  t.equal(first?.config.provider.budget.perDay, null)
  t.equal(first?.config.quota.tiers.free, 7)
  t.strictSame(first?.config.server.trustedProxies, ['10.0.0.0/8', '::1'])
  t.end()
})

const durations = 'such as 500ms, 30s, 10m, 1h or 400d'
const forCase = '--case must be settings with a value each, such as "cache.freshFor=1h cache.freshness=run"'
const range = `must be a duration from 100ms to 48h, ${durations}`
const several = 'is a group of settings; give one'
const many = Array.from({ length: 1001 }, (_, i) => i + 1).join(',')
const refused: readonly (readonly [given: GivenSettings, sentence: string])[] = [
  [
    { set: ['cache.freshFor'] },
    '--set must be a setting and its values, such as cache.freshFor=30m,1h, got "cache.freshFor"',
  ],
  [{ case: [' '] }, `${forCase}, got " "`],
  [{ case: ['cache.freshFor=1h run'] }, `${forCase}, got "run"`],
  [{ set: ['cache.freshfor=1h'] }, 'cache.freshfor is not a known setting; did you mean cache.freshFor?'],
  [{ set: ['provider.budget=1'] }, `provider.budget ${several}, such as provider.budget.perMinute`],
  [{ set: ['quota.tiers=1'] }, `quota.tiers ${several}, such as quota.tiers.free`],
  [{ set: ['provider.apiKey=hunter2'] }, "provider.apiKey is secret, and can't be given on a command line"],
  [{ set: ['cache.freshFor=1h,soon'] }, `--set cache.freshFor=soon: cache.freshFor ${range}, got "soon"`],
  [{ set: ['cache.freshFor=1h,'] }, `--set cache.freshFor=: cache.freshFor ${range}, got ""`],
  [
    { case: ['cache.freshness=never'] },
    '--case cache.freshness=never: cache.freshness must be one of age, run, got "never"',
  ],
  [
    { set: ['cache.freshFor=1h', 'cache.freshFor=2h'] },
    'cache.freshFor can be given only once, as in --set cache.freshFor=…,…',
  ],
  [
    { set: [`cache.prefetchPlaces=${many}`] },
    '--set must give at most 1000 combinations of settings, got 1001',
  ],
]

t.test('a refusal is one sentence with the argument, the value and what is allowed', t => {
  for (const [given, sentence] of refused) t.equal(refusal(given), sentence)
  t.end()
})

t.test('settings that do not agree are refused by the combination, once', t => {
  t.equal(
    refusal({ set: ['cache.staleFor=12h,40h', 'cache.freshForAtMost=10h', 'cache.freshness=age,run'] }),
    '--set cache.freshForAtMost=10h: cache.freshForAtMost and cache.staleFor are 10h and 40h, but together must be at most 48h',
  )
  t.end()
})

t.test('a fault of the configuration itself is told as always', t => {
  t.throws(() => settingCases({}, { files: [], env: { ABOHAWA_CACHE__FRESH_FOR: 'x' } }), {
    name: 'ConfigError',
  })
  t.end()
})
