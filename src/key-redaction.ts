// Hides API keys in text that is logged, echoed or quoted, however they are spelled: as they are, percent-encoded any
// number of times, in escapes of JSON, strings and HTML, in base64 or hexadecimal, in full-width letters, parted by blanks or
// by characters that nobody sees. One place, because a spelling that is forgotten in one of many is a key in the log. Whether a key is valid is for metering/key-form.ts.

/** Every key begins so, in any letter case here. */
const prefix = 'svc_live_'
const hiddenKey = `${prefix}…`

// A check that costs tens of nanoseconds: without any of these there is no key, whatever is decoded. Either the letters in
// the midst of the prefix are there as they are, or an escape of one of its characters, of a part of an escape or of what
// is dropped, or a character that is no ASCII. Bengali, encoded or not, is none of them.
const mayHold =
  /_[\s+]{0,8}[lL]|%(?:[014-7]|2[056bB]|3\d|[cC][25b-dB-D]|[dD]8|[eE][1-3fF]|[fF])|&#|&(?:lowbar|UnderBar|shy|zwn?j|nbsp|ZeroWidthSpace|NoBreak);|\\|X2xpdm|19saXZ|NfbGl2|5f6[cC]/
// Apart, because together they are tried at every character.
const isNoPlainText = /[^\t-\r -~\u0980-\u09ff\u2026]/

// A key's secret is base62; what is no delimiter is hidden with it, so that a key which was mangled is hidden as well.
const run = '[\\w.+%~\\u0080-\\u2025\\u2027-\\uffff-]'
// Blanks may part the prefix as well, or a long word from it that can't be one of a sentence.
const partedPrefix = [...prefix].join('[\\s+]{0,8}')
const keys = new RegExp(
  [
    `${partedPrefix}(?:(?=[+.%~_-]*[0-9a-z])(?:(?!${partedPrefix})${run})+|\\s{1,8}[0-9a-z]{16})`,
    // The prefix in base64, for each of the three places where it may begin in a group of three bytes.
    '(?:c3ZjX2xpdmVf|N2Y19saXZlX|zdmNfbGl2ZV)[\\w+/-]+',
    '7376635f6c6976655f[0-9a-f]+',
  ].join('|'),
  'gi',
)

/** The text with `svc_live_…` in place of every API key and of every beginning of one; the same text if it has none. */
export const withoutKeys = (text: string): string =>
  mayHold.test(text) || isNoPlainText.test(text) ? hideKeys(text) : text

/** Whether a text holds an API key or the beginning of one. */
export const holdsKey = (text: string): boolean => withoutKeys(text) !== text

const [sign, secretSign] = [Buffer.from('_live_'), /svc_live_[0-9a-z%&\\]/i]

/**
 * As `withoutKeys` for text in UTF-8 that parts have made free of keys already: a net for what slips through, so it looks
 * for keys whose prefix is there as it is. Costs nanoseconds for each line of a log.
 */
export const withoutPlainKeys = (bytes: Buffer): Buffer => {
  if (!bytes.includes(sign)) return bytes
  const text = bytes.toString()
  return secretSign.test(text) ? Buffer.from(withoutKeys(text)) : bytes
}

const hideKeys = (text: string): string => {
  const { decoded, starts } = decode(text)
  let safe = ''
  let copied = 0
  for (const { 0: key, index } of decoded.matchAll(keys)) {
    const start = starts[index] as number
    if (copied === 0 || start > copied) safe += text.slice(copied, start) + hiddenKey
    copied = Math.max(copied, starts[endOf(decoded, key, index)] as number)
  }
  return copied === 0 ? text : safe + text.slice(copied)
}

const secretLength = 38
const lettersOfPrefix = prefix.replaceAll('_', '').length
const nextWord = /\s{0,8}[0-9a-z]+/iy

// Where a key ends: behind what a blank or a line break parted from it too, while there is not a whole secret yet.
const endOf = (decoded: string, key: string, index: number): number => {
  let end = index + key.length
  let missing = secretLength + lettersOfPrefix - key.replace(/[^0-9a-z]/gi, '').length
  while (missing > 0) {
    nextWord.lastIndex = end
    const word = nextWord.exec(decoded)?.[0]
    if (word === undefined) break
    end += word.length
    missing -= word.trimStart().length
  }
  return end
}

