// The endpoints of places: lists, search, one place; field by field as the contract has them.

import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { setPublished } from '../../src/catalogue/publication.ts'
import { productCounts } from '../support/product-places.ts'
import { startProvider } from '../support/provider-process.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'
import { usualCatalogue, wholeCatalogue } from '../support/usual-catalogue.ts'

const provider = await startProvider(t)
let gateway: TestGateway
t.before(async () => {
  gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_CATALOGUE__PATH: wholeCatalogue },
  })
})

const summaryTypes = {
  type: String,
  id: String,
  name_en: String,
  name_bn: String,
  slug_en: String,
  latitude: Number,
  longitude: Number,
}

t.test('a list item has the summary, the population and the area, and nothing else', async t => {
  const { status, body, headers } = await gateway.get('/locations?type=district&limit=2')
  t.equal(status, 200)
  t.equal(headers['content-type'], 'application/json; charset=utf-8')
  t.strictSame(Object.keys(body), ['results', 'total', 'type'])
  t.equal(body.total, 64)
  t.equal(body.type, 'district')
  t.equal(body.results.length, 2)
  t.match(body.results[0], { ...summaryTypes, parent_en: 'Dhaka', parent_bn: 'ঢাকা' })
  t.strictSame(Object.keys(body.results[0]), [
    ...Object.keys(summaryTypes),
    'parent_en',
    'parent_bn',
    'population',
    'area_sq_km',
  ])
  t.ok(Number.isInteger(body.results[0].population))
  t.type(body.results[0].area_sq_km, 'number')
})

t.test('divisions have no parent: null, and not left out', async t => {
  const { body } = await gateway.get('/locations?type=division')
  t.equal(body.total, 8)
  for (const division of body.results) t.match(division, { parent_en: null, parent_bn: null })
})

t.test('results are ordered by population, 50 at most by default', async t => {
  const { body } = await gateway.get('/locations?type=union')
  t.equal(body.results.length, 50)
  t.equal(body.total, productCounts.union)
  const populations: number[] = body.results.map(({ population }: { population: number }) => population)
  t.strictSame(
    populations,
    populations.toSorted((a, b) => b - a),
  )
})

/** The link is relative to the URL of the request. */
const nextOf = ({ link = '' }: Record<string, string>): string | undefined => {
  const query = /<(\?[^>]+)>; rel="next"/.exec(link)?.[1]
  return query && `/locations${query}`
}

t.test('pages never overlap, follow each other by link, and cover everything', async t => {
  const seen = new Set<string>()
  let path: string | undefined = '/locations?type=upazila&limit=100'
  let pages = 0
  while (path !== undefined && pages < 20) {
    const { body, headers } = await gateway.get(path)
    for (const { id } of body.results) {
      t.notOk(seen.has(id), `${id} once`)
      seen.add(id)
    }
    pages += 1
    path = nextOf(headers)
  }
  t.equal(seen.size, productCounts.upazila)
  t.equal(pages, Math.ceil(productCounts.upazila / 100))
})

t.test('links repeat only the parameters that were used, so that heads stay short', async t => {
  const long = 'x'.repeat(3_000)
  for (const path of [
    `/locations?type=district&limit=2&upazila_id=${long}&district_id=${long}&foo=${long}`,
    `/locations?type=division&limit=2&division_id=${long}`,
    `/locations?type=district&limit=00000000000000000002&q=${encodeURIComponent(' a ')}`,
    `/locations?type=union&limit=1&q=${'%20'.repeat(1_000)}`,
  ]) {
    const { status, headers } = await gateway.get(path)
    t.equal(status, 200)
    t.match(headers.link, /rel="next"/)
    t.notMatch(headers.link, /xxx|upazila_id|district_id|division_id|foo/)
    t.ok((headers.link ?? '').length < 400, `${headers.link?.length} characters`)
  }
  const { headers } = await gateway.get(`/locations?type=upazila&district_id=3026&limit=2&q=a`)
  t.match(headers.link, 'type=upazila&district_id=3026&q=a&limit=2&offset=2')
})

