// Text from outside made fit for a terminal, a log line and a sentence: controls and turns of direction are escaped, long text is cut,
// API keys and passwords in URLs are hidden. In one place, because each of many would forget another character.

import { withoutKeys } from './key-redaction.ts'
import { redactedUrls } from './redacted-url.ts'

// Controls (ESC, C1 and line breaks among them), lone surrogates, separators of lines, what turns the direction of text,
// and what is invisible without a use in spelling. The joiners U+200C and U+200D stay: Bengali is spelled with them.
const signs =
  '[\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Bidi_Control}\\u200b\\u2060-\\u2064\\u206a-\\u206f\\ufeff\\ufff9-\\ufffb]'
const unprintable = new RegExp(signs, 'gu')
const unprintableButBreaks = new RegExp(`(?!\\n)${signs}`, 'gu')

const longestText = 2_000
const longestQuote = 60
const longestPath = 1_000
const ellipsis = '…'

/** Whether a text can be shown as it is, on one line. */
export const isPrintable = (text: string): boolean => text.search(unprintable) === -1

/** Text for a terminal: unprintable characters and line breaks are escaped, such as \u001b; cut to a length. */
export const printable = (text: string, most = longestText): string =>
  escaped(shortened(text, most), unprintable)

/** Lines for a terminal: as `printable`, with their breaks and of any length. */
export const printableLines = (text: string): string => escaped(text, unprintableButBreaks)

/** Text for a log line or a sentence: as `printable`, and without API keys. */
export const safeText = (text: string, most = longestText): string =>
  escaped(bounded(text, most), unprintable)

/** A value as it was received, in quotation marks: without API keys, escaped, and cut to a length that is safe to show. */
export const quoted = (value: string, most = longestQuote): string => jsonText(bounded(value, most))

/** The path of a file, as `quoted`, and longer: its end says most of it. */
export const quotedPath = (path: string): string => quoted(path, longestPath)

/** JSON of a value, with an escape for every character that is not printable; the same value once it is parsed. */
export const jsonText = (value: unknown): string => escapedJson(JSON.stringify(value))

/** JSON without blanks between its parts, as `jsonText` would write it. */
export const escapedJson = (json: string): string => escaped(json, unprintable)

/** Text without API keys, cut to a length; a key that the cut would part is hidden whole. */
export const bounded = (text: string, most = longestText): string => {
  const isLong = text.length > most + longestKey
  const begins = isLong ? text.slice(0, most + longestKey) : text
  return shortened(redactedUrls(withoutKeys(begins)), most)
}
// Of a key whose characters are all percent-encoded.
const longestKey = 150

/** At most so many UTF-16 units of a text and an ellipsis; never half of what is read as one character. */
export const shortened = (text: string, most: number): string =>
  text.length <= most ? text : text.slice(0, boundaryBefore(text, most)) + ellipsis

// One character may have so many units; a longer one (marks upon marks) is cut.
const longestCharacter = 32
let segmenter: Intl.Segmenter | undefined

const boundaryBefore = (text: string, most: number): number => {
  segmenter ??= new Intl.Segmenter('und', { granularity: 'grapheme' })
  const begins = segmenter.segment(text.slice(0, most + longestCharacter)).containing(most)?.index ?? most
  if (begins > 0 && most - begins <= longestCharacter) return begins
  const partsPair = text.charCodeAt(most - 1) >> 10 === 0xd800 >> 10
  return partsPair ? most - 1 : most
}

// Copies the text, so that a short part does not keep the long text in memory.
const escaped = (text: string, what: RegExp): string =>
  text.replace(what, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
