// Folds spellings for search: ignores encodings, letter case, marks on Latin letters, blanks and punctuation inside names.
// Bengali signs are letters and are never stripped. A second, looser fold also equates letters that are often confused.
// catalogue.ts decides which places are searched, and when loosely.

import { usualSpelling } from './bengali-spelling.ts'

// Left out on both sides, since writers differ: blanks, zero-width signs, hyphens and dashes, full stops (the danda is
// that of Bengali), and every sign that keyboards offer as an apostrophe.
const ignored =
  /[\s\u200b-\u200d\u2060\ufeff\p{Pd}\u00ad.\u0964'`\u00b4\u02b9\u02bb\u02bc\u2018\u2019\u201b\u2032\uff07]+/gu
const marksOnLatin = /(\p{Script=Latin})[\p{M}&&\p{Script=Inherited}]+/gv

// Lower, upper, lower reaches what a single step does not: ẞ and ß become ss, ſ becomes s. A final sigma depends on
// what follows it, and in a part of a word something else follows.
const foldCase = (text: string): string =>
  text.toLowerCase().toUpperCase().toLowerCase().replaceAll('\u03c2', '\u03c3')

// Most names and queries, for which the long way does nothing but fold small letters, encodings and ignored signs.
const plain = /^[\x20-\x7e\u0980-\u09ff]*$/u
const ignoredInPlain = /[ \-.'`]+/g

/** The form in which spellings are compared; texts that read alike fold to the same string, in Unicode NFC. */
export const fold = (text: string): string =>
  plain.test(text)
    ? usualSpelling(text.toLowerCase().replace(ignoredInPlain, ''))
    : // Signs are dropped last, because decomposition and case folding can each produce an apostrophe. Spelled as usual
      // before as well, because the joiner of a khanda ta is dropped, and after, because what is dropped may part signs.
      usualSpelling(
        foldCase(usualSpelling(text).normalize('NFD'))
          .normalize('NFD')
          .replace(ignored, '')
          .replace(marksOnLatin, '$1'),
      )

const confused: Readonly<Record<string, string>> = {
  z: 'j',
  v: 'b',
  '\u09c0': '\u09bf',
  '\u09c2': '\u09c1',
  '\u09a3': '\u09a8',
  '\u09b6': '\u09b8',
  '\u09b7': '\u09b8',
  '\u0981': '',
  '\u0983': '',
  '\u09ce': '\u09a4\u09cd',
  '\u09f0': '\u09b0',
}
const confusedLetters = /[zv\u09c0\u09c2\u09a3\u09b6\u09b7\u0981\u0983\u09ce\u09f0]/g
const writtenF = /p{1,2}h{1,2}/g
const equalLatin = /(\p{Script=Latin})\1+/gu
// A longer run is no slip of the pen but a key that was held down.
const single = (run: string, letter: string): string => (run.length === 2 * letter.length ? letter : run)
// Vowel signs of Bengali are letters to those who write it.
const letters = /\p{Alphabetic}/gu
// Any two letters are near to something.
const fewestLooseLetters = 3

/** As `fold`, with letters and endings equated that are often confused: gonj and ganj, z and j, both lengths of i. */
export const foldLoosely = (text: string): string =>
  usualSpelling(
    fold(text)
      .replace(confusedLetters, letter => confused[letter] ?? letter)
      .replace(writtenF, 'f')
      .replace(equalLatin, single)
      .replaceAll('gonj', 'ganj')
      .replaceAll('sader', 'sadar'),
  )

/** Invisible as it is typed: a search that is left empty. */
export const isBlank = (text: string): boolean => blank.test(text)
const blank = /^[\s\u200b-\u200d\u2060\ufeff\u00ad]*$/u

const lettersIn = (folded: string): number => folded.match(letters)?.length ?? 0

/** Whether a folded search names anything: without a letter it would be a part of every name, or of none. */
export const isSearchable = (folded: string): boolean => lettersIn(folded) > 0

/** Whether enough of a loosely folded search is left for a match to mean something. */
export const isLooselySearchable = (folded: string): boolean => lettersIn(folded) >= fewestLooseLetters
