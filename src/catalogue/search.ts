// Folds spellings for search: encodings, letter case, Latin marks, blanks and punctuation. Bengali signs stay. A looser fold also
// equates letters that are often confused.

import { usualSpelling } from './bengali-spelling.ts'

// Left out on both sides, since writers differ: blanks, zero-width signs, marks of direction, hyphens and dashes, full stops (the
// danda is the Bengali one), and every sign that keyboards offer as an apostrophe.
const ignored =
  /[\s\u200b-\u200d\u2060\ufeff\p{Bidi_Control}\p{Pd}\u00ad.\u0964'`\u00b4\u02b9\u02bb\u02bc\u2018\u2019\u201b\u2032]+/gu
const fullWidth = /[\uff01-\uff5e]/g
const halfWidth = (sign: string): string => String.fromCharCode(sign.charCodeAt(0) - 0xfee0)
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
        foldCase(usualSpelling(text.replace(fullWidth, halfWidth)).normalize('NFD'))
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
  '\u099e': '\u09a8',
  '\u09b6': '\u09b8',
  '\u09b7': '\u09b8',
  '\u0981': '',
  '\u0983': '',
  '\u09ce': '\u09a4\u09cd',
  '\u09f0': '\u09b0',
}
const confusedLetters = /[zv\u09c0\u09c2\u09a3\u099e\u09b6\u09b7\u0981\u0983\u09ce\u09f0]/g
// Clusters that look alike: \u099f\u09cd\u09b0 for \u099f\u09cd\u099f, and \u0995\u09cd\u09b7 for \u09b9\u09cd\u09ae or \u0995\u09cd\u09b7\u09cd\u09ae, whose \u09b7 is \u09b8 by then.
const writtenTta = /\u099f\u09cd\u09b0/g
const writtenKsha = /(?:\u09b9\u09cd\u09ae|\u0995\u09cd\u09b8)(?:\u09cd\u09ae)*/g
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
  // A letter that is left out may have parted signs.
  usualSpelling(fold(text).replace(confusedLetters, letter => confused[letter] ?? letter))
    .replace(writtenTta, '\u099f\u09cd\u099f')
    .replace(writtenKsha, '\u0995\u09cd\u09b8')
    .replace(writtenF, 'f')
    .replace(equalLatin, single)
    .replaceAll('gonj', 'ganj')
    .replaceAll('sader', 'sadar')

const levels =
  'division|district|up[ao]j[ei]la|j[ei]la|thana|union(?:parishad)?|' +
  '\u09ac\u09bf\u09ad\u09be\u0997|(?:\u0989\u09aa)?\u099c[\u09c7\u09bf]\u09b2\u09be|\u09a5\u09be\u09a8\u09be|' +
  '\u0987\u0989\u09a8\u09bf\u09df\u09a8(?:\u09aa\u09b0\u09bf\u09b8\u09a6)?'
const levelWord = new RegExp(`^(?:${levels})|(?:${levels})$`)

/** A loosely folded search without a word for the level at its beginning or end, which names do not have: Dhaka District. */
export const withoutLevel = (folded: string): string => folded.replace(levelWord, '')

/** Invisible as it is typed: a search that is left empty. */
export const isBlank = (text: string): boolean => blank.test(text)
const blank = /^[\s\u200b-\u200d\u2060\ufeff\p{Bidi_Control}\u00ad]*$/u

const lettersIn = (folded: string): number => folded.match(letters)?.length ?? 0

/** Whether a folded search names anything: without a letter it would be a part of every name, or of none. */
export const isSearchable = (folded: string): boolean => lettersIn(folded) > 0

/** Whether enough of a loosely folded search is left for a match to mean something. */
export const isLooselySearchable = (folded: string): boolean => lettersIn(folded) >= fewestLooseLetters
