// Without it a place could have the names, the nearest places or the error of another one, alone or in a list.

import t from 'tap'
import type { ApiParts } from '../../src/api/api.ts'
import { findLocation, pointPart } from '../../src/api/places.ts'
import { detailOf, listOf, namedSummaryOf, nearbyOf, summaryOf } from '../../src/api/response-bodies.ts'
import { createPlaces } from '../../src/api/weather-endpoints.ts'
import type { Catalogue } from '../../src/catalogue/catalogue.ts'
import { openCatalogue } from '../../src/catalogue/live-catalogue.ts'
import type { Location } from '../../src/catalogue/location-schema.ts'
import { createCalendar, utcDayMs } from '../../src/common/calendar.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'
import { startApp } from './api-app.ts'

const quota: ApiParts['quota'] = {
  ...{ now: () => 0, resetAfter: () => 1, refund: () => 0, isExact: () => true },
  consume: (_client, _at, _units, callback) => callback(undefined, { allowed: true, remaining: 1 }),
}
const open = async (t: { teardown(end: () => unknown): void }) => {
  const { current, close } = await openCatalogue({ path: usualCatalogue, pollMs: utcDayMs })
  t.teardown(close)
  return current
}

t.test('each wrong item of a list has its own error, in its place', async t => {
  const { inject } = await startApp(t, { quota })
  const items: [string, string?, string?][] = [
    ['coords/23.8', 'longitude_missing', 'lng'],
    ['district', 'place_invalid', 'places'],
    ['district/', 'place_invalid', 'places'],
    ['district/3026/1', 'place_invalid', 'places'],
    ['coords/23.8/90.4/1', 'place_invalid', 'places'],
    ['coords/23.x/90.4', 'degrees_invalid', 'lat'],
    ['coords/23.8/900', 'point_out_of_bounds', 'lng'],
    ['country/50', 'type_invalid', 'type'],
    ['district/9999', 'place_not_found', 'id'],
    ['district/dhaka'],
    ['coords/23.8/90.4'],
  ]
  for (const path of ['weather', 'forecast']) {
    const { body, status } = await inject(`/api/v1/${path}?places=${items.map(([item]) => item).join()}`)
    t.equal(status, 200)
    t.strictSame(
      body.map(({ code, parameter }: Record<string, string>) => [code, parameter]),
      items.map(([, code, parameter]) => [code, parameter]),
    )
    t.hasStrict(body.slice(-2), [{ location: { id: '3026' } }, { location: { name: '23.800, 90.400' } }])
  }
  const alone = await inject('/api/v1/weather/coords/23.8')
  t.hasStrict(alone, { status: 400, body: { code: 'longitude_missing', parameter: 'lng' } })
})

t.test('a list is in the language or of the length that it asks for', async t => {
  const { inject } = await startApp(t, { quota })
  const list = async (path: string, query = '') => {
    const places = 'district/3026,coords/23.8/90.4'
    return inject(`/api/v1/${path}?places=${places}${query}`)
  }
  for (const [query, lang, name] of [
    ['', 'bn', 'ঢাকা'],
    ['&lang=bn', 'bn', 'ঢাকা'],
    ['&lang=en', 'en', 'Dhaka'],
  ] as const)
    t.hasStrict(await list('weather', query), {
      headers: { 'content-language': lang },
      body: [{ location: { name, parent: name } }, { location: { name: '23.800, 90.400', name_bn: null } }],
    })
  const forecast = await list('forecast', '&days=2')
  t.equal(forecast.headers['content-language'], undefined)
  for (const { daily, current } of forecast.body) t.strictSame([daily.time.length, current], [2, undefined])
  t.equal(forecast.body[0].location.name, undefined)
  t.equal((await list('forecast')).body[0].daily.time.length, 7)
})

