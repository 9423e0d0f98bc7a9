// Without this, a usual spelling of a place could find nothing, or another place.

import fc from 'fast-check'
import t from 'tap'
import { fold, foldLoosely } from '../../src/catalogue/search.ts'

const equals: [title: string, one: string, other: string][] = [
  ['ya with a dot, as one sign and as two', '\u09df', '\u09af\u09bc'],
  ['rra, as one sign and as two', '\u09dc', '\u09a1\u09bc'],
  ['rha, as one sign and as two', '\u09dd', '\u09a2\u09bc'],
  ['the vowel o, as one sign and as two', '\u0995\u09cb', '\u0995\u09c7\u09be'],
  ['the vowel au, as one sign and as two', '\u0995\u09cc', '\u0995\u09c7\u09d7'],
  ['several of them', '\u09ac\u09dc\u09cb\u09df\u09be', '\u09ac\u09a1\u09bc\u09c7\u09be\u09af\u09bc\u09be'],
  ['with and without a zero-width joiner', '\u09b0\u200d\u09cd\u09af', '\u09b0\u09cd\u09af'],
  ['with and without a zero-width non-joiner', '\u0995\u09cd\u200c\u09b7', '\u0995\u09cd\u09b7'],
  ['a joiner between the halves of a vowel', '\u0995\u09c7\u200d\u09be', '\u0995\u09cb'],
  ['the letter aa, as one and as a with the sign aa', '\u0986\u09a6\u09ae', '\u0985\u09be\u09a6\u09ae'],
  ['the vocalic rr and ll', '\u09e0\u09e1', '\u098b\u09c3\u098c\u09e2'],
  ['the letter au, as one and as o with the mark of length', '\u0994', '\u0993\u09d7'],
  ['ra, as one sign and as ba with a dot', '\u09b0\u0982', '\u09ac\u09bc\u0982'],
  ['the sign aa typed before the sign e', '\u0997\u09cb\u09aa', '\u0997\u09be\u09c7\u09aa'],
  ['the mark of length typed before the sign e', '\u09a6\u09cc\u09b2', '\u09a6\u09d7\u09c7\u09b2'],
  ['the sign e before that of au or o', '\u09a6\u09cc\u0997\u09cb', '\u09a6\u09c7\u09cc\u0997\u09c7\u09cb'],
  ['khanda ta, and ta with hasanta and joiner', '\u09bf\u09ce\u09aa', '\u09bf\u09a4\u09cd\u200d\u09aa'],
  ['a nukta behind the vowel sign', '\u0995\u09c1\u09dc\u09bf', '\u0995\u09c1\u09a1\u09bf\u09bc'],
  ['a nukta between the halves of a vowel', '\u09af\u09bc\u09cb', '\u09af\u09c7\u09bc\u09be'],
  ['a nukta behind both halves of a vowel', '\u09af\u09bc\u09cb', '\u09af\u09c7\u09be\u09bc'],
  ['a candrabindu before the vowel sign', '\u099a\u09be\u0981\u09a6', '\u099a\u0981\u09be\u09a6'],
  ['a sign that was typed twice', '\u09aa\u09c1\u09b0', '\u09aa\u09c1\u09c1\u09b0'],
  ['a visarga and a colon', '\u09a6\u09c1\u0983\u0996', '\u09a6\u09c1:\u0996'],
  ['signs of one letter that a joiner parts', '\u0997\u09cb', '\u0997\u09be\u200d\u09c7'],
  ['capital and small letters', 'COX\u2019S BAZAR', 'cox\u2019s bazar'],
  ['a sharp s and two of them', 'Stra\u00dfe', 'STRASSE'],
  ['a capital sharp s', '\u1e9e', 'ss'],
  ['a long s', '\u017fylhet', 'Sylhet'],
  ['a final sigma', '\u03bf\u03c2', '\u039f\u03a3'],
  ['an f-i ligature', '\ufb01', 'FI'],
  ['a capital I with a dot', '\u0130', 'i'],
  ['a Latin letter with a mark, composed', 'Dh\u0101k\u0101', 'Dhaka'],
  ['a Latin letter with marks, decomposed', 'Dha\u0304\u0301ka\u0304', 'Dhaka'],
  ['blanks of any kind and number', '  Amtali\u00a0\t\n Sadar ', 'AmtaliSadar'],
  ['Bengali with and without a blank', '\u0995\u09cd\u09b8 \u09ac\u09be', '\u0995\u09cd\u09b8\u09ac\u09be'],
  ['with and without hyphens of any kind', 'Sher-e\u2010Bangla\u2011Na\u2013gar\u00ad', 'sherebanglanagar'],
  ['with and without marks of direction', '\u202a\u2066Dhaka\u2069\u202c\u200e', 'Dhaka'],
  ['Bengali with a mark of direction in it', '\u09a2\u09be\u200f\u0995\u09be', '\u09a2\u09be\u0995\u09be'],
  ['Latin of full width', '\uff24\uff28\uff21\uff2b\uff21', 'dhaka'],
  ['with and without full stops', 'P.M. Khali', 'pm khali'],
  ['with and without the full stop of Bengali', '\u098f\u09ae\u0964', '\u098f\u09ae'],
]
for (const apostrophe of ['', ...'\u2019\u02bc\u2018\u201b\u02bb\u2032\uff07\u00b4`'])
  equals.push([`an apostrophe as "${apostrophe}"`, "Cox's Bazar", `cox${apostrophe}s bazar`])

