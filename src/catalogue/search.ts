// When two spellings are the same to a reader: encodings, letter case, marks on Latin letters and blanks do not count.
// Bengali signs are never stripped, they are letters there. Which places are asked is for catalogue.ts.

const zeroWidth = /[\u200b-\u200d\u2060\ufeff]/gu
const marksOnLatin = /(\p{Script=Latin})[\p{M}&&\p{Script=Inherited}]+/gv

// Lower, upper, lower reaches what a single step does not: ẞ and ß become ss, ſ becomes s. A final sigma depends on
// what follows it, and in a part of a word something else follows.
const foldCase = (text: string): string =>
  text.toLowerCase().toUpperCase().toLowerCase().replaceAll('\u03c2', '\u03c3')

const blanks = /\s+/gu

// Most names and queries, for which the long way does nothing but fold small letters, encodings and blanks.
const plain = /^[\x20-\x7e\u0980-\u09ff]*$/u

/** The form in which spellings are compared; texts that read alike fold to the same string, in Unicode NFC. */
export const fold = (text: string): string =>
  plain.test(text)
    ? text.toLowerCase().normalize('NFC').replace(blanks, ' ').trim()
    : foldCase(text.replace(zeroWidth, '').normalize('NFD'))
        .normalize('NFD')
        .replace(marksOnLatin, '$1')
        .normalize('NFC')
        .replace(blanks, ' ')
        .trim()