t.test('units are those of the contract, in every block', async t => {
  const { inject } = await startApp(t, { quota })
  const { body } = await inject('/api/v1/weather/coords/23.8/90.4?include=text')
  t.hasStrict(body.current_units, { time: 'iso8601', interval: 'seconds', temperature_2m: '°C', icon: '' })
  for (const name of ['hourly', 'daily']) {
    t.equal(body[`${name}_units`].time, 'iso8601')
    t.strictSame(Object.keys(body[`${name}_units`]), Object.keys(body[name]))
  }
  t.strictSame(body.location, {
    ...{ type: 'coords', latitude: 23.8, longitude: 90.4 },
    ...{ name_en: '23.800, 90.400', name_bn: null, name: '23.800, 90.400' },
  })
})

t.test(
  'a point has the nearest places in its body where it asks for them, of the catalogue in force',
  async t => {
    const catalogue = { current: await open(t) }
    const { inject } = await startApp(t, { quota, catalogue })
    const placesAt = async (query: string) => {
      const { body, headers } = await inject(`/api/v1/weather/coords/23.9012/90.2345${query}`)
      return { place: body.place, tag: headers.etag, keys: Object.keys(body).slice(0, 3) }
    }
    const plain = await placesAt('')
    t.equal(plain.place, undefined)
    t.equal((await placesAt('?include=text')).place, undefined)
    const near = await placesAt('?include=place,text')
    t.strictSame(near.keys, ['location', 'place', 'current'])
    t.strictSame(Object.keys(near.place), ['union', 'upazila', 'district'])
    t.hasStrict(near.place.district, { type: 'district', id: '3026', name_en: 'Dhaka', name_bn: 'ঢাকা' })
    const other: Catalogue = Object.create(catalogue.current, { checksum: { value: 'other' } })
    const identities = [undefined, catalogue.current, other].map(
      given => pointPart(23.9, 90.2, given).identity,
    )
    t.equal(new Set(identities).size, 3, 'bodies with other places are others')
  },
)

const usual = { type: 'union', id: '1', name_en: 'One', name_bn: 'এক', latitude: 23, longitude: 90 }
const at = (more: object): Location => ({ ...usual, published: true, ...more }) as unknown as Location

t.test('the distance is in tenths of a kilometre, and a place that is not published is left out', t => {
  const [union, upazila, district] = [
    at({ latitude: 23.1 }),
    at({ type: 'upazila', id: '2', published: false }),
    at({ type: 'district', id: '3', latitude: 23.005 }),
  ]
  const catalogue = {
    nearest: (type: string) => (type === 'union' ? union : undefined),
    parentOf: (location: Location) => (location === union ? upazila : district),
  } as unknown as Catalogue
  const near = nearbyOf({ latitude: 23, longitude: 90 }, catalogue)
  const names = { name_en: 'One', name_bn: 'এক' }
  t.strictSame(near, {
    union: { type: 'union', id: '1', ...names, distance_km: 11.1 },
    upazila: undefined,
    district: { type: 'district', id: '3', ...names, distance_km: 0.6 },
  })
  const none = { ...catalogue, nearest: () => undefined } as unknown as Catalogue
  t.strictSame(nearbyOf({ latitude: 23, longitude: 90 }, none), {
    ...{ union: undefined, upazila: undefined, district: undefined },
  })
  t.end()
})

t.test('a place has its names and those of its parent, in the language or in the other one', t => {
  const parent = at({ type: 'upazila', name_en: 'Parent', name_bn: '' })
  const location = at({ population: 5, area_sq_km: 2, website: null, bbs_code: 9, slug_en: 'one' })
  const parents = { parentOf: (given: Location) => (given === location ? parent : undefined) }
  const summary = {
    ...{ type: 'union', id: '1', name_en: 'One', name_bn: 'এক', slug_en: 'one', latitude: 23, longitude: 90 },
    ...{ parent_en: 'Parent', parent_bn: '' },
  }
  t.strictSame(summaryOf(location, parents), summary)
  t.strictSame(namedSummaryOf(location, parents, 'bn'), { ...summary, name: 'এক', parent: 'Parent' })
  t.strictSame(namedSummaryOf(location, parents, 'en'), { ...summary, name: 'One', parent: 'Parent' })
  const item = { ...summary, population: 5, area_sq_km: 2 }
  t.strictSame(detailOf(location, parents), { ...item, website: null, bbs_code: 9 })
  const alone = namedSummaryOf(parent, parents, 'bn')
  t.hasStrict(alone, { name: 'Parent', parent_en: null, parent_bn: null })
  t.notOk('parent' in alone)
  const page = {
    results: [location],
    total: 9,
    matchedAliases: new Map([[location, 'Ein']]),
    approximate: true,
  }
  t.strictSame(listOf(page, 'union', parents), {
    ...{ results: [{ ...item, matched_alias: 'Ein' }], total: 9, type: 'union', approximate: true },
  })
  const exact = { ...page, matchedAliases: new Map(), approximate: false }
  t.strictSame(listOf(exact, 'union', parents), { results: [item], total: 9, type: 'union' })
  t.end()
})

