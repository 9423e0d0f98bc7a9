// Without it text from outside could steer a terminal, hide its direction, or be cut within a character.

import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { messageOf } from '../../src/common/errors.ts'
import {
  bounded,
  isPrintable,
  jsonText,
  printable,
  printableLines,
  quoted,
  safeText,
  shortened,
} from '../../src/common/outside-text.ts'
import { createKey } from '../../src/keys/key-form.ts'
import { ProviderError } from '../../src/provider/errors.ts'
import { anyText, codePoint } from '../support/any-text.ts'
import { leakIn, spellings } from '../support/key-spellings.ts'
import { outputOf, withoutPrlimit } from '../support/process.ts'
import { hostileText, rawControlIn } from '../support/raw-controls.ts'

const escapes: [string, string, string][] = [
  ['ESC', '\u001b[2Jx', '\\u001b[2Jx'],
  ['NUL', '\u0000', '\\u0000'],
  ['line breaks and tabs', 'a\r\n\tb', 'a\\u000d\\u000a\\u0009b'],
  ['DEL', '\u007f', '\\u007f'],
  ['C1', '\u0080\u0085\u009b\u009f', '\\u0080\\u0085\\u009b\\u009f'],
  ['marks of direction', '\u061c\u200e\u200f', '\\u061c\\u200e\\u200f'],
  ['embeddings and overrides', '\u202a\u202b\u202c\u202d\u202e', '\\u202a\\u202b\\u202c\\u202d\\u202e'],
  ['isolates', '\u2066\u2067\u2068\u2069', '\\u2066\\u2067\\u2068\\u2069'],
  ['separators of lines', '\u2028\u2029', '\\u2028\\u2029'],
  ['what is invisible', '\u200b\u2060\ufeff', '\\u200b\\u2060\\ufeff'],
  ['half of a pair', 'a\ud83db\ude00c', 'a\\ud83db\\ude00c'],
]
t.test('what no reader should meet is escaped, and not printable', async t => {
  for (const [what, given, expected] of escapes) {
    t.equal(printable(given), expected, what)
    t.equal(safeText(given), expected)
    t.equal(printableLines(given), expected.replaceAll('\\u000a', '\n'))
    t.notOk(isPrintable(given))
    t.equal(JSON.parse(jsonText(given)), given)
    t.equal(rawControlIn(jsonText(given)), undefined)
  }
})

const kept = [
  ...['', 'Dhaka Tribune', 'আবহাওয়া'],
  // Joiners, which Bengali needs: khanda ta in the older spelling, ya-phala after ra, a split conjunct.
  ...['উৎসব ত্\u200d', 'র\u200d্যাব', 'ক্\u200cষ', 'ঢাকা বিভাগ', 'مرحبا بالعالم', 'שלום', 'हिन्दी', '日本語'],
  ...['Zoë, naïve, coöperate', '👨‍👩‍👧‍👦 🇧🇩 👍🏽', 'it’s “quoted” – and\u00a0more…', 'back\\slash "quote"'],
]
t.test('readable text is kept as it is', async t => {
  for (const text of kept) {
    for (const show of [printable, printableLines, safeText]) t.equal(show(text), text)
    t.equal(jsonText(text), JSON.stringify(text))
    t.ok(isPrintable(text))
  }
})

t.test('a cut falls between characters', async t => {
  const table: [string, number, string][] = [
    ['abcdef', 6, 'abcdef'],
    ['abcdef', 5, 'abcde…'],
    ['ab👍🏽cd', 4, 'ab…'],
    ['ab👍🏽cd', 6, 'ab👍🏽…'],
    ['x👨‍👩‍👧‍👦y', 5, 'x…'],
    // A conjunct of three signs, and a vowel sign.
    ['ঢাকা ক্ষমা', 6, 'ঢাকা …'],
    ['ঢাকা ক্ষমা', 8, 'ঢাকা ক্ষ…'],
    ['ঢাকা', 3, 'ঢা…'],
    ['e\u0301e\u0301', 3, 'e\u0301…'],
    // An endless run of marks is not one character, and a surrogate pair is not cut in it either.
    [`e${'\u0301'.repeat(500)}`, 60, `e${'\u0301'.repeat(59)}…`],
    [`👍${'\u200d👍'.repeat(500)}`, 61, `👍${'\u200d👍'.repeat(19)}\u200d…`],
  ]
  for (const [given, most, expected] of table) t.equal(shortened(given, most), expected)
})

