// Without it an odd number, name or list could pass as a parameter, or a valid one could be refused.

import t, { type Test } from 'tap'
import {
  degrees,
  identifier,
  language,
  listOfPlaces,
  locationsParameters,
  locationType,
  parametersOf,
  queryOf,
  searchText,
  wholeNumber,
} from '../../src/api/parameters.ts'

const lang = { lang: language }
const q = { q: identifier }
const locationTypeOf = locationType.read
const languageOf = language.read
const searchTextOf = searchText.read

const refused = (t: Test, act: () => unknown, message: string | RegExp) =>
  t.throws(act, { status: 400, message })

t.test('a query is read by name; others are ignored, and one given twice is refused', async t => {
  t.strictSame(queryOf('lang=en&foo=1&foo=2', lang), { lang: 'en' })
  t.strictSame(queryOf('', lang), {})
  t.strictSame(queryOf('q=%E0%A6%A2+%26', q), { q: 'ঢ &' })
  t.strictSame(queryOf('q', q), { q: '' })
  t.strictSame(queryOf('q=a=b', q), { q: 'a=b' })
  refused(t, () => queryOf('lang=en&lang=en', lang), 'lang must be given only once')
  refused(t, () => queryOf('q=%E0%A6', q), 'q must be percent-encoded UTF-8, got "%E0%A6"')
  t.strictSame(queryOf('other=%&%=1&q=a', q), { q: 'a' }, 'an unknown one is ignored, however it is written')
  t.strictSame(queryOf('__proto__=1&constructor=2', q), {}, 'and so is what every object has')
})

t.test('a list is written once and without brackets, which is said with an example', async t => {
  const wanted = { ...lang, places: listOfPlaces }
  const example = 'with commas between its values, as in places=district/3026,coords/23.81/90.41'
  refused(t, () => queryOf('places=a&places=b', wanted), `places must be given only once, ${example}`)
  for (const name of ['places[]', 'places[0]', 'places%5B%5D']) {
    const message = `places must be sent without brackets, ${example}, got "${decodeURIComponent(name)}"`
    refused(t, () => queryOf(`lang=en&${name}=a`, wanted), message)
  }
  for (const name of ['lang[]', 'other[]', '[places]', 'toString[]'])
    t.strictSame(queryOf(`${name}=a&lang=en`, wanted), { lang: 'en' }, name)
})

t.test('a list has at most 100 distinct places and 5,000 characters', async t => {
  const { read } = listOfPlaces
  const many = (count: number) => Array.from({ length: count }, (_, i) => `district/${i}`)
  t.strictSame(read('a/1, b/2,a/1 ,c/3'), ['a/1', 'b/2', 'c/3'])
  t.equal(read([...many(100), 'district/0'].join()).length, 100)
  t.strictSame(read('x'.repeat(5_000)), ['x'.repeat(5_000)])
  const places = 'places must name at most 100 places or points, got 101'
  refused(t, () => read([...many(101), 'district/0'].join()), places)
  const long = 'places must have at most 5000 characters, got 5001'
  refused(t, () => read('x,'.repeat(2_500).concat('x')), long)
  for (const given of [undefined, ''])
    refused(t, () => read(given), /^places must name 1 to 100 places or points, such as /)
})

t.test(
  'a page of places is one of at most 100, which may begin anywhere; a parent may be left blank',
  async t => {
    const { limit, offset, division_id: parent } = locationsParameters.query
    t.strictSame([limit.read(undefined), limit.read('1'), limit.read('100')], [50, 1, 100])
    t.strictSame([offset.read(undefined), offset.read('1000000000')], [0, 1_000_000_000])
    for (const given of ['0', '101'])
      refused(t, () => limit.read(given), `limit must be an integer from 1 to 100, got "${given}"`)
    const bounds = 'offset must be an integer from 0 to 1000000000, got "1000000001"'
    refused(t, () => offset.read('1000000001'), bounds)
    t.strictSame([parent.read(undefined), parent.read(''), parent.read('30')], [undefined, undefined, '30'])
  },
)

t.test('a name may be percent-encoded, and thousands that can not be decoded are not tried', async t => {
  t.strictSame(queryOf('%6C%61n%67=en', lang), { lang: 'en' })
  for (const other of ['l%C3%A4ng', 'lang%', 'lang%00', 'la+ng', '%256Cang', '%ACang'])
    t.strictSame(queryOf(`${other}=en`, lang), {}, other)
  // Each that fails makes an error, which costs as much as many requests.
  const tried = t.capture(globalThis, 'decodeURIComponent', decodeURIComponent)
  t.strictSame(queryOf(`${'%&'.repeat(8_000)}lang=en`, lang), { lang: 'en' })
  t.strictSame(
    tried().map(({ args }) => args),
    [['en']],
  )
})

