// A key in the spellings that a URL may have of it, and in those of headers that nobody writes down; and the reverse: whether a reader who decodes those
// spellings finds a part of its secret in a text. Shares no code with src/common/key-redaction.ts, which it tests.

const prefix = /^svc_(?:live|test)_/
const prefixLength = 'svc_live_'.length

const each = (spell: (character: string, at: number) => string) => (key: string) =>
  [...key].map(spell).join('')
const percent = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`
/** Spellings by name that are hidden wherever they stand. */
export const spellings: Readonly<Record<string, (key: string) => string>> = {
  plain: key => key,
  'prefix in capitals': key => key.replace(prefix, given => given.toUpperCase()),
  'prefix in mixed case': key =>
    key.replace(prefix, given => `S${given.slice(1, -3)}${given.slice(-3).toUpperCase()}`),
  'underscores percent-encoded': key => key.replaceAll('_', '%5f'),
  'underscores percent-encoded, capitals': key => key.replaceAll('_', '%5F'),
  'all percent-encoded': each(percent),
  'all percent-encoded, small': each(character => percent(character).toLowerCase()),
  'every third percent-encoded': each((character, at) => (at % 3 === 1 ? percent(character) : character)),
  'secret percent-encoded': key => key.slice(0, prefixLength) + each(percent)(key.slice(prefixLength)),
  'behind a plus': key => `a+${key}+b`,
}

/** Spellings of a header's value, which is neither logged nor answered. */
export const ofHeaders: Readonly<Record<string, (key: string) => string>> = {
  ...spellings,
  'percent-encoded twice': key => each(percent)(key).replaceAll('%', '%25'),
  base64: key => Buffer.from(key).toString('base64url'),
  'base64 behind a user': key => Buffer.from(`u:${key}`).toString('base64url'),
  hexadecimal: key => Buffer.from(key).toString('hex'),
  'full-width, as bytes of UTF-8': key =>
    Buffer.from(each(character => String.fromCodePoint(character.charCodeAt(0) + 0xfee0))(key)).toString(
      'latin1',
    ),
}

const onceRead = (text: string): string =>
  text
    .replaceAll(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/\\+u([0-9a-f]{4})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/\\+x([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/&#x0*([0-9a-f]{2});/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/&#0*(\d{2,3});/g, (_, number) => String.fromCharCode(Number(number)))
    .replaceAll('&lowbar;', '_')
    .replaceAll('&shy;', '')

/** A text with all escapes decoded, repeatedly. */
const readAll = (text: string): string => {
  const read = onceRead(text)
  return read === text ? text : readAll(read)
}

/** What a reader sees of a text: bytes of UTF-8 as what they spell, letters of any width as plain ones, nothing invisible. */
const seen = (text: string): string =>
  text
    .replaceAll(/[\xc2-\xf4][\x80-\xbf]+/g, bytes => Buffer.from(bytes, 'latin1').toString())
    .normalize('NFKC')
    .replaceAll(/[\p{Cc}\p{Cf}\p{Mn}\s]/gu, '')

const windowsOf = (text: string, length: number): string[] =>
  Array.from({ length: Math.max(0, text.length - length + 1) }, (_, at) => text.slice(at, at + length))

/** The first piece of a key's secret that can be read in a text, six characters long; undefined when there is none. */
export const leakIn = (text: string, key: string): string | undefined => {
  const secret = key.slice(prefixLength)
  const read = readAll(text)
  const plain = `${text}\n${read}\n${seen(text)}\n${seen(read)}`
  const pieces = windowsOf(secret, 6)
  // Six characters of the secret are eight of base64 and twelve of hexadecimal.
  for (const lead of ['', 'u:', 'us:']) {
    const inBase64 = Buffer.from(lead + key)
      .toString('base64url')
      .slice(16, -3)
    pieces.push(...windowsOf(inBase64, 8))
  }
  pieces.push(...windowsOf(Buffer.from(secret).toString('hex'), 12))
  return pieces.find(piece => plain.includes(piece))
}
