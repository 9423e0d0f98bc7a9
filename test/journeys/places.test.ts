// What a consumer gets for places: lists, search, one place; field by field as the contract has them.

import t from 'tap'
import { startProvider } from '../support/provider-process.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'

const provider = await startProvider(t)
let gateway: TestGateway
t.before(async () => {
  gateway = await startGateway(t, { providerUrl: provider.url })
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

t.test('results are ordered by population, 50 at most unless asked otherwise', async t => {
  const { body } = await gateway.get('/locations?type=union')
  t.equal(body.results.length, 50)
  t.equal(body.total, 4476)
  const populations: number[] = body.results.map(({ population }: { population: number }) => population)
  t.strictSame(
    populations,
    populations.toSorted((a, b) => b - a),
  )
})

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
    path = /<\/api\/v1([^>]+)>; rel="next"/.exec(headers.link ?? '')?.[1]
  }
  t.equal(seen.size, 544)
  t.equal(pages, 6)
})

t.test('links repeat what was understood and nothing else, so that heads stay short', async t => {
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
  const next = /<\/api\/v1([^>]+)>; rel="next"/.exec(headers.link ?? '')?.[1] ?? ''
  t.equal((await gateway.get(next)).body.results.length, 10)
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
  t.equal(await total('type=union&district_id=3026'), 4476, 'district_id is ignored here')
  t.equal(await total('type=district&division_id=99'), 0)
  t.equal(await total('type=district&division_id=3026'), 0)
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
  t.strictSame(await find('xyzzy'), [])
  t.equal((await find('')).length, 50)
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
      for (const asked of Object.keys(ids)) {
        const { status, body } = await gateway.get(`/${endpoint}/${asked}/${id}`)
        t.equal(status, asked === type ? 200 : 404, `/${endpoint}/${asked}/${id}`)
        if (status === 404) t.equal(body.error, `the ${asked} "${id}" was not found or is not published`)
      }
})

t.test('names and ids are not what makes the weather: the detail of a union names its upazila', async t => {
  const { body } = await gateway.get('/locations?type=union&upazila_id=302672&limit=1')
  const detail = (await gateway.get(`/locations/union/${body.results[0].id}`)).body.location
  t.equal(detail.parent_en, (await gateway.get('/locations/upazila/302672')).body.location.name_en)
})
