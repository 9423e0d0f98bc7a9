// Which spellings are one and the same to a search. Both encodings are written as code points, for they look alike.

import fc from 'fast-check'
import t from 'tap'
import { fold } from '../../src/catalogue/search.ts'

const equals: [title: string, one: string, other: string][] = [
  ['ya with a dot, as one sign and as two', '\u09df', '\u09af\u09bc'],
  ['rra, as one sign and as two', '\u09dc', '\u09a1\u09bc'],
  ['rha, as one sign and as two', '\u09dd', '\u09a2\u09bc'],
  ['the vowel o, as one sign and as two', '\u0995\u09cb', '\u0995\u09c7\u09be'],
  ['the vowel au, as one sign and as two', '\u0995\u09cc', '\u0995\u09c7\u09d7'],
  [
    'a word with several of them',
    '\u09ac\u09dc\u09cb\u09df\u09be',
    '\u09ac\u09a1\u09bc\u09c7\u09be\u09af\u09bc\u09be',
  ],
  ['with and without a zero-width joiner', '\u09b0\u200d\u09cd\u09af', '\u09b0\u09cd\u09af'],
  ['with and without a zero-width non-joiner', '\u0995\u09cd\u200c\u09b7', '\u0995\u09cd\u09b7'],
  ['a joiner between the halves of a vowel', '\u0995\u09c7\u200d\u09be', '\u0995\u09cb'],
  ['capital and small letters', 'COX\u2019S BAZAR', 'cox\u2019s bazar'],
  ['a sharp s and two of them', 'Stra\u00dfe', 'STRASSE'],
  ['a capital sharp s', '\u1e9e', 'ss'],
  ['a long s', '\u017fylhet', 'Sylhet'],
  ['a final sigma', '\u03bf\u03c2', '\u039f\u03a3'],
  ['an f-i ligature', '\ufb01', 'FI'],
  ['a capital I with a dot', '\u0130', 'i'],
  ['a Latin letter with a mark, composed', 'Dh\u0101k\u0101', 'Dhaka'],
  ['a Latin letter with marks, decomposed', 'Dha\u0304\u0301ka\u0304', 'Dhaka'],
  ['blanks of any kind and number', '  Amtali\u00a0\t\n Sadar ', 'Amtali Sadar'],
]

for (const [title, one, other] of equals)
  t.test(`equal: ${title}`, async t => {
    t.not(one, other)
    t.equal(fold(one), fold(other))
  })

t.test('Bengali keeps its signs: nukta, vowels, candrabindu and virama make other words', async t => {
  for (const [one, other] of [
    ['\u09af\u09bc', '\u09af'],
    ['\u0995\u0951', '\u0995'],
    ['\u09a1\u09bc', '\u09a1'],
    ['\u0995\u09bf', '\u0995'],
    ['\u099a\u09be\u0981\u09a6', '\u099a\u09be\u09a6'],
    ['\u0995\u09cd\u09a4', '\u0995\u09a4'],
  ] as const)
    t.not(fold(one), fold(other), `${one} is not ${other}`)
})

t.test('marks come off Latin letters only, and only marks that belong to no script', async t => {
  t.not(fold('\u0439'), fold('\u0438'))
  t.not(fold('a\u09be'), fold('a'))
})

t.test('a part of a word is found in the whole, also where its last letter looks different', async t => {
  t.ok(fold('\u03a3\u039f\u03a3\u0391').includes(fold('\u03c3\u03bf\u03c2')))
})

t.test('folding a folded text changes nothing, and it is in NFC', async t => {
  for (const [, one] of equals) {
    t.equal(fold(fold(one)), fold(one))
    t.equal(fold(one).normalize('NFC'), fold(one))
  }
})

t.test('blank and empty texts fold to nothing', async t => {
  for (const text of ['', ' ', '\u200d', '\ufeff \n']) t.equal(fold(text), '')
})

t.test('the short way for plain texts folds as the long way does, which a joiner forces', async t => {
  const sign = fc.oneof(fc.integer({ min: 0x20, max: 0x7e }), fc.integer({ min: 0x980, max: 0x9ff }))
  const text = fc.array(sign, { maxLength: 12 }).map(signs => String.fromCodePoint(...signs))
  const same = fc.property(text, text => fold(text) === fold(`${text}\u200d`))
  t.doesNotThrow(() => fc.assert(same, { numRuns: 2_000 }))
})