t.test('links keep the other parameters and lead back as well', async t => {
  const { headers } = await gateway.get(
    '/locations?type=upazila&q=%E0%A6%B8%E0%A6%A6%E0%A6%B0&limit=10&offset=5',
  )
  t.match(headers.link, /rel="next", <[^>]*type=upazila[^>]*offset=0[^>]*>; rel="prev"/)
  t.equal((await gateway.get(nextOf(headers) ?? '')).body.results.length, 10)
  t.equal((await gateway.get('/locations?type=division')).headers.link, undefined)
  t.equal((await gateway.get('/locations?type=division&offset=999')).body.results.length, 0)
})

t.test('filters apply to the level below only, and an id that names nothing gives an empty list', async t => {
  const total = async (query: string) => (await gateway.get(`/locations?${query}`)).body.total
  t.equal(await total('type=district&division_id=30'), 13)
  t.equal(
    await total('type=upazila&district_id=3026'),
    await total('type=upazila&district_id=3026&division_id=10'),
  )
  t.ok((await total('type=upazila&district_id=3026')) > 10)
  t.ok((await total('type=union&upazila_id=302672')) > 3)
  t.equal(await total('type=division&division_id=30'), 8, 'division_id is ignored here')
  t.equal(await total('type=union&district_id=3026'), productCounts.union, 'district_id is ignored here')
  t.equal(await total('type=district&division_id=99'), 0)
  t.equal(await total('type=district&division_id=3026'), 0)
  for (const [type, name] of [
    ['district', 'division_id'],
    ['upazila', 'district_id'],
    ['union', 'upazila_id'],
  ] as const)
    t.equal(await total(`type=${type}&${name}=`), productCounts[type], `an empty ${name} is no filter`)
  t.notMatch((await gateway.get('/locations?type=union&upazila_id=')).headers.link, 'upazila_id')
})

t.test('search finds both scripts, in any case and either encoding', async t => {
  const find = async (q: string) =>
    (await gateway.get(`/locations?type=district&q=${encodeURIComponent(q)}`)).body.results.map(
      ({ name_en }: { name_en: string }) => name_en,
    )
  t.strictSame(await find('DHAKA'), ['Dhaka'])
  t.strictSame(await find(' ঢাকা '), ['Dhaka'])
  const composed = 'কুড়িগ্রাম'.normalize('NFC')
  t.strictSame(await find(composed), ['Kurigram'])
  t.strictSame(await find(composed.replaceAll('\u09a1\u09bc', '\u09dc')), ['Kurigram'])
  t.strictSame(await find(composed.replaceAll('\u09a1\u09bc\u09bf', '\u09a1\u09bf\u09bc')), ['Kurigram'])
  t.strictSame(await find('xyzzy'), [])
  t.equal((await find('')).length, 50)
})

const listed = async (q: string, type = 'district') => {
  const { body } = await gateway.get(`/locations?type=${type}&q=${encodeURIComponent(q)}`)
  type Item = { name_en: string; matched_alias?: string }
  return {
    found: body.results.map(({ name_en, matched_alias }: Item) =>
      matched_alias === undefined ? name_en : `${name_en} (${matched_alias})`,
    ),
    keys: Object.keys(body).join(),
    approximate: body.approximate,
  }
}

t.test('a place found by another name alone carries that name, and nothing else is added', async t => {
  const keys = 'results,total,type'
  t.strictSame(await listed('Comilla'), { found: ['Cumilla (Comilla)'], keys, approximate: undefined })
  t.strictSame(await listed('dacca'), { found: ['Dhaka (Dacca)'], keys, approximate: undefined })
  t.strictSame((await listed('chittagong')).found, ['Chattogram (Chittagong)'])
  t.strictSame((await listed('Barisal')).found, ['Barishal (Barisal)'])
  t.strictSame((await listed('Jessore')).found, ['Jashore (Jessore)'])
  t.strictSame((await listed('Bogra')).found, ['Bogura (Bogra)'])
  t.strictSame((await listed('dhaka')).found, ['Dhaka'])
})

t.test('blanks and punctuation inside a name do not matter, as phones type them or not', async t => {
  for (const q of ['coxs bazar', 'Cox\u2019s Bazar', 'cox\u02bcs-bazar.', 'কক্স বাজার', 'কক্সবাজার'])
    t.strictSame((await listed(q)).found, ["Cox's Bazar"], q)
})

