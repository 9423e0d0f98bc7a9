// Without it a spelling of an API key could be read in a log, a sentence or a URL.

import fc from 'fast-check'
import t from 'tap'
import { holdsKey, withoutKeys, withoutPlainKeys } from '../../src/common/key-redaction.ts'
import { createKey, testKeyPrefix } from '../../src/keys/key-form.ts'
import { anyText } from '../support/any-text.ts'
import { leakIn, spellings } from '../support/key-spellings.ts'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const hidden = /svc_(?:live|test)_…/

t.test('a key is hidden in every spelling, and what stands around it stays', async t => {
  const keys = [createKey(), createKey(testKeyPrefix)]
  const places = ['/api/v1/locations?type=division&k=|&limit=5', 'the type is "|"; allowed: division', '|']
  for (const key of keys)
    for (const [spelling, spell] of Object.entries(spellings))
      for (const place of [...places, JSON.stringify({ before: 1, url: '/x?k=|', after: 'y' })]) {
        const given = place.replace('|', spell(key))
        const safe = withoutKeys(given)
        const [head = '', tail = ''] = place.split('|')
        t.equal(leakIn(safe, key), undefined, `${spelling}: ${safe}`)
        t.match(safe, hidden)
        t.ok(holdsKey(given))
        t.notOk(holdsKey(safe), 'twice is once')
        t.ok(safe.startsWith(head) && safe.endsWith(tail), safe)
      }
})

t.test('what is hidden ends with the key', async t => {
  const [key, testKey] = [createKey(), createKey(testKeyPrefix)]
  const table: [string, string][] = [
    [`/x?k=${key}&y=1`, '/x?k=svc_live_…&y=1'],
    [`/x/${key}/y#${key}`, '/x/svc_live_…/y#svc_live_…'],
    [`{"k":"${key}","y":1}`, '{"k":"svc_live_…","y":1}'],
    [`"a ${key}\\n"`, '"a svc_live_…\\n"'],
    [`the key ${key} was refused`, 'the key svc_live_… was refused'],
    [`u=http%3A%2F%2Fx%2F%3Fk%3D${key}%26lang%3Den`, 'u=http%3A%2F%2Fx%2F%3Fk%3Dsvc_live_…%26lang%3Den'],
    [`${key} ${key}`, 'svc_live_… svc_live_…'],
    [`${key},${key}`, 'svc_live_…,svc_live_…'],
    [`${key}${key}`, 'svc_live_…'],
    [`/x?k=${testKey}&y=${key}`, '/x?k=svc_test_…&y=svc_live_…'],
    [`${testKey}${key}`, 'svc_test_…'],
  ]
  for (const [given, expected] of table) t.equal(withoutKeys(given), expected)
})

t.test('of a key that was cut off nothing is left either', async t => {
  const key = createKey()
  for (let length = 'svc_live_'.length + 1; length < key.length; length++)
    for (const around of [(k: string) => k, (k: string) => `/x?k=${k}`, (k: string) => `type is "${k}…"`])
      t.equal(
        withoutKeys(around(key.slice(0, length))).replace('…"', '"'),
        around('svc_live_…').replace('…"', '"'),
      )
})

