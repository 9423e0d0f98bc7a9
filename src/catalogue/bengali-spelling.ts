// The usual spelling of Bengali: what readers can't tell apart has one form here, also where Unicode equates nothing. For
// names that are compared or checked; letters that only sound alike are for catalogue/search.ts.

// The signs of one letter in their usual order: nukta, hasanta, the vowel, the half of it that stands before another half
// first, candrabindu.
const signOrder = '\u09bc\u09cd\u09c7\u09be\u09d7\u09bf\u09c0\u09c1\u09c2\u09c3\u09c4\u09c8\u09e2\u09e3\u0981'
const signs = new RegExp(`[${signOrder}\u09cb\u09cc]{2,}`, 'g')
const inOrder = (given: string): string =>
  [...new Set(given.normalize('NFD'))]
    .sort((one, other) => signOrder.indexOf(one) - signOrder.indexOf(other))
    .join('')

const usual: Readonly<Record<string, string>> = {
  '\u0985\u09be': '\u0986',
  '\u098b\u09c3': '\u09e0',
  '\u098c\u09e2': '\u09e1',
  '\u0993\u09d7': '\u0994',
  '\u09ac\u09bc': '\u09b0',
  // As it was written before khanda ta had a code point.
  '\u09a4\u09cd\u200d': '\u09ce',
}
const unusual = new RegExp(Object.keys(usual).join('|'), 'g')
const colonForVisarga = /(?<=[\u0980-\u09ff]):+/g

/** The text in Unicode NFC, its Bengali as usually spelled: আ for অ and া, each sign once and in its place. */
export const usualSpelling = (text: string): string =>
  text
    .normalize('NFC')
    .replace(signs, inOrder)
    .normalize('NFC')
    .replace(unusual, letter => usual[letter] ?? letter)
    .replace(colonForVisarga, '\u0983')
