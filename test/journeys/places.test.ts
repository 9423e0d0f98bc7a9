// Without it lists, searches, slugs and codes of places could differ from the contract.

import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { setPublished } from '../../tools/catalogue/publication.ts'
import { startProvider } from '../support/provider.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'
import { productCounts, usualCatalogue, wholeCatalogue } from '../support/usual-catalogue.ts'

const provider = await startProvider(t)
let gateway: TestGateway
t.before(async () => {
  gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_CATALOGUE__PATH: wholeCatalogue },
  })
})

const summaryTypes = {
  ...{ type: String, id: String, name_en: String, name_bn: String, slug_en: String },
  ...{ latitude: Number, longitude: Number },
}
const summaryKeys = [...Object.keys(summaryTypes), 'parent_en', 'parent_bn', 'population', 'area_sq_km']

t.test('a list item has the summary and its figures, and nothing else; most populous first', async t => {
  const { status, body, headers } = await gateway.get('/locations?type=district&limit=2')
  t.equal(status, 200)
  t.equal(headers['content-type'], 'application/json; charset=utf-8')
  t.strictSame(Object.keys(body), ['results', 'total', 'type'])
  t.hasStrict(body, { total: 64, type: 'district' })
  t.equal(body.results.length, 2)
  const [first] = body.results
  t.match(first, { ...summaryTypes, parent_en: 'Dhaka', parent_bn: 'ঢাকা', area_sq_km: Number })
  t.strictSame(Object.keys(first), summaryKeys)
  t.ok(Number.isInteger(first.population))
  const divisions = (await gateway.get('/locations?type=division')).body
  t.equal(divisions.total, 8)
  for (const division of divisions.results)
    t.match(division, { parent_en: null, parent_bn: null }, 'no parent: null, and not left out')
  const unions = (await gateway.get('/locations?type=union')).body
  t.match(unions, { total: productCounts().union, results: { length: 50 } }, '50 at most by default')
  const populations: number[] = unions.results.map(({ population }: { population: number }) => population)
  const ordered = populations.toSorted((a, b) => b - a)
  t.strictSame(populations, ordered)
})

t.test('links lead on and back with the parameters that were used, and with no others', async t => {
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
  const linkOf = async (query: string) => (await gateway.get(`/locations?type=${query}`)).headers.link
  t.match(await linkOf('upazila&district_id=3026&limit=2&q=a'), 'district_id=3026&q=a&limit=2&offset=2')
  const both = /rel="next", <[^>]*type=upazila[^>]*offset=0[^>]*>; rel="prev"/
  t.match(await linkOf('upazila&q=%E0%A6%B8%E0%A6%A6%E0%A6%B0&limit=10&offset=5'), both)
  t.equal(await linkOf('division'), undefined)
  t.equal((await gateway.get('/locations?type=division&offset=999')).body.results.length, 0)
})

t.test('filters apply to the level below only, and an id that names nothing gives an empty list', async t => {
  const total = async (query: string) => (await gateway.get(`/locations?${query}`)).body.total
  t.equal(await total('type=district&division_id=30'), 13)
  const upazilas = await total('type=upazila&district_id=3026')
  t.ok(upazilas > 10)
  t.equal(await total('type=upazila&district_id=3026&division_id=10'), upazilas)
  t.ok((await total('type=union&upazila_id=302672')) > 3)
  t.equal(await total('type=division&division_id=30'), 8, 'division_id is ignored here')
  t.equal(await total('type=union&district_id=3026'), productCounts().union, 'district_id is ignored here')
  t.equal(await total('type=district&division_id=99'), 0)
  t.equal(await total('type=district&division_id=3026'), 0)
  for (const [type, name] of [
    ['district', 'division_id'],
    ['upazila', 'district_id'],
    ['union', 'upazila_id'],
  ] as const)
    t.equal(await total(`type=${type}&${name}=`), productCounts()[type], `an empty ${name} is no filter`)
  t.notMatch((await gateway.get('/locations?type=union&upazila_id=')).headers.link, 'upazila_id')
})

/** The names of the districts that a search finds, with the other name where that was found. */
const listed = async (q: string) => {
  const { status, body } = await gateway.get(`/locations?type=district&q=${encodeURIComponent(q)}`)
  type Item = { name_en: string; matched_alias?: string }
  const found = (body.results ?? []).map(({ name_en, matched_alias }: Item) =>
    matched_alias === undefined ? name_en : `${name_en} (${matched_alias})`,
  )
  return { status, found, keys: Object.keys(body).join(), approximate: body.approximate }
}

t.test('search finds both scripts and former names, also loosely, and says what it found', async t => {
  const keys = 'results,total,type'
  for (const [q, name] of [
    [' ঢাকা ', 'Dhaka'],
    ['কুড়িগ্রাম'.normalize('NFC').replaceAll('\u09a1\u09bc', '\u09dc'), 'Kurigram'],
    ['coxs bazar', "Cox's Bazar"],
    ['dacca', 'Dhaka (Dacca)'],
  ] as const)
    t.strictSame(await listed(q), { status: 200, found: [name], keys, approximate: undefined }, q)
  t.strictSame(await listed('xyzzy'), { status: 200, found: [], keys, approximate: undefined })
  t.equal((await listed('')).found.length, 50)
  const loose = { status: 200, found: ['Narayanganj'], keys: `${keys},approximate`, approximate: true }
  t.strictSame(await listed('Narayangonz'), loose, 'more loosely, and it says so')
  t.equal((await listed(`  ${'ক'.repeat(100)}  `)).status, 200, 'blanks at either end are cut')
})