t.test(
  'a slug of several places is refused with three of their ids, a former code with the present one',
  t => {
    const refusal = (more: Partial<Catalogue>, id: string, type = 'union') => {
      const none = { find: () => undefined, withSlug: () => [], successorOf: () => undefined }
      try {
        return findLocation({ ...none, ...more } as unknown as Catalogue, type, id)
      } catch (error) {
        return { ...(error as Error), message: (error as Error).message }
      }
    }
    const same = ['1', '2', '3', '4'].map(id => at({ id, slug_en: 'x' }))
    t.hasStrict(refusal({ withSlug: () => same }, 'X'), {
      ...{ status: 404, code: 'place_ambiguous' },
      message:
        '"x" is the slug of 4 places of the type union, such as 1, 2, 3; request one by its id, which /api/v1/locations?type=union&q=x lists',
    })
    const [one] = same
    t.equal(refusal({ withSlug: () => same.slice(0, 1) }, 'x'), one)
    t.hasStrict(refusal({ withSlug: () => same }, '7'), { code: 'place_not_found' }, 'a number is no slug')
    t.hasStrict(refusal({ withSlug: () => same.slice(0, 2) }, '7a'), { code: 'place_ambiguous' })
    const successorOf = () => ({ location: one, since: '2012-04-25' }) as never
    t.match(refusal({ successorOf }, '7'), { code: 'place_code_changed', message: / 1 since 2012-04-25$/ })
    t.hasStrict(refusal({}, '7', 'planet'), { status: 400, code: 'type_invalid' })
    t.end()
  },
)

t.test('a place is made once, for its id and its slug, until another catalogue is in force', async t => {
  const current = await open(t)
  const catalogue = { current }
  const grid = createGrid(0.1)
  const find = createPlaces(catalogue, ({ latitude, longitude }) => grid.cellOf(latitude, longitude))
  const bySlug = find('district', 'dhaka')
  const part = bySlug.part('bn')
  t.equal(find('district', '3026'), bySlug)
  t.equal(find('district', 'dhaka'), bySlug)
  t.equal(bySlug.part('bn'), part)
  t.not(bySlug.part('en').tag, part.tag)
  t.throws(() => find('upazila', '3026'), { code: 'place_not_found' }, 'under its own type')
  const [first, second, third] = [part.gzipStart(), part.gzipStart(), part.gzipStart()]
  t.equal(first.bytes.length, 15 + part.bytes.length, 'stored at its first request')
  t.ok(second.bytes.length < first.bytes.length)
  t.equal(third, second, 'compressed once')
  catalogue.current = Object.create(current)
  const again = find('district', '3026')
  t.not(again, bySlug)
  t.not(again.part('bn').identity, part.identity)
  t.equal(again.part('bn').tag, part.tag, 'it is called the same')
  t.equal(again.cell.id, bySlug.cell.id)
})

t.test('a list that is requested again after a swap has the places of the new catalogue', async t => {
  const current = await open(t)
  const catalogue = { current }
  const { inject } = await startApp(t, { quota, catalogue, calendar: createCalendar('Asia/Dhaka') })
  const names = async () => {
    const { body } = await inject('/api/v1/weather?places=district/3026&lang=en')
    return [body[0].location?.name, body[0].code]
  }
  t.strictSame(await names(), ['Dhaka', undefined])
  catalogue.current = Object.create(current, {
    find: { value: () => undefined },
    withSlug: { value: () => [] },
  })
  t.strictSame(await names(), [undefined, 'place_not_found'])
})
