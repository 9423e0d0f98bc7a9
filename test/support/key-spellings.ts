// A key in every spelling that a client, a proxy or a person may use, and the reverse: whether a reader who decodes those
// spellings finds a part of its secret in a text. Shares no code with src/key-redaction.ts, which it tests.

const prefix = 'svc_live_'

const each = (spell: (character: string, at: number) => string) => (key: string) =>
  [...key].map(spell).join('')
const percent = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`
const unicode = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
const again = (text: string): string => text.replaceAll('%', '%25')

const parted = (by: string) => (key: string) => [...key].join(by)
const fullWidth = each(character => String.fromCodePoint(character.charCodeAt(0) + 0xfee0))
const zeroWidthSpace = '\u200b'

/** Spellings by name. */
export const spellings: Readonly<Record<string, (key: string) => string>> = {
  plain: key => key,
  'prefix in capitals': key => key.replace(prefix, prefix.toUpperCase()),
  'prefix in mixed case': key => key.replace(prefix, 'Svc_liVE_'),
  'underscores percent-encoded': key => key.replaceAll('_', '%5f'),
  'underscores percent-encoded, capitals': key => key.replaceAll('_', '%5F'),
  'all percent-encoded': each(percent),
  'all percent-encoded, small': each(character => percent(character).toLowerCase()),
  'every third percent-encoded': each((character, at) => (at % 3 === 1 ? percent(character) : character)),
  'secret percent-encoded': key => prefix + each(percent)(key.slice(prefix.length)),
  'percent-encoded twice': key => again(each(percent)(key)),
  'underscores percent-encoded twice': key => key.replaceAll('_', '%255f'),
  'percent-encoded three times': key => again(again(each(percent)(key))),
  'percent sign encoded in parts': key => key.replaceAll('_', '%%35f'),
  'behind a plus': key => `a+${key}+b`,
  'a plus in the secret': key => `${key.slice(0, 20)}+${key.slice(20)}`,
  'a line break in the secret': key => `${key.slice(0, 20)}%0A${key.slice(20)}`,
  'JSON escapes': each(unicode),
  'JSON escapes, underscores alone': key => key.replaceAll('_', '\\u005F'),
  'JSON in JSON': key => key.replaceAll('_', '\\\\u005f'),
  'JSON escapes, percent-encoded': key => each(unicode)(key).replaceAll('\\', '%5C'),
  'string escapes': key => key.replaceAll('_', '\\x5f'),
  'HTML, decimal': each(character => `&#${character.charCodeAt(0)};`),
  'HTML, hexadecimal': key => key.replaceAll('_', '&#x5F;'),
  'HTML, by name': key => key.replaceAll('_', '&lowbar;'),
  'HTML, percent-encoded': key => key.replaceAll('_', '%26%2395%3B'),
  base64: key => Buffer.from(key).toString('base64url'),
  'base64 behind a user': key => Buffer.from(`u:${key}`).toString('base64url'),
  'base64 behind a longer user': key => Buffer.from(`us:${key}`).toString('base64url'),
  'parted by zero-width spaces, as bytes of UTF-8': key =>
    Buffer.from(parted(zeroWidthSpace)(key)).toString('latin1'),
  'parted by zero-width spaces, percent-encoded': parted('%E2%80%8B'),
  'parted by zero-width spaces, percent-encoded twice': parted('%25E2%2580%258B'),
  'parted by zero-width spaces, JSON escapes': parted('\\u200b'),
  'a soft hyphen in the prefix, percent-encoded': key => key.replace('_', '%C2%AD_'),
  'parted by soft hyphens, HTML': parted('&shy;'),
  'parted by NUL, percent-encoded': parted('%00'),
  'parted by NUL, percent-encoded twice': parted('%2500'),
  'a blank in the prefix, percent-encoded': key => key.replace('_', '%20_'),
  'full-width, percent-encoded': key => encodeURIComponent(fullWidth(key)),
  'full-width, percent-encoded twice': key => again(encodeURIComponent(fullWidth(key))),
  hexadecimal: key => Buffer.from(key).toString('hex'),
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
  const secret = key.slice(prefix.length)
  const read = readAll(text)
  const plain = `${text}\n${read}\n${seen(text)}\n${seen(read)}`
  const pieces = windowsOf(secret, 6)
  // Six characters of the secret are eight of base64 and twelve of hexadecimal.
  for (const lead of ['', 'u:', 'us:'])
    pieces.push(
      ...windowsOf(
        Buffer.from(lead + key)
          .toString('base64url')
          .slice(16, -3),
        8,
      ),
    )
  pieces.push(...windowsOf(Buffer.from(secret).toString('hex'), 12))
  return pieces.find(piece => plain.includes(piece))
}