const [percent, ampersand, backslash, hash, semicolon, plus] = [0x25, 0x26, 0x5c, 0x23, 0x3b, 0x2b]
const [blank, zero, nine, letterA, replacement] = [0x20, 0x30, 0x39, 0x61, 0xfffd]

/**
 * A text with all escapes undone, those that come about by undoing others too, without what can't be seen, and for each of
 * its characters and its end where that began in the text. One pass: what ends an escape is looked for with every
 * character that is added.
 */
const decode = (text: string): { decoded: string; starts: Uint32Array } => {
  const codes = new Uint16Array(text.length)
  const starts = new Uint32Array(text.length + 1)
  let length = 0
  let isPlain = true
  for (let at = 0; at < text.length; at++) {
    const given = text.charCodeAt(at)
    codes[length] = given
    starts[length] = at
    length += 1
    if (isOther(given)) isPlain = false
    for (;;) {
      const size = escapeAtEnd(codes, length)
      if (size === 0) break
      const code = characterOf(codes, length - size, length)
      // Several backslashes are those of JSON in JSON.
      let first = length - size
      if (codes[first] === backslash) while (first > 0 && codes[first - 1] === backslash) first -= 1
      // A blank that was encoded parts no words: it came in the midst of something. The line break of a string does.
      codes[first] = size === 2 ? blank : isBlank(code) ? plus : code
      length = first + 1
      if (isOther(code)) isPlain = false
    }
  }
  starts[length] = text.length
  if (!isPlain) length = fold(codes, starts, joinUtf8(codes, starts, length))
  return { decoded: textOf(codes.subarray(0, length)), starts }
}

/** How many of the last characters are an escape: `%5f`, `\u005f`, `\x5f`, `\n`, `&#95;`, `&#x5f;` or `&lowbar;`; 0 if none. */
const escapeAtEnd = (codes: Uint16Array, length: number): number => {
  const last = codes[length - 1] as number
  if (last === semicolon) return entityAtEnd(codes, length)
  if (length >= 2 && codes[length - 2] === backslash && shortEscapes.includes(last)) return 2
  if (!isHexDigit(last) || length < 3 || !isHexDigit(codes[length - 2] as number)) return 0
  if (codes[length - 3] === percent) return 3
  if (length >= 4 && isMarkOf(codes, length - 4, 'x')) return 4
  const isLong =
    length >= 6 &&
    isMarkOf(codes, length - 6, 'u') &&
    isHexDigit(codes[length - 3] as number) &&
    isHexDigit(codes[length - 4] as number)
  return isLong ? 6 : 0
}

// Of line breaks and other controls: `\n`, `\t`, `\0`.
const shortEscapes = [...Buffer.from('nrtbfv0')]
const namedEntities: Readonly<Record<string, number>> = {
  lowbar: 0x5f,
  underbar: 0x5f,
  shy: 0xad,
  zwj: 0x200d,
  zwnj: 0x200c,
  nbsp: 0xa0,
  zerowidthspace: 0x200b,
  nobreak: 0x2060,
}
const longestEntity = 16
const entityAtEnd = (codes: Uint16Array, length: number): number => {
  const least = Math.max(0, length - longestEntity)
  for (let at = length - 2; at >= least; at--)
    if (codes[at] === ampersand) {
      const name = textOf(codes.subarray(at + 1, length - 1))
      const isEntity = /^#(?:\d+|x[\da-f]+)$/i.test(name) || Object.hasOwn(namedEntities, name.toLowerCase())
      return isEntity ? length - at : 0
    }
  return 0
}

/** The character that an escape stands for. */
const characterOf = (codes: Uint16Array, from: number, to: number): number => {
  if (codes[from] === ampersand) {
    const name = textOf(codes.subarray(from + 1, to - 1))
    if (codes[from + 1] !== hash) return namedEntities[name.toLowerCase()] ?? replacement
    const value = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
    return value > 0xffff ? replacement : value
  }
  let value = 0
  for (let at = from + (codes[from] === percent ? 1 : 2); at < to; at++) {
    const digit = codes[at] as number
    value = value * 16 + (digit <= nine ? digit - zero : (digit | 0x20) - letterA + 10)
  }
  return value
}

