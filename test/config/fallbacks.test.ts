// Without this, a fallback could lose its key, show it, or change its account without a restart.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { upstreamsIn } from '../../src/config/upstreams.ts'
import { changesBetween, describeConfig, valuesOf, withValuesOf } from '../../src/config/values.ts'
import { faultsOfTexts, loadTexts } from './load-text.ts'

const list = `x-free: &free { perMinute: null, perHour: null, perDay: 900 }
provider:
  baseUrl: http://own:8090
  fallbacks:
    - baseUrl: https://customer-api.open-meteo.com
      name: customer
      apiKey: hunter2
      timeout: 3s
      budget: *free
    - &public { baseUrl: https://api.open-meteo.com }
`

t.test('a fallback has what an account has, with its defaults', async t => {
  const config = loadTexts(t, { files: [list] })
  const [own, customer, publicOne, ...more] = upstreamsIn(config)
  t.equal(more.length, 0)
  t.hasStrict(own, { name: 'primary', config: { provider: { baseUrl: 'http://own:8090', fallbacks: [] } } })
  t.hasStrict(customer, {
    name: 'customer',
    config: {
      provider: {
        ...{ baseUrl: 'https://customer-api.open-meteo.com', apiKey: 'hunter2', timeoutMs: 3_000 },
        ...{ maxConcurrent: 1, budget: { perMinute: null, perDay: 900, reserve: 0.1 }, retries: 2 },
      },
      cache: config.cache,
    },
  })
  t.hasStrict(publicOne, {
    name: 'fallback-2',
    config: { provider: { baseUrl: 'https://api.open-meteo.com', apiKey: null, timeoutMs: 10_000 } },
  })
  const alone = loadConfig({ files: [], env: {} })
  t.equal(upstreamsIn(alone)[0].config, alone, 'without fallbacks the configuration is as it is')
})

t.test('a list in a variable is that of a file', async t => {
  const env = {
    ABOHAWA_PROVIDER__FALLBACKS: '[{ baseUrl: "http://b", budget: { perDay: 7 } }, { baseUrl: "http://c" }]',
  }
  t.hasStrict(loadTexts(t, { env }).provider.fallbacks, [
    { baseUrl: 'http://b', budget: { perDay: 7, perHour: 5_000 } },
    { baseUrl: 'http://c' },
  ])
})

t.test(
  'keys are hidden wherever settings are shown, and a printed configuration can be loaded again',
  async t => {
    const config = loadTexts(t, { files: [list] })
    const shown = describeConfig(config)
    const values = valuesOf(config).map(({ path, shown: value }) => `${path} ${value}`)
    for (const text of [shown, ...values]) t.notMatch(text, /hunter2/)
    t.match(shown, /name: customer/)
    t.has(loadTexts(t, { files: [shown] }).provider.fallbacks, [{ apiKey: '***', name: 'customer' }, {}])
    const wrong = list.replace('hunter2', '"hunter2 b"')
    t.strictSame(faultsOfTexts(t, { files: [wrong] }), [
      'one.yaml:7:15: provider.fallbacks[0].apiKey must be text without blanks and without quotes as a part of it (in quotes if it is all digits), or null, got "***"',
    ])
  },
)

t.test('a key is read from a file of its own, in place of one in the list', async t => {
  const folder = t.testdir()
  writeFileSync(join(folder, 'key'), 'from-file\n')
  writeFileSync(join(folder, 'blank'), 'two words')
  writeFileSync(join(folder, 'control'), 'abc\u0001def\n')
  writeFileSync(join(folder, 'quotes'), '"abc"\n')
  const file = join(folder, 'config.yaml')
  const load = (key: string, more = '') => {
    const item = `{ baseUrl: http://b, ${more} apiKeyFile: "${join(folder, key)}" }`
    writeFileSync(file, `provider: { fallbacks: [${item}] }`)
    return loadConfig({ files: [file], env: {} })
  }
  const config = load('key')
  t.equal(config.provider.fallbacks[0]?.apiKey, 'from-file')
  const shown = describeConfig(config)
  t.notMatch(shown, /from-file/)
  writeFileSync(file, shown)
  t.strictSame(loadConfig({ files: [file], env: {} }), config, 'printed, it can be loaded again')
  const place = `${file}:1:24: provider.fallbacks[0].apiKey`
  const faultOf = (file: string, more?: string) => {
    try {
      return load(file, more) && ''
    } catch (error) {
      return (error as Error).message
    }
  }
  t.equal(
    faultOf('none'),
    `${place} is to be read from "${folder}/none", which can't be read: there is no such file`,
  )
  for (const wrong of ['blank', 'control', 'quotes'])
    t.match(faultOf(wrong), `${place} in its file must be text without blanks, quotes and control`)
  t.equal(faultOf('key', 'apiKey: other,'), `${place} can't be combined with apiKeyFile: keep one of the two`)
  t.match(
    faultOf('none', 'name: primary,'),
    /no such file\n.*name must be unique, got primary twice/,
    'beside other faults',
  )
})