t.test('text without a key is the same text', async t => {
  const plain = [
    ...['', '/api/v1/weather/district/3026?lang=en'],
    '/api/v1/locations?type=district&q=%E0%A6%A2%E0%A6%BE%E0%A6%95%E0%A6%BE&division_id=30',
    '/api/v1/locations?type=union&q=a%20b%2Cc%2Fd+e%25&amp;&#65;&lowbar;\\u0041\\x41',
    ...[
      'the API key is invalid: it must begin with svc_live_, or with svc_test_ for tests',
      'a key begins with svc_live_.',
    ],
    ...['svc_live_…', 'svc_live_<API_KEY_SUFFIX>', 'svc%5flive%5f', 'svc_next_abcdef live_abcdef'],
    ...['svc_test_…', 'svc%5ftest%5f', 'svc_best_abcdef test_abcdef', '{"code":"provider_timeout"}'],
    ...['আবহাওয়া ক্‌ষ', 'a key begins with svc_live_ and 38 letters', 'svc\u200b_live\u200b_'],
    ...['ｓｖｃ_ｌｉｖｅ_.', 'Zoë “quoted” 日本語 👍🏽', '%', '&#', '\\u', '\\'],
  ]
  for (const text of plain) t.equal(withoutKeys(text), text)
  fc.assert(
    fc.property(anyText({ maxLength: 300 }), text => withoutKeys(text) === text),
    { numRuns: 500 },
  )
  const encoded = anyText({ maxLength: 30 }).map(encodeURIComponent)
  fc.assert(
    fc.property(encoded, encoded, encoded, (path, name, value) => {
      const url = `https://weather.example/${path}?${name}=${value}`
      return withoutKeys(url) === url
    }),
  )
})

// One spelling for each character of a key.
const hex = (character: string) => character.charCodeAt(0).toString(16)
const ways: readonly ((character: string) => string)[] = [
  character => character,
  character => `%${hex(character)}`,
  character => `%${hex(character).toUpperCase()}`,
]
const spelledKey = fc
  .tuple(
    fc.string({ unit: fc.constantFrom(...digits), minLength: 38, maxLength: 38 }),
    fc.array(fc.nat(ways.length - 1), { minLength: 47, maxLength: 47 }),
    fc.array(fc.boolean(), { minLength: 47, maxLength: 47 }),
    fc.constantFrom('svc_live_', 'svc_test_'),
  )
  .map(([secret, chosen, capitals, prefix]) => {
    const key = prefix + secret
    const spelled = [...key]
      .map((character, at) => {
        const form = at < 9 && capitals[at] ? character.toUpperCase() : character
        return ways[chosen[at] ?? 0]?.(form)
      })
      .join('')
    return { key, spelled }
  })
const around = fc.string({ unit: fc.constantFrom(...'ab1 /?=&"\'<>#%\\;:-+…ঢ'), maxLength: 20 })

t.test('whatever the mix of spellings and what stands around, no six characters can be read', async () => {
  fc.assert(
    fc.property(spelledKey, around, around, ({ key, spelled }, before, after) => {
      const safe = withoutKeys(`${before}${spelled}${after}`)
      return leakIn(safe, key) === undefined && !holdsKey(safe)
    }),
    { numRuns: 2_000 },
  )
  fc.assert(
    fc.property(
      spelledKey,
      ({ key, spelled }) => withoutKeys(`/x?k=${spelled}&y=1`) === `/x?k=${key.slice(0, 9)}…&y=1`,
    ),
  )
})

// Work that grows with the square of the length would reach the time limit of the test.
t.test('a long text costs what its length costs', async () => {
  for (const text of [
    '%25'.repeat(1_000_000),
    '%73'.repeat(1_000_000),
    'svc_live_'.repeat(100_000),
    `svc_live_${'-'.repeat(1_000_000)}`,
    'svc_live_-'.repeat(100_000),
  ])
    withoutKeys(text)
})

t.test('the net of the log hides what is there as it is, and leaves other bytes alone', async t => {
  const key = createKey()
  const testKey = createKey(testKeyPrefix)
  t.equal(withoutPlainKeys(Buffer.from(`/x?k=${testKey}&y`)).toString(), '/x?k=svc_test_…&y')
  const lines = Buffer.from(`{"a":"ঢাকা"}\n{"url":"/x?k=${key}&y"}\n{"url":"svc_live_…"}\n`)
  t.equal(
    withoutPlainKeys(lines).toString(),
    '{"a":"ঢাকা"}\n{"url":"/x?k=svc_live_…&y"}\n{"url":"svc_live_…"}\n',
  )
  for (const text of ['{"url":"/x"}\n', '{"url":"svc_live_…"}\n', 'begins with svc_live_"}\n']) {
    const bytes = Buffer.from(text)
    t.equal(withoutPlainKeys(bytes), bytes, 'the same bytes')
  }
})