const isMarkOf = (codes: Uint16Array, at: number, letter: 'u' | 'x'): boolean =>
  codes[at] === backslash && ((codes[at + 1] as number) | 0x20) === letter.charCodeAt(0)

const isHexDigit = (code: number): boolean =>
  (code >= zero && code <= nine) || ((code | 0x20) >= letterA && (code | 0x20) < letterA + 6)

/** No printable ASCII and no blank. */
const isOther = (code: number): boolean => code > 0x7e || (code < 0x20 && !isBlank(code))
const isBlank = (code: number): boolean => code === 0x20 || (code >= 0x09 && code <= 0x0d)

/** Joins bytes of UTF-8, each a character of its own, in place: percent-encoded ones, or those of a header. Returns the length. */
const joinUtf8 = (codes: Uint16Array, starts: Uint32Array, length: number): number => {
  let joined = 0
  for (let at = 0; at < length; at++) {
    codes[joined] = codes[at] as number
    starts[joined] = starts[at] as number
    joined += 1
    // The joined character may be a byte of another character again, where bytes were decoded twice.
    for (;;) {
      const size = utf8AtEnd(codes, joined)
      if (size === 0) break
      const first = joined - size
      let point = (codes[first] as number) & (0xff >> (size + 1))
      for (let i = first + 1; i < joined; i++) point = (point << 6) | ((codes[i] as number) & 0x3f)
      const character = point <= 0x10ffff ? String.fromCodePoint(point) : '\ufffd'
      for (let i = 0; i < character.length; i++) codes[first + i] = character.charCodeAt(i)
      joined = first + character.length
    }
  }
  starts[joined] = starts[length] as number
  return joined
}

/** How many of the last characters are the bytes of one character in UTF-8; 0 if none. */
const utf8AtEnd = (codes: Uint16Array, length: number): number => {
  for (let size = 1; size <= 4 && size <= length; size++) {
    const code = codes[length - size] as number
    if (code >= 0x80 && code < 0xc0) continue
    const expected = code >= 0xc2 && code < 0xe0 ? 2 : code >= 0xe0 && code < 0xf0 ? 3 : 4
    return size === expected && size > 1 && code >= 0xc2 && code < 0xf5 ? size : 0
  }
  return 0
}

/** Drops what can't be seen, and gives letters that look like ASCII its codes, in place. Returns the length. */
const fold = (codes: Uint16Array, starts: Uint32Array, length: number): number => {
  let kept = 0
  for (let at = 0; at < length; at++) {
    const code = codes[at] as number
    const next = codes[at + 1] as number
    const isPair = code >> 10 === 0x36 && at + 1 < length && next >> 10 === 0x37
    const folded = isPair
      ? foldedOf(String.fromCharCode(code, next))
      : isOther(code)
        ? knownFoldOf(code)
        : code
    if (folded !== dropped) {
      codes[kept] = folded
      starts[kept] = starts[at] as number
      kept += 1
    }
    if (isPair) at += 1
  }
  starts[kept] = starts[length] as number
  return kept
}

// Each takes a normalisation: once for a character. A noncharacter stands for what is dropped.
const dropped = 0xffff
const knownFolds = new Uint16Array(0x1_0000)
// Marks that belong to no script, controls, and what is ignored where it can't be shown; private and unassigned characters.
const unseen =
  /[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\ufffd]|(?=\p{M})\p{Script=Inherited}/u

const knownFoldOf = (code: number): number => {
  const known = knownFolds[code]
  if (known) return known
  const folded = foldedOf(String.fromCharCode(code))
  knownFolds[code] = folded
  return folded
}

const foldedOf = (character: string): number => {
  if (unseen.test(character)) return dropped
  if (/\p{Z}/u.test(character)) return plus
  const plain = character.normalize('NFKD').replace(/\p{M}/gu, '')
  if (plain.length === 1 && plain < '\x7f') return plain.charCodeAt(0)
  return character.length === 1 ? character.charCodeAt(0) : letter
}
// Any letter that is no ASCII: it belongs to a run.
const letter = 0x3b1

const textOf = (codes: Uint16Array): string =>
  Buffer.from(codes.buffer, codes.byteOffset, codes.byteLength).toString('utf16le')