t.test('whole numbers are decimal digits within their range', async t => {
  const { read } = wholeNumber('days', { min: 1, max: 7, fallback: 7 })
  t.equal(read(undefined), 7)
  t.equal(read('1'), 1)
  t.equal(read('07'), 7)
  for (const given of ['0', '8', '', '-1', '+3', '3.0', '1e0', '0x3', ' 3', '3 ', '৩', 'NaN', '9'.repeat(20)])
    refused(t, () => read(given), `days must be an integer from 1 to 7, got ${JSON.stringify(given)}`)
  const offset = wholeNumber('offset', { min: 0, max: 9, fallback: 0 })
  refused(t, () => offset.read('-1'), 'offset must be an integer from 0 to 9')
})

t.test('additions are known names with commas between; none and an empty text add nothing', async t => {
  const { coords, weather } = parametersOf({ south: 20, north: 27, west: 87, east: 93 }, 'Bangladesh')
  const { read } = coords.query.include
  for (const given of [undefined, '']) t.equal(read(given), undefined)
  for (const given of ['text', 'place,text', 'text,place', 'text,text'])
    t.strictSame(read(given), given.split(','))
  t.strictSame(read(' text, place'), ['text', 'place'])
  for (const given of ['Text', 'text,', ',', 'place text', 'place;text', 'toString'])
    refused(
      t,
      () => read(given),
      `include must be a comma-separated list of place, text, got ${JSON.stringify(given)}`,
    )
  refused(t, () => weather.query.include.read('place'), 'include must be text, got "place"')
})

t.test('degrees are plain decimal numbers inside the box, edges included', async t => {
  const { read: lat } = degrees('lat', { min: 20, max: 27, area: 'Bangladesh' })
  for (const given of ['23.8', '+23.8', '20', '20.0', '27.000', '020.5']) t.equal(lat(given), Number(given))
  for (const given of ['19.999999', '27.000001', '-23.8', '95', '9'.repeat(60), '-1000'])
    refused(t, () => lat(given), `lat must be within the bounds of Bangladesh, from 20 to 27, got "${given}"`)
  const rule = 'decimal degrees from 20 to 27, such as 23.81'
  const odd = ['', ' 23', '23.', '.5', '2e1', '0x17', 'NaN', 'Infinity', '23,8', '২৩', '23.8.1', '--23']
  for (const given of odd) refused(t, () => lat(given), `lat must be ${rule}, got ${JSON.stringify(given)}`)
  const { read: equator } = degrees('lng', { min: -1, max: 1, area: 'Null Island' })
  t.ok(Object.is(equator('-0'), 0), 'minus zero is zero')
  const { path } = parametersOf({ south: 20, north: 27, west: 87, east: 93 }, 'Bangladesh').coords
  t.strictSame([path.lat.read('20'), path.lat.read('27'), path.lng.read('87')], [20, 27, 87])
  refused(t, () => path.lng.read('94'), /^lng must be within the bounds of Bangladesh, from 87 to 93/)
  refused(t, () => path.lat.read('19'), /^lat must be within the bounds of Bangladesh, from 20 to 27/)
})

t.test('types and languages are one of their words', async t => {
  t.equal(locationTypeOf('union'), 'union')
  for (const given of ['Union', 'coords', 'all', ''])
    refused(
      t,
      () => locationTypeOf(given),
      `type must be one of division, district, upazila, union, got "${given}"`,
    )
  refused(
    t,
    () => locationTypeOf(undefined),
    'type is required and must be one of division, district, upazila, union',
  )
  t.equal(languageOf(undefined), 'bn')
  t.equal(languageOf('en'), 'en')
  for (const given of ['EN', '', 'fr'])
    refused(t, () => languageOf(given), `lang must be bn or en, got "${given}"`)
})

t.test('a search text is trimmed and at most 100 characters, counted as people count', async t => {
  t.equal(searchTextOf(undefined), '')
  t.equal(searchTextOf('  ঢাকা '), 'ঢাকা')
  t.equal(searchTextOf('😀'.repeat(100)).length, 200)
  t.equal(searchTextOf(` ${'x'.repeat(100)} `).length, 100)
  const tooLong = /^q must have at most 100 characters, got 101 in "x{60}…"$/
  refused(t, () => searchTextOf('x'.repeat(101)), tooLong)
})
