// Generates paths and queries for all endpoints: valid ones, and ones with a wrong type, number, encoding or length.
// In ASCII, as in a request line; the oracle decides what they mean.

import fc, { type Arbitrary } from 'fast-check'
import { keyPlaceholder, marker, secretPlaceholder } from '../http/request-text.ts'
import { places, placeTypes } from '../oracle/places.ts'
import { chance, joined, parts, pick, repeated, several, upTo, weighted, words } from '../target.ts'

type Text = Arbitrary<string>
/** The first so many times in a hundred, else the second. */
const mostly = (percent: number, usual: Text, other: Text): Text =>
  weighted([percent, usual], [100 - percent, other])

const badEncodings = words(
  '% %2 %zz %E0%A6 %C0%AF %ED%A0%80 %FF %F5%80%80%80 %80 %u0041 %00 %0d%0a %0D%0ASet-Cookie:%20a=b',
)
const hostileWords = words(
  `__proto__ constructor toString .. %2e%2e %2F ..%2f..%2fetc %27%20OR%201=1 <script> %3Cscript%3E $%7Bx%7D
  -1 0 1e3 NaN null undefined true ${marker}`,
)
const texts =
  parts(`ঢাকা|য়|য\u09bc|ড়|ড\u09bc|ো|ে\u09be|চট্টগ্রাম|ক\u0981\u0982\u0983|১২৩|কক্স বাজার|\u200d|\u200c|\ufeff|
  ${'্'.repeat(30)}|sadar|DHAKA|Cox’s|ı|ß|ﬁ|Å|A\u030a|𝔇haka|👍🏽|\u202e|"|\\|'|%|_|*|coxs bazar|${'x'.repeat(99)}|
  ${'é'.repeat(101)}`)

const hex = (character: string): string => `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`
/** Percent-encoded as in a query or a path. */
const encodedText = (text: string): string =>
  Buffer.from(text)
    .toString('latin1')
    .replaceAll(/[^A-Za-z0-9._~-]/g, hex)
/** Partly more than necessary: each sixteenth letter or so. */
const encoded = (of: Text): Text =>
  fc
    .tuple(of, fc.nat(31))
    .map(([text, which]) =>
      encodedText(text).replaceAll(/(?<!%[0-9a-f]?)[A-Za-z0-9]/g, letter =>
        letter.charCodeAt(0) % 32 === which ? hex(letter) : letter,
      ),
    )
/** Only what a request line can't have is encoded. */
const inAscii = (of: Text): Text => of.map(text => text.replaceAll(/[^\x21-\x7e]/gu, encodedText))
const graphemes = encoded(fc.string({ unit: 'grapheme', maxLength: 60, size: 'max' }))

const word: Text = fc.oneof(
  pick('', ...hostileWords),
  pick(...badEncodings),
  encoded(pick(...texts)),
  graphemes,
  repeated('9', 1, 500),
  repeated('x', 1, 3_000),
)

const badTypes = words('District districts coords all union%20 d%69strict division%00 %64istrict')
const type = mostly(85, pick(...placeTypes), fc.oneof(pick(...badTypes), word))
const badIds = words('0 03026 3026%20 %333026 3026.0 +3026 ३०२६')
/** Mostly an existing id; of the given type, or of another. */
const id = (level: string): Text => {
  const own = places.filter(place => place.type === level)
  const some = (all: typeof places) => pick(...all.map(place => place.id))
  const existing = own.length > 0 ? mostly(90, some(own), some(places)) : some(places)
  const slug = pick(...own.slice(0, 400).map(place => place.slug_en), 'Dhaka', 'durgapur')
  return weighted([70, existing], [10, slug], [20, inAscii(fc.oneof(pick(...badIds), word))])
}
const place = type.chain(level => joined(`${level}/`, id(level)))

const oddNumbers = words('007 1.0 1e0 +1 -0 %31 1 1%20 0x1 1_0 ٣ ९ ∞')
const number = (least: number, most: number): Text =>
  inAscii(
    weighted(
      [2, upTo(least, most).map(String)],
      [1, pick(least - 1, least, most, most + 1).map(String)],
      [1, pick('', ...oddNumbers)],
      [1, repeated('9', 1, 400)],
      [1, word],
    ),
  )

const oddDegrees = words('NaN Infinity 2e1 0x17 23. .5 23,8 23.8.1 23%2E8 - + %2B23.8 23%20 1e400 २३ 23.8°')
const degrees = (least: number, most: number): Text => {
  const inside = fc.nat(10 ** 6).map(part => least + (part / 10 ** 6) * (most - least))
  const short = inside.map(value => value.toFixed(2))
  const outside = pick(least - 0.0001, most + 0.0001, -least, most * 10, 0, 90, 180)
  return inAscii(
    weighted(
      [2, fc.tuple(inside, fc.nat(6)).map(([value, digits]) => value.toFixed(digits))],
      [2, fc.oneof(inside, pick(least, most)).map(String)],
      [1, outside.map(value => value.toFixed(4))],
      [1, joined(fc.oneof(fc.constant('+'), repeated('0', 1, 50)), short)],
      [1, joined(short, repeated('0', 1, 900))],
      [1, pick(...oddDegrees)],
      [1, word],
    ),
  )
}

/** A part of a real name, as a person might type it. */
const name: Text = fc
  .tuple(pick(...places), fc.boolean(), fc.nat(6))
  .map(([{ name_en, name_bn }, isEnglish, way]) => {
    const full = isEnglish ? name_en : name_bn
    const decomposed = full.normalize('NFD')
    const ways = [full, full.toUpperCase(), full.slice(0, 3), ` ${full} `, decomposed, full.normalize('NFC')]
    return ways[way] ?? decomposed.replaceAll('\u09c7\u09be', '\u09be\u09c7')
  })