t.test('two spellings of one name are equal, in NFC, and folded for good', async t => {
  for (const [title, one, other] of equals) {
    t.not(one, other)
    t.equal(fold(one), fold(other), title)
    t.equal(fold(fold(one)), fold(one))
    t.equal(fold(one).normalize('NFC'), fold(one))
  }
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

t.test('only Latin letters lose their marks, and only marks that belong to no script', async t => {
  t.not(fold('\u0439'), fold('\u0438'))
  t.not(fold('a\u09be'), fold('a'))
  const last = fold('\u03c3\u03bf\u03c2')
  t.ok(fold('\u03a3\u039f\u03a3\u0391').includes(last), 'a last letter has another form')
})

t.test('blank and empty texts fold to nothing', async t => {
  for (const text of ['', ' ', '\u200d', '\ufeff \n', "-.' \u2019"]) t.equal(fold(text), '')
})

t.test('the fast path for plain texts folds as the slow path, which a joiner forces', async t => {
  const sign = fc.oneof(fc.integer({ min: 0x20, max: 0x7e }), fc.integer({ min: 0x980, max: 0x9ff }))
  const text = fc.array(sign, { maxLength: 12 }).map(signs => String.fromCodePoint(...signs))
  const same = fc.property(text, text => fold(text) === fold(`\u200d${text}`))
  t.doesNotThrow(() => fc.assert(same, { numRuns: 2_000 }))
})

const looselyEqual: [title: string, one: string, other: string][] = [
  ['gonj and ganj', 'Narayangonj', 'Narayanganj'],
  ['ph and f', 'Phulbaria', 'Fulbaria'],
  ['z and j', 'Bazitpur', 'Bajitpur'],
  ['gonz and ganj', 'Shibgonz', 'Shibganj'],
  ['v and b', 'Vandaria', 'Bandaria'],
  ['sader and sadar', 'Narail Sader', 'Narail Sadar'],
  ['one letter and two', 'Cumila', 'Cumilla'],
  ['two letters that a folding made', 'Bajzi', 'Baji'],
  ['two of the letters that f is written with', 'Pphulpphur', 'Fulfur'],
  ['long and short i', '\u09a8\u09a6\u09c0', '\u09a8\u09a6\u09bf'],
  ['long and short u', '\u09aa\u09c2\u09b0', '\u09aa\u09c1\u09b0'],
  ['both n', '\u09aa\u09a3', '\u09aa\u09a8'],
  ['palatal and dental s', '\u09b6\u09b0', '\u09b8\u09b0'],
  ['retroflex and dental s', '\u09b7\u09b0', '\u09b8\u09b0'],
  ['the ra of Assamese', '\u09f0\u0982\u09aa\u09c1\u09f0', '\u09b0\u0982\u09aa\u09c1\u09b0'],
  ['khanda ta, and ta with hasanta', '\u0989\u09ce\u09b8', '\u0989\u09a4\u09cd\u09b8'],
  [
    'n before j and before c, as the conjuncts have it',
    '\u0997\u099e\u09cd\u099c\u099e\u09cd\u099a',
    '\u0997\u09a8\u09cd\u099c\u09a8\u09cd\u099a',
  ],
  ['tta and tra', '\u099a\u099f\u09cd\u099f', '\u099a\u099f\u09cd\u09b0'],
  [
    'hma and ksha',
    '\u09ac\u09cd\u09b0\u09be\u09b9\u09cd\u09ae\u09a3',
    '\u09ac\u09cd\u09b0\u09be\u0995\u09cd\u09b7\u09a3',
  ],
  ['kshma and ksha', '\u09b2\u0995\u09cd\u09b7\u09cd\u09ae\u09c0', '\u09b2\u0995\u09cd\u09b7\u09c0'],
  ['with and without a visarga', '\u09a6\u09c1\u0983\u0996', '\u09a6\u09c1\u0996'],
  ['with and without a candrabindu', '\u099a\u09be\u0981\u09a6', '\u099a\u09be\u09a6'],
]

t.test('spellings that are often confused are loosely equal, and not equal', async t => {
  for (const [title, one, other] of looselyEqual) {
    t.not(fold(one), fold(other), title)
    t.equal(foldLoosely(one), foldLoosely(other), title)
  }
})

t.test('two equal Bengali letters stay two, as do two digits', async t => {
  t.not(foldLoosely('\u09a8\u09a8\u09cd'), foldLoosely('\u09a8\u09cd'))
  t.not(foldLoosely('11'), foldLoosely('1'))
})

t.test('texts that are equal are loosely equal, and folding loosely again changes nothing', async t => {
  const bengali =
    '\u09c0\u09bf\u09c2\u09a3\u099e\u09a8\u09b6\u09b7\u0981\u09cd\u09cd\u09c7\u09be\u09d7\u09bc\u0985\u09ac\u09ce\u09f0\u0983\u0995\u09b9\u09ae\u099f'
  const part = fc.constantFrom(...'phfzjvbgonasder -:', ...bengali)
  const text = fc.array(part, { maxLength: 12 }).map(parts => parts.join(''))
  const same = fc.property(text, text => {
    const folded = foldLoosely(text)
    return foldLoosely(fold(text)) === folded && foldLoosely(folded) === folded
  })
  t.doesNotThrow(() => fc.assert(same, { numRuns: 3_000 }))
})
