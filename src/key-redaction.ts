// Hides API keys in text that is logged, echoed or quoted, however they are spelled: as they are, percent-encoded any
// number of times, in escapes of JSON, strings and HTML, in base64 or hexadecimal. One place, because a spelling that is
// forgotten in one of many is a key in the log. Whether a key is valid is for metering/key-form.ts.

/** Every key begins so, in any letter case here. */
const prefix = 'svc_live_'
const hiddenKey = `${prefix}…`

// A look that costs tens of nanoseconds: without any of these there is no key, whatever is decoded. Either the letters in
// the midst of the prefix are there as they are, or an escape of one of its characters, or of a part of an escape.
const mayHold = /_[lL]|%(?:[4-7]|2[56]|3\d)|&#|&(?:lowbar|UnderBar);|\\|X2xpdm|19saXZ|NfbGl2|5f6[cC]/

// A key's secret is base62; what is no delimiter is hidden with it, so that a key which was mangled is hidden as well.
const run = '[\\w.+%~\\u0080-\\u2025\\u2027-\\uffff-]'
const keys = new RegExp(
  [
    `${prefix}(?=[+.%~_-]*[0-9a-z])${run}+`,
    // The prefix in base64, for each of the three places where it may begin in a group of three bytes.
    '(?:c3ZjX2xpdmVf|N2Y19saXZlX|zdmNfbGl2ZV)[\\w+/-]+',
    '7376635f6c6976655f[0-9a-f]+',
  ].join('|'),
  'gi',
)

/** The text with `svc_live_…` in place of every API key and of every beginning of one; the same text if it has none. */
export const withoutKeys = (text: string): string => (mayHold.test(text) ? hideKeys(text) : text)

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
const nextWord = /\s{1,8}[0-9a-z]+/iy

// Where a key ends: behind what a blank or a line break parted from it too, while there is not a whole secret yet.
const endOf = (decoded: string, key: string, index: number): number => {
  let end = index + key.length
  let missing = secretLength - key.slice(prefix.length).replace(/[^0-9a-z]/gi, '').length
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
const [underscore, zero, nine, letterA, replacement] = [0x5f, 0x30, 0x39, 0x61, 0xfffd]

/**
 * A text with all escapes undone, those that come about by undoing others too, and for each of its characters and its
 * end where that began in the text. One pass: what ends an escape is looked for with every character that is added.
 */
const decode = (text: string): { decoded: string; starts: Uint32Array } => {
  const codes = new Uint16Array(text.length)
  const starts = new Uint32Array(text.length + 1)
  let length = 0
  for (let at = 0; at < text.length; at++) {
    codes[length] = text.charCodeAt(at)
    starts[length] = at
    length += 1
    for (;;) {
      const size = escapeAtEnd(codes, length)
      if (size === 0) break
      const code = characterOf(codes, length - size, length)
      // Several backslashes are those of JSON in JSON.
      let first = length - size
      if (codes[first] === backslash) while (first > 0 && codes[first - 1] === backslash) first -= 1
      // A blank that was encoded parts no words: it came in the midst of something.
      codes[first] = code <= 0x20 ? plus : code
      length = first + 1
    }
  }
  starts[length] = text.length
  return { decoded: textOf(codes.subarray(0, length)), starts }
}

/** How many of the last characters are an escape: `%5f`, `\u005f`, `\x5f`, `&#95;`, `&#x5f;` or `&lowbar;`; 0 if none. */
const escapeAtEnd = (codes: Uint16Array, length: number): number => {
  const last = codes[length - 1] as number
  if (last === semicolon) return entityAtEnd(codes, length)
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

const longestEntity = 12
const entityAtEnd = (codes: Uint16Array, length: number): number => {
  const least = Math.max(0, length - longestEntity)
  for (let at = length - 2; at >= least; at--)
    if (codes[at] === ampersand) {
      const name = textOf(codes.subarray(at + 1, length - 1))
      return /^(?:#\d+|#x[\da-f]+|lowbar|UnderBar)$/i.test(name) ? length - at : 0
    }
  return 0
}

/** The character that an escape stands for. */
const characterOf = (codes: Uint16Array, from: number, to: number): number => {
  if (codes[from] === ampersand) {
    const name = textOf(codes.subarray(from + 1, to - 1))
    if (codes[from + 1] !== hash) return underscore
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

const textOf = (codes: Uint16Array): string =>
  Buffer.from(codes.buffer, codes.byteOffset, codes.byteLength).toString('utf16le')