const long = fc.tuple(pick(...texts), upTo(1, 40)).map(([text, times]) => text.repeat(times))
const search = weighted(
  [2, encoded(name)],
  [1, encoded(fc.oneof(pick(...texts), long))],
  [1, graphemes],
  [1, word],
)

/** The key in the URL, where some clients put it by mistake, in the spellings that a URL allows. */
const keyBegins = words('svc%5Flive%5F svc%5flive_ %73vc_live_ s%76c_l%69ve_')
const misplacedKey = pick(keyPlaceholder, ...keyBegins.map(begin => begin + secretPlaceholder))
const included = fc.oneof(
  pick('', ...words('text place place,text text%2cplace text,text Text text, ,text')),
  word,
)
const valuesOf: readonly (readonly [name: Text | string, value: Text])[] = [
  ['lang', fc.oneof(pick('', ...words('bn en EN fr %65n en%00')), word)],
  ['include', included],
  ['days', number(1, 7)],
  ['places', place],
  ['limit', number(1, 100)],
  ['offset', fc.oneof(number(0, 600), fc.nat(5_000).map(String))],
  ['type', type],
  ['q', search],
  ['division_id', id('division')],
  ['district_id', id('district')],
  ['upazila_id', fc.oneof(id('upazila'), ...['x', '%20', "'"].map(each => repeated(each, 1_000, 3_900)))],
  [pick('x-api-key', 'key', marker), misplacedKey],
  [word, word],
  [marker, repeated(marker, 1, 900)],
]
const sign = pick('=', '=', '=', '', '%3D', '[]=', '%5B0%5D=')
const parameter: Text = fc.oneof(
  ...valuesOf.map(([of, value]) => weighted([5, joined(of, sign, value)], [1, joined(of)])),
)

/** Some parameters in any order, more of any kind, and now and then one of them twice. */
const query = (...wanted: Text[]): Text =>
  fc
    .tuple(
      fc.tuple(...wanted),
      fc.oneof(fc.constant([]), several(parameter, 1, 4)),
      fc.nat(),
      chance(5),
      pick('', '', '', '?', '?&', '?&&='),
    )
    .map(([needed, more, turn, isTwice, none]) => {
      const all = [...needed.filter(text => text !== ''), ...more]
      if (all.length === 0) return none
      const turned = [...all.slice(turn % all.length), ...all.slice(0, turn % all.length)]
      return `?${[...turned, ...(isTwice ? [turned[0]] : [])].join('&')}`
    })
const perhaps = (...of: (Text | string)[]): Text => mostly(50, joined(...of), fc.constant(''))
const lang = pick('', 'lang=bn', 'lang=en')
const addition = pick('', '', '', 'include=text', 'include=place', 'include=place,text')
const listed = [
  joined('type=', type),
  perhaps('limit=', number(1, 100)),
  perhaps('offset=', number(0, 600)),
  perhaps('q=', search),
]
const segments = fc.oneof(
  pick('', ...words('api v1 weather locations forecast coords district 3026 %61pi v%31')),
  word,
)
// Links to other pages repeat the query, in an encoding that takes up to three times as much.
const repeatedQuery = [pick('q', 'division_id', 'district_id', 'upazila_id', marker), '=']
const longValues = ['x', '%20', "'", '%F0%9F%91%8D'].map(each =>
  repeated(each, 30, Math.floor(10_000 / each.length)),
)

const point = joined('coords/', degrees(20, 27), '/', degrees(87.5, 93))
/** Up to some more than may be in a list. */
const manyPlaces = weighted(
  [6, several(fc.oneof(place, place, point, word), 1, 8).map(all => all.join())],
  [
    1,
    fc.nat(140).map(count =>
      places
        .slice(0, count)
        .map(({ type, id }) => `${type}/${id}`)
        .join(),
    ),
  ],
)

const endpoints: Readonly<Record<string, Text>> = {
  weather: joined('/api/v1/weather/', place, query(lang, addition)),
  coords: joined('/api/v1/weather/coords/', degrees(20, 27), '/', degrees(87.5, 93), query(lang, addition)),
  list: joined('/api/v1/locations', query(...listed)),
  'many places': joined(
    '/api/v1/',
    pick('weather', 'forecast'),
    query(joined('places=', manyPlaces), lang, perhaps('days=', number(1, 7))),
  ),
  'list with links': joined(
    ...[
      '/api/v1/locations?type=',
      pick(...placeTypes),
      pick('&limit=1', '&limit=5'),
      pick('', '&offset=4'),
      '&',
    ],
    ...repeatedQuery,
    fc.oneof(...longValues),
  ),
  detail: joined('/api/v1/locations/', place, query()),
  forecast: joined('/api/v1/forecast/', place, query(perhaps('days=', number(1, 7)), lang, addition)),
  'other paths': joined(
    several(segments, 0, 6).map(all => all.map(each => `/${each}`).join('') || '/'),
    query(),
  ),
}

/** With the name of the endpoint; at most 12 KB. Lists and coordinates come twice as often. */
export const requestTargets: Arbitrary<{ readonly endpoint: string; readonly target: string }> = pick(
  ...Object.keys(endpoints),
  'list',
  'coords',
).chain(endpoint =>
  (endpoints[endpoint] ?? fc.constant('/')).map(text => ({
    endpoint,
    target: text.replaceAll('#', '%23').slice(0, 12_000),
  })),
)