const drawnText = fc.oneof(
  anyText({ maxLength: 200 }),
  fc.string({ unit: 'grapheme', maxLength: 100 }),
  fc.string({
    unit: fc.constantFrom(...hostileText, 'ক', '্', 'ষ', '👍', '🏽', '\u200d', 'a', '\ud83d'),
    maxLength: 100,
  }),
)

t.test('whatever a text holds, what is made of it is printable, short, and the beginning of it', async t => {
  const graphemes = new Intl.Segmenter('bn', { granularity: 'grapheme' })
  fc.assert(
    fc.property(drawnText, fc.integer({ min: 1, max: 80 }), (text, most) => {
      const cut = shortened(text, most)
      const head = cut === text ? text : cut.slice(0, -1)
      const characters = [...graphemes.segment(text)]
      const ends = new Set(characters.map(({ index, segment }) => index + segment.length))
      // A character longer than the limit is cut.
      const isWhole =
        characters.every(({ segment }) => segment.length <= 32) &&
        (characters[0]?.segment.length ?? 0) <= most
      return (
        head.length <= most &&
        text.startsWith(head) &&
        (cut === text || cut.endsWith('…')) &&
        (!isWhole || head === '' || ends.has(head.length))
      )
    }),
    { numRuns: 1_000 },
  )
  fc.assert(
    fc.property(drawnText, text => {
      const made = [printable(text), safeText(text), quoted(text), jsonText(text)]
      return made.every(each => isPrintable(each) && rawControlIn(each) === undefined && !each.includes('\n'))
    }),
    { numRuns: 1_000 },
  )
  fc.assert(fc.property(drawnText, text => rawControlIn(printableLines(text)) === undefined))
  fc.assert(fc.property(drawnText, text => !isPrintable(text) || printable(text) === text))
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: codePoint }), value => {
      t.strictSame(JSON.parse(jsonText(value)), JSON.parse(JSON.stringify(value)))
      return isPrintable(jsonText(value))
    }),
  )
})

t.test('a value is quoted, escaped, and cut; a key in it is hidden, also where the cut falls', async t => {
  t.equal(quoted('a"b\\c\n\u001b\u202e'), '"a\\"b\\\\c\\n\\u001b\\u202e"')
  t.equal(quoted('9'.repeat(400)), `"${'9'.repeat(60)}…"`)
  const key = createKey()
  for (const [spelling, spell] of Object.entries(spellings))
    for (let before = 0; before < 64; before++) {
      const made = [
        quoted('x'.repeat(before) + spell(key)),
        safeText('x '.repeat(before) + spell(key), 100),
        bounded('x'.repeat(before) + spell(key), 60),
      ]
      for (const text of made)
        if (leakIn(text, key)) t.fail(`${spelling} behind ${before} characters: ${text}`)
    }
})

t.test('error messages are printable and short, whoever wrote them', async t => {
  const key = createKey()
  const long = hostileText + key + 'x'.repeat(20_000_000)
  const providerError = new ProviderError('provider_failing', long)
  t.ok(providerError.message.length < 600, `${providerError.message.length} characters`)
  t.ok(isPrintable(providerError.message))
  t.equal(leakIn(providerError.message, key), undefined)
  for (const thrown of [new TypeError(long), long, providerError]) {
    t.ok(messageOf(thrown).length < 2_500)
    t.ok(isPrintable(messageOf(thrown)))
    t.equal(leakIn(messageOf(thrown), key), undefined)
  }
})

t.test('a cut text does not keep the whole text in memory', { skip: withoutPrlimit }, async t => {
  const script = join(import.meta.dirname, 'kept-messages.ts')
  const limited = ['prlimit', '--data=1500000000', process.execPath, script, '40', '8000000']
  const { errors, bytes, longest } = JSON.parse(await outputOf(t, limited))
  t.equal(errors, 40)
  t.equal(longest, 301)
  t.ok(bytes < 60_000_000, `${bytes} bytes for 40 errors out of 320 MB of text`)
})
