// Generates paths and queries for the five endpoints: valid ones, and ones with a wrong type, number, encoding or length.
// In ASCII, as in a request line; the oracle decides what they mean. Longer than 300 lines, because it is a list of generators.

import fc from 'fast-check'
import { marker } from '../http/answer-rules.ts'
import { keyPlaceholder, secretPlaceholder } from '../http/request-text.ts'
import { places, placeTypes } from '../oracle/places.ts'
import type { Random } from '../random.ts'

const badEncodings = [
  '%',
  '%2',
  '%zz',
  '%E0%A6',
  '%C0%AF',
  '%ED%A0%80',
  '%FF',
  '%F5%80%80%80',
  '%80',
  '%u0041',
  '%00',
  '%0d%0a',
  '%0D%0ASet-Cookie:%20a=b',
]
const hostileWords = [
  '__proto__',
  'constructor',
  'toString',
  '..',
  '%2e%2e',
  '%2F',
  '..%2f..%2fetc',
  '%27%20OR%201=1',
  '<script>',
  '%3Cscript%3E',
  '$%7Bx%7D',
  '-1',
  '0',
  '1e3',
  'NaN',
  'null',
  'undefined',
  'true',
  marker,
]
const bengali = [
  'ঢাকা',
  'য়',
  'য\u09bc',
  'ড়',
  'ড\u09bc',
  'ো',
  'ে\u09be',
  'কক্স বাজার',
  'চট্টগ্রাম',
  '\u200d',
  '\u200c',
  '\ufeff',
  '্'.repeat(30),
  'ক\u0981\u0982\u0983',
  '১২৩',
]
const latin = [
  'sadar',
  'DHAKA',
  'coxs bazar',
  'Cox’s',
  'ı',
  'ß',
  'ﬁ',
  'Å',
  'A\u030a',
  '𝔇haka',
  '👍🏽',
  '\u202e',
  'x'.repeat(99),
  'é'.repeat(101),
  '"',
  '\\',
  "'",
  '%',
  '_',
  '*',
]

/** Percent-encoded as in a query or a path, partly more than necessary. */
const encoded = (random: Random, text: string): string =>
  [...Buffer.from(text)]
    .map(byte => {
      const character = String.fromCharCode(byte)
      const isPlain = /[A-Za-z0-9._~-]/.test(character)
      return isPlain && !random.chance(0.05) ? character : `%${byte.toString(16).padStart(2, '0')}`
    })
    .join('')

const word = (random: Random): string =>
  random.pick([
    () => random.pick(hostileWords),
    () => random.pick(badEncodings),
    () => encoded(random, random.pick([...bengali, ...latin])),
    () => encoded(random, random.sample(fc.string({ unit: 'grapheme', maxLength: 30 }))),
    () => '9'.repeat(random.between(1, 500)),
    () => 'x'.repeat(random.between(1, 3_000)),
    () => '',
  ])()

const type = (random: Random): string =>
  random.chance(0.85)
    ? random.pick(placeTypes)
    : random.pick([
        'District',
        'districts',
        'coords',
        'all',
        'union%20',
        'd%69strict',
        'division%00',
        '%64istrict',
        word(random),
      ])

/** Mostly an existing id; of the given type, or of another. */
const id = (random: Random, ofType: string): string =>
  random.chance(0.8)
    ? (random.pick(random.chance(0.9) ? places.filter(place => place.type === ofType) : places)?.id ?? '10')
    : random.pick(
        ['0', '03026', '3026%20', '%333026', '3026.0', '+3026', '३०२६', word(random)].map(text =>
          encodedAgain(random, text),
        ),
      )
const encodedAgain = (random: Random, text: string): string =>
  /^[\x21-\x7e]*$/.test(text) ? text : encoded(random, text)

const number = (random: Random, least: number, most: number): string =>
  random
    .pick([
      () => String(random.between(least, most)),
      () => String(random.between(least, most)),
      () => String(random.pick([least - 1, least, most, most + 1])),
      () =>
        random.pick([
          '007',
          '1.0',
          '1e0',
          '+1',
          '-0',
          '%31',
          ' 1'.trim(),
          '1%20',
          '0x1',
          '1_0',
          '٣',
          '९',
          '',
          '∞',
        ]),
      () => '9'.repeat(random.between(1, 400)),
      () => word(random),
    ])()
    .replaceAll(/[^\x21-\x7e]/gu, text => encoded(random, text))

const degrees = (random: Random, least: number, most: number): string => {
  const inside = least + random.fraction() * (most - least)
  return random.pick([
    () => inside.toFixed(random.between(0, 6)),
    () => inside.toFixed(random.between(0, 6)),
    () => String(inside),
    () => String(random.pick([least, most])),
    () => `+${inside.toFixed(2)}`,
    () => random.pick([least - 0.0001, most + 0.0001, -inside, inside * 10, 0, 90, 180]).toFixed(4),
    () => inside.toFixed(3) + '0'.repeat(random.between(1, 900)),
    () => `${'0'.repeat(random.between(1, 50))}${inside.toFixed(2)}`,
    () =>
      random
        .pick([
          'NaN',
          'Infinity',
          '2e1',
          '0x17',
          '23.',
          '.5',
          '23,8',
          '23.8.1',
          '23%2E8',
          '-',
          '+',
          '%2B23.8',
          '23%20',
          '1e400',
          '२३',
          '23.8°',
        ])
        .replaceAll(/[^\x21-\x7e]/gu, text => encoded(random, text)),
    () => word(random),
  ])()
}