t.test('a former code is 404 with the current code, on every endpoint, under its own type', async t => {
  const error = 'the union "10040939" was not found; its code is 10049039 since 2012-04-25'
  const refusal = {
    error,
    code: 'place_code_changed',
    parameter: 'id',
    doc_url: '/docs#error-place_code_changed',
  }
  const path = join(t.testdir(), 'locations.json')
  copyFileSync(usualCatalogue, path)
  await setPublished(path, '10049039', false)
  const other = await startGateway(t, { providerUrl: provider.url, env: { ABOHAWA_CATALOGUE__PATH: path } })
  const unknown = (type: string) => `the ${type} "10040939" was not found or is not published`
  for (const endpoint of ['locations', 'weather', 'forecast']) {
    const { status, body } = await gateway.get(`/${endpoint}/union/10040939`)
    t.strictSame([status, body], [404, refusal], endpoint)
    t.equal((await gateway.get(`/${endpoint}/union/10049039`)).status, 200)
    const answer = await gateway.get(`/${endpoint}/upazila/10040939`)
    t.hasStrict(answer, { status: 404, body: { error: unknown('upazila') } })
    const hidden = await other.get(`/${endpoint}/union/10040939`)
    t.hasStrict(
      hidden,
      { status: 404, body: { error: unknown('union') } },
      'nothing is said of one that is hidden',
    )
  }
})

t.test('one place has the summary, the figures, its code, and its site or null', async t => {
  const { status, body } = await gateway.get('/locations/district/3026')
  t.equal(status, 200)
  t.match(body.location, {
    ...summaryTypes,
    ...{ type: 'district', id: '3026', name_en: 'Dhaka', name_bn: 'ঢাকা', parent_en: 'Dhaka' },
    ...{ population: Number, area_sq_km: Number, website: /^https?:\/\//, bbs_code: 3026 },
  })
  t.strictSame(Object.keys(body.location), [...summaryKeys, 'website', 'bbs_code'])
  const sites = async (offset: number): Promise<unknown[]> => {
    const list = (await gateway.get(`/locations?type=upazila&limit=100&offset=${offset}`)).body.results
    const all = list.map(
      async ({ id }: { id: string }) => (await gateway.get(`/locations/upazila/${id}`)).body,
    )
    return (await Promise.all(all)).map(({ location }) => location.website)
  }
  let seen: unknown[] = []
  for (let offset = 0; offset < 500 && !seen.includes(null); offset += 100) seen = await sites(offset)
  t.ok(seen.includes(null), 'some upazila has no site')
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
  const nameOf = async (place: string) => (await gateway.get(`/locations/${place}`)).body.location
  const { parent_en } = await nameOf(`union/${ids.union}`)
  t.equal(parent_en, (await nameOf('upazila/302672')).name_en, 'the detail of a union names its upazila')
})

t.test('a slug is answered with the response of the id, and the path that has it', async t => {
  const paths: [bySlug: string, byId: string, location: string][] = [
    ['/weather/district/dhaka', '/weather/district/3026', '3026'],
    ['/weather/district/Coxs-Bazar?x=1&lang=en', '/weather/district/2022?lang=en', '2022?lang=en'],
    ['/weather/division/dhaka?lang=bn', '/weather/division/30', '30'],
    ['/forecast/district/dhaka?days=7', '/forecast/district/3026', '3026'],
    ['/forecast/district/%64haka?days=2', '/forecast/district/3026?days=2', '3026?days=2'],
    ['/locations/district/DHAKA', '/locations/district/3026', '3026'],
  ]
  // Not the same order everywhere: the first of each may have to wait for the provider, or makes what is kept.
  for (const [bySlug, byId, location] of paths) {
    const first = await gateway.get(bySlug)
    const own = await gateway.get(byId)
    const again = await gateway.get(bySlug, { headers: { 'accept-encoding': 'gzip' } })
    t.equal(first.status, 200, bySlug)
    t.equal(first.headers['content-location'], location)
    t.equal(own.headers['content-location'], undefined)
    t.strictSame(first.body, own.body)
    t.strictSame([first.headers.etag, again.headers.etag], [own.headers.etag, own.headers.etag])
    const url = new URL(location, `http://x/api/v1${bySlug}`)
    t.equal(url.pathname + url.search, `/api/v1${byId}`)
    const headers = { 'if-none-match': String(own.headers.etag) }
    t.hasStrict(await gateway.get(bySlug, { headers }), {
      status: 304,
      headers: { 'content-location': location },
    })
  }
})

t.test('a slug of several places is 404 with how many there are, and how to find the id', async t => {
  const { results } = (await gateway.get('/locations?type=union&q=durgapur')).body
  const same = results.filter(({ slug_en }: { slug_en: string }) => slug_en === 'durgapur')
  t.ok(same.length > 3)
  const ids = same.slice(0, 3).map(({ id }: { id: string }) => id)
  const error = `"durgapur" is the slug of ${same.length} places of the type union, such as ${ids.join(', ')}; request one by its id, which /api/v1/locations?type=union&q=durgapur lists`
  for (const endpoint of ['locations', 'weather', 'forecast']) {
    const answer = await gateway.get(`/${endpoint}/union/Durgapur`)
    t.hasStrict(answer, { status: 404, body: { error, code: 'place_ambiguous', parameter: 'id' } })
  }
  for (const path of ['/weather/union/dhaka', '/forecast/district/dhaka-', '/locations/district/constructor'])
    t.hasStrict(await gateway.get(path), { status: 404, body: { code: 'place_not_found' } }, path)
})