const faults: Record<string, [text: string, fault: string]> = {
  'an unknown name in an item': [
    '[{ baseUrl: http://b, url: http://b }]',
    'one.yaml:1:46: provider.fallbacks[0].url is not a known setting; did you mean redis.url?',
  ],
  'a wrong value in an item': [
    '[{ baseUrl: http://b, budget: { perDay: 0 } }]',
    'one.yaml:1:64: provider.fallbacks[0].budget.perDay must be a whole number from 1 to 1000000000, or null for no limit, got 0',
  ],
  'a URL twice': [
    '[{ baseUrl: http://b }, { baseUrl: http://b, name: c }]',
    'one.yaml:1:24: provider.fallbacks[1].baseUrl must be unique, but fallback-1 has the same URL',
  ],
  'the URL of the first': [
    '[{ baseUrl: "https://API.open-meteo.com:443/." }]',
    'one.yaml:1:24: provider.fallbacks[0].baseUrl must be unique, but primary has the same URL',
  ],
  'no URL': [
    '[{ name: b }]',
    'one.yaml:1:25: provider.fallbacks[0].baseUrl is required: an http or https URL without user, query or fragment',
  ],
  'a name twice': [
    '[{ baseUrl: http://b, name: primary }]',
    'one.yaml:1:24: provider.fallbacks[0].name must be unique, got primary twice',
  ],
  'an unknown protocol': [
    '[{ baseUrl: http://b, protocol: other }]',
    'one.yaml:1:56: provider.fallbacks[0].protocol must be one of open-meteo, got "other"',
  ],
  'more than a read of the cache should look for': [
    `[${Array.from({ length: 9 }, (_, i) => `{ baseUrl: "http://b${i}" }`).join(', ')}]`,
    'one.yaml:1:24: provider.fallbacks must be a list of up to 8 upstreams, such as [{ baseUrl: "https://api.open-meteo.com" }], got a list',
  ],
  'text in place of a map': [
    '[http://b]',
    'one.yaml:1:25: provider.fallbacks[0] must be a map of baseUrl, protocol, apiKey, timeout, maxConcurrent, maxPointsPerRequest, budget, name, apiKeyFile, got "***"',
  ],
}
for (const [what, [text, fault]] of Object.entries(faults))
  t.test(`${what} is one sentence with its place`, async t => {
    t.strictSame(faultsOfTexts(t, { files: [`provider: { fallbacks: ${text} }`] }), [fault])
  })

t.test('quotes around a key are no part of it', async t => {
  t.match(faultsOfTexts(t, { env: { ABOHAWA_PROVIDER__API_KEY: '"abc"' } }), [
    /without quotes as a part of it/,
  ])
})

t.test('text in place of the list, or of a part of it, is not shown: a key may stand in it', async t => {
  const isNoList = 'must be a list of up to 8 upstreams, such as [{ baseUrl: "https://api.open-meteo.com" }]'
  for (const [text, given] of [
    ['{ baseUrl: "http://b", apiKey: "hunter2" }', 'a map'],
    ['[{ baseUrl: "http://b", apiKey: "hunter2" ', '"***"'],
    ['{ baseUrl: "http://b" }, { baseUrl: "http://c", apiKey: "hunter2" }', '"***"'],
    ['http://b hunter2', '"***"'],
  ] as const)
    t.strictSame(faultsOfTexts(t, { env: { ABOHAWA_PROVIDER__FALLBACKS: text } }), [
      `ABOHAWA_PROVIDER__FALLBACKS: provider.fallbacks ${isNoList}, got ${given}`,
    ])
  t.match(
    faultsOfTexts(t, { files: ['provider: { fallbacks: [hunter2] }', 'provider: { fallbacks: hunter2 }'] }),
    [/fallbacks\[0\] must be .*, got "\*{3}"/, /fallbacks must be .*, got "\*{3}"/],
  )
  t.strictSame(loadTexts(t, { env: { ABOHAWA_PROVIDER__FALLBACKS: '' } }).provider.fallbacks, [])
})

t.test('budgets of fallbacks are live, and everything else of them needs a restart', async t => {
  const started = loadTexts(t, { files: [list] })
  const effectOf = (text: string) =>
    changesBetween(started, loadTexts(t, { files: [text] })).map(({ path, effect }) => [path, effect])
  const raised = list.replace('perDay: 900', 'perDay: 901')
  const budget = 'provider.fallbacks[0].budget.perDay'
  t.strictSame(effectOf(raised), [[budget, 'live']])
  t.strictSame(effectOf(raised.replace('hunter2', 'rotated').replace('3s', '4s')), [
    ['provider.fallbacks[0].apiKey', 'restart'],
    ['provider.fallbacks[0].timeout', 'restart'],
    [budget, 'live'],
  ])
  const shorter = raised.replace('    - &public { baseUrl: https://api.open-meteo.com }\n', '')
  t.strictSame(effectOf(shorter), [
    [budget, 'live'],
    ['provider.fallbacks[1]', 'restart'],
  ])
  const next = withValuesOf(started, loadTexts(t, { files: [shorter] }), [budget])
  t.equal(next.provider.fallbacks.length, 2)
  t.equal(next.provider.fallbacks[0]?.budget.perDay, 901)
  t.equal(next.provider.fallbacks[0]?.apiKey, 'hunter2')
})