const search = (random: Random): string =>
  random.pick([
    () => encoded(random, nameOf(random)),
    () => encoded(random, nameOf(random)),
    () => encoded(random, random.pick([...bengali, ...latin])),
    () => encoded(random, random.sample(fc.string({ unit: 'grapheme', maxLength: 60 }))),
    () => encoded(random, random.pick(bengali).repeat(random.between(1, 40))),
    () => word(random),
  ])()

/** A part of a real name, as a person might type it. */
const nameOf = (random: Random): string => {
  const place = random.pick(places)
  const name = random.chance(0.5) ? place.name_en : place.name_bn
  return random.pick([
    name,
    name.toUpperCase(),
    name.slice(0, 3),
    ` ${name} `,
    name.normalize('NFD'),
    name.normalize('NFC'),
    name.normalize('NFD').replaceAll('\u09c7\u09be', '\u09be\u09c7'),
  ])
}

/** The key in the URL, where some clients put it by mistake, in the spellings that a URL allows. */
const misplacedKey = (random: Random): string =>
  random.pick([
    keyPlaceholder,
    `svc%5Flive%5F${secretPlaceholder}`,
    `svc%5flive_${secretPlaceholder}`,
    `%73vc_live_${secretPlaceholder}`,
    `s%76c_l%69ve_${secretPlaceholder}`,
  ])

const parameter = (random: Random): string => {
  const [name, value] = random.pick([
    () => ['lang', random.pick(['bn', 'en', 'EN', 'fr', '', '%65n', 'en%00', word(random)])],
    () => ['days', number(random, 1, 7)],
    () => ['limit', number(random, 1, 100)],
    () => ['offset', random.chance(0.5) ? number(random, 0, 600) : String(random.between(0, 5_000))],
    () => ['type', type(random)],
    () => ['q', search(random)],
    () => ['division_id', id(random, 'division')],
    () => ['district_id', id(random, 'district')],
    () => ['upazila_id', id(random, 'upazila')],
    () => ['upazila_id', random.pick(['x', '%20', 'x', "'"]).repeat(random.between(1_000, 3_900))],
    () => [random.pick(['x-api-key', 'key', marker]), misplacedKey(random)],
    () => [word(random), word(random)],
    () => [marker, marker.repeat(random.between(1, 900))],
  ])() as [string, string]
  return random.pick([
    `${name}=${value}`,
    `${name}=${value}`,
    `${name}=${value}`,
    name,
    `${name}%3D${value}`,
    `=${value}`,
  ])
}

const queryOf = (random: Random, needed: readonly string[]): string => {
  const more = Array.from({ length: random.chance(0.5) ? 0 : random.between(1, 4) }, () => parameter(random))
  const all = random.some([...needed.filter(text => text !== ''), ...more], 9)
  if (random.chance(0.05) && all[0] !== undefined) all.push(all[0])
  return all.length === 0 ? random.pick(['', '', '', '?', '?&', '?&&=']) : `?${all.join('&')}`
}

const endpoints: Readonly<Record<string, (random: Random) => string>> = {
  weather: random => {
    const level = type(random)
    return `/api/v1/weather/${level}/${id(random, level)}${queryOf(random, [random.pick(['', 'lang=bn', 'lang=en'])])}`
  },
  coords: random =>
    `/api/v1/weather/coords/${degrees(random, 20, 27)}/${degrees(random, 87.5, 93)}${queryOf(random, [random.pick(['', 'lang=bn', 'lang=en'])])}`,
  list: random => {
    const needed = [`type=${type(random)}`]
    if (random.chance(0.5)) needed.push(`limit=${number(random, 1, 100)}`)
    if (random.chance(0.4)) needed.push(`offset=${number(random, 0, 600)}`)
    if (random.chance(0.5)) needed.push(`q=${search(random)}`)
    return `/api/v1/locations${queryOf(random, needed)}`
  },
  // Links to other pages repeat the query, in an encoding that takes up to three times as much.
  'list with links': random => {
    const ignored = random.pick(['x', '%20', "'", '%F0%9F%91%8D'])
    const long = ignored.repeat(Math.floor(random.between(100, 10_000) / ignored.length))
    const name = random.pick(['q', 'division_id', 'district_id', 'upazila_id', marker])
    return `/api/v1/locations?type=${random.pick(placeTypes)}&limit=${random.between(1, 5)}&offset=${random.between(0, 4)}&${name}=${long}`
  },
  detail: random => {
    const level = type(random)
    return `/api/v1/locations/${level}/${id(random, level)}${queryOf(random, [])}`
  },
  forecast: random => {
    const level = type(random)
    return `/api/v1/forecast/${level}/${id(random, level)}${queryOf(random, random.chance(0.7) ? [`days=${number(random, 1, 7)}`] : [])}`
  },
  'other paths': random =>
    `/${Array.from({ length: random.between(0, 6) }, () => random.pick(['api', 'v1', 'weather', 'locations', 'forecast', 'coords', 'district', '3026', '%61pi', 'v%31', '', word(random)])).join('/')}${queryOf(random, [])}`,
}

export const endpointNames = [...Object.keys(endpoints), 'list', 'coords']

/** A target of at most 12 KB. */
export const targetFor = (random: Random, endpoint: string): string =>
  (endpoints[endpoint]?.(random) ?? '/').replaceAll('#', '%23').slice(0, 12_000)