t.test(
  'a search that nothing matches is tried more loosely, and says so where that finds places',
  async t => {
    t.strictSame(await listed('Narayangonz'), {
      found: ['Narayanganj'],
      keys: 'results,total,type,approximate',
      approximate: true,
    })
    t.strictSame(await listed('xyzzy'), { found: [], keys: 'results,total,type', approximate: undefined })
  },
)

t.test('q may have 100 characters and no more, after blanks at either end are cut', async t => {
  const status = async (q: string) =>
    (await gateway.get(`/locations?type=district&q=${encodeURIComponent(q)}`)).status
  t.equal(await status(`  ${'ক'.repeat(100)}  `), 200)
  t.equal(await status('ক'.repeat(101)), 400)
})

t.test('a former code is 404 with the current code, on every endpoint, under its own type', async t => {
  const error = 'the union "10040939" was not found: its code is 10049039 since 2012-04-25; ask for that'
  for (const endpoint of ['locations', 'weather', 'forecast']) {
    const { status, body } = await gateway.get(`/${endpoint}/union/10040939`)
    t.strictSame([status, body], [404, { error, code: 'place_code_changed' }], endpoint)
    t.equal((await gateway.get(`/${endpoint}/union/10049039`)).status, 200)
    t.match(await gateway.get(`/${endpoint}/upazila/10040939`), {
      status: 404,
      body: { error: 'the upazila "10040939" was not found or is not published' },
    })
  }
})

t.test('a former code of a place that is not published says nothing of it', async t => {
  const path = join(t.testdir(), 'locations.json')
  copyFileSync(usualCatalogue, path)
  await setPublished(path, '10049039', false)
  const other = await startGateway(t, { providerUrl: provider.url, env: { ABOHAWA_CATALOGUE__PATH: path } })
  for (const endpoint of ['locations', 'weather', 'forecast'])
    t.match(await other.get(`/${endpoint}/union/10040939`), {
      status: 404,
      body: { error: 'the union "10040939" was not found or is not published' },
    })
})

t.test('one place has the summary, the figures, its site and its code', async t => {
  const { status, body } = await gateway.get('/locations/district/3026')
  t.equal(status, 200)
  t.match(body.location, {
    ...summaryTypes,
    type: 'district',
    id: '3026',
    name_en: 'Dhaka',
    name_bn: 'ঢাকা',
    parent_en: 'Dhaka',
    population: Number,
    area_sq_km: Number,
    bbs_code: 3026,
  })
  t.strictSame(Object.keys(body.location), [
    ...Object.keys(summaryTypes),
    'parent_en',
    'parent_bn',
    'population',
    'area_sq_km',
    'website',
    'bbs_code',
  ])
  t.match(body.location.website, /^https?:\/\//)
})

t.test('a place without a site says null', async t => {
  let offset = 0
  for (;;) {
    const { body } = await gateway.get(`/locations?type=upazila&limit=100&offset=${offset}`)
    for (const { id } of body.results) {
      const detail = (await gateway.get(`/locations/upazila/${id}`)).body.location
      if (detail.website !== null) continue
      t.ok('website' in detail)
      return
    }
    offset += 100
    t.ok(body.results.length > 0, 'some upazila has no site')
  }
})

t.test('a level that is not the place’s own is 404, on every endpoint, for all four levels', async t => {
  const ids = { division: '30', district: '3026', upazila: '302672', union: '' }
  ids.union = (await gateway.get('/locations?type=union&upazila_id=302672')).body.results[0].id
  for (const endpoint of ['locations', 'weather', 'forecast'])
    for (const [type, id] of Object.entries(ids))
      for (const level of Object.keys(ids)) {
        const { status, body } = await gateway.get(`/${endpoint}/${level}/${id}`)
        t.equal(status, level === type ? 200 : 404, `/${endpoint}/${level}/${id}`)
        if (status === 404) t.equal(body.error, `the ${level} "${id}" was not found or is not published`)
      }
})

t.test('names and ids are not what makes the weather: the detail of a union names its upazila', async t => {
  const { body } = await gateway.get('/locations?type=union&upazila_id=302672&limit=1')
  const detail = (await gateway.get(`/locations/union/${body.results[0].id}`)).body.location
  t.equal(detail.parent_en, (await gateway.get('/locations/upazila/302672')).body.location.name_en)
})
