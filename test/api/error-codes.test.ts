// Without it a code that consumers branch on could vanish, or be missing in docs/api.md.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { failureSentence, failureSentences, type Sentence, sentences } from '../../src/api/sentences.ts'
import { errors, proxyErrors } from '../../tools/reference/error-meanings.ts'

// Codes are only ever added here: consumers branch on them.
const published = `
  degrees_invalid head_too_large host_invalid host_missing http_invalid http_version_not_supported
  https_required include_invalid internal_error key_address_not_allowed key_endpoint_not_allowed
  key_expired key_malformed key_missing key_origin_not_allowed key_replaced key_revoked
  key_share_used_up key_unknown key_wrong_prefix lang_invalid longitude_missing method_not_allowed
  number_invalid origin_not_allowed parameter_brackets parameter_not_encoded parameter_repeated path_missing path_not_encoded
  path_not_found place_ambiguous place_code_changed place_invalid place_not_found places_empty
  places_too_long places_too_many point_out_of_bounds provider_broke_off provider_busy
  provider_circuit_open provider_cut_off provider_denied provider_failing provider_garbled provider_limited
  provider_not_sent provider_overloaded provider_refused provider_timeout provider_too_much
  provider_unreachable quota_exhausted quota_insufficient rate_limited reference_busy request_timeout search_too_long store_unavailable
  subscriber_revoked test_error_unknown tier_not_configured timeline_exhausted transfer_encoding_in_http_1_0
  transfer_encoding_not_supported type_invalid url_not_encoded waited_too_long
`

/** The codes of all sentences, whether they are made of values or not. */
const codesOf = (table: object): string[] =>
  Object.values(table).flatMap(entry => {
    if (entry === sentences.parameter.type || entry === sentences.parameter.include)
      return [entry('', []).code]
    if (typeof entry === 'function') return [entry('', '', '', '').code]
    return 'code' in entry ? [(entry as Sentence).code] : codesOf(entry)
  })

t.test('every sentence has a code of its own, and no published code is gone', async t => {
  const codes = [...codesOf(sentences), ...Object.keys(failureSentences)]
  t.equal(new Set(codes).size, codes.length)
  t.strictSame(codes.sort(), published.trim().split(/\s+/))
  for (const code of codes) t.match(code, /^[a-z][a-z0-9_]+$/)
})

t.test('a failure that the table does not have is an internal error', async t => {
  t.strictSame(failureSentence('provider_busy').code, 'provider_busy')
  for (const code of ['unheard_of', 'toString', '__proto__'])
    t.equal(failureSentence(code), sentences.unexpected)
})

/** The page says once, above the tables, that one waits after a 500. */
const ofPage = (status: number, meaning: string): string =>
  status === 500 ? meaning.replace(' Wait for `retry-after`.', '') : meaning

t.test('docs/api.md has a row for each code, with its status', async t => {
  const page = readFileSync('docs/api.md', 'utf8')
  const groups = page.matchAll(/^### (\d{3}): (.+)\n\n\| `code` .*\n.*\n((?:\| `\w+` .*\n)+)/gm)
  const rows = [...groups].flatMap(([, status, title = '', table = '']) =>
    [...table.matchAll(/^\| `(\w+)` \| (.+) \|$/gm)].map(([, code, meaning]) => ({
      code,
      status: Number(status),
      counts: /^(400|404|405|500)$/.test(status ?? '') && !title.endsWith(', free'),
      meaning,
    })),
  )
  const expected = Object.entries({ ...errors, ...proxyErrors }).map(([code, error]) => ({
    code,
    status: error.status,
    counts: error.counts,
    meaning: ofPage(error.status, error.meaning[0]),
  }))
  const byCode = (a: { code?: string | undefined }, b: { code?: string | undefined }) =>
    `${a.code}`.localeCompare(`${b.code}`)
  t.strictSame(rows.sort(byCode), expected.sort(byCode))
  t.match(page, /^After a 500, wait for `retry-after`/m)
})

t.test('a sentence about a parameter names it', async t => {
  const named = Object.entries(sentences.parameter).map(([name, sentence]) => {
    const isOfList = name === 'type' || name === 'include'
    const { parameter } = isOfList ? sentences.parameter[name]('', []) : (sentence as Say)('days', '', '', '')
    return [name, parameter]
  })
  for (const [name, parameter] of named) t.match(parameter, /^[a-z]+$/, String(name))
  const { key, path, http } = sentences
  for (const sentence of [key.missing(undefined), key.unknown, key['subscriber-revoked']])
    t.equal(sentence.parameter, 'x-api-key')
  t.equal(sentences.testErrorUnknown('').parameter, 'x-test-error')
  t.equal(path.longitudeMissing.parameter, 'lng')
  for (const sentence of [
    path.place('union', '1'),
    path.ambiguous('union', 'x', 2, '1, 2'),
    path.previousCode('union', '1', '2', undefined),
  ])
    t.equal(sentence.parameter, 'id')
  for (const sentence of [http.hostMissing, sentences.unexpected, sentences.quotaExhausted(1)])
    t.equal(sentence.parameter, undefined)
})
type Say = (...given: readonly string[]) => Sentence

// Three words at least, with one blank between two.
const words = /^\S+(?: \S+){2,}$/

t.test('a sentence has all of its words, and says each value that it is given', async t => {
  const values = ['①', '②', '③', '④', '⑤']
  const check = (table: object): void => {
    for (const [name, entry] of Object.entries(table)) {
      if (typeof entry === 'object' && !('code' in entry)) {
        check(entry)
        continue
      }
      const given = typeof entry === 'function' ? values.slice(0, entry.length) : []
      const isOfList = entry === sentences.parameter.type || entry === sentences.parameter.include
      const { text } = isOfList ? entry('①', ['②']) : typeof entry === 'function' ? entry(...given) : entry
      t.match(text, words, name)
      t.notMatch(text, / [,;:]/, name)
      for (const value of given) t.match(text, value, name)
    }
  }
  check(sentences)
  for (const [code, text] of Object.entries(failureSentences)) t.match(text, words, code)
  const origins = ['https://a', 'https://b', 'https://c', 'https://d', 'https://e']
  const listed = origins.join(', ')
  t.match(sentences.bound.origin(undefined, origins).text, new RegExp(` be ${listed}, got none$`))
  t.match(sentences.bound.endpoint('x', [...origins, 'f', 'g']).text, ` be ${listed}, and 2 more, got x`)
  t.equal(sentences.rateLimited('second', 1).text, 'this key may send at most 1 request a second')
  t.equal(sentences.rateLimited('minute', 2).text, 'this key may send at most 2 requests a minute')
  t.match(sentences.path.previousCode('union', '1', '2', undefined).text, /its code is 2 now$/)
})
