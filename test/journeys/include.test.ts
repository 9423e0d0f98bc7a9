// Without it `include` could give wrong words, icons or nearest places, or change responses that did not ask for it.

import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { request } from 'undici'
import { kilometresBetween } from '../../src/catalogue/nearest.ts'
import { iconOf, weatherTextOf } from '../../src/weather/weather-words.ts'
import { setPublished } from '../../tools/catalogue/publication.ts'
import { startProviderHere } from '../support/provider.ts'
import { startGateway } from '../support/start-gateway.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

const provider = await startProviderHere(t)
const gateway = await startGateway(t, { providerUrl: provider.url })

type Block = Record<string, unknown>

/** The same without what `include=text` adds. */
const plain = (body: Record<string, unknown>): unknown =>
  JSON.parse(JSON.stringify(body), (name, value) =>
    name === 'weather_text' || name === 'icon' || name === 'place' ? undefined : value,
  )

t.test('with text every block says what its codes mean, in the language of the request', async t => {
  for (const path of ['/weather/district/3026', '/weather/coords/23.81/90.41', '/forecast/upazila/302672'])
    for (const lang of ['bn', 'en'] as const) {
      const query = lang === 'bn' ? 'include=text' : `lang=${lang}&include=text`
      const { status, body, headers } = await gateway.get(`${path}?${query}`)
      t.equal(status, 200, `${path} in ${lang}`)
      t.equal(headers['content-language'], lang)
      for (const name of ['current', 'hourly', 'daily']) {
        if (!(name in body)) continue
        const { weather_code, weather_text, icon, is_day } = body[name]
        const days = [is_day].flat()
        const codes = [weather_code].flat()
        t.strictSame(
          [weather_text].flat(),
          codes.map(code => weatherTextOf(code, lang)),
          name,
        )
        t.strictSame(
          [icon].flat(),
          codes.map((code, i) => iconOf(code, days[i])),
          name,
        )
        t.strictSame(
          Object.keys(body[`${name}_units`]),
          Object.keys(body[name]).filter(key => key in body[`${name}_units`]),
        )
        t.hasStrict(body[`${name}_units`], { weather_text: '', icon: '' })
      }
      const without = (await gateway.get(`${path}${lang === 'en' ? '?lang=en' : ''}`)).body
      t.strictSame(plain(body), without, 'nothing else differs')
    }
})

t.test('night has icons of its own', async t => {
  const { hourly } = (await gateway.get('/weather/district/3026?include=text')).body
  const seen = new Set<string>(hourly.icon)
  t.ok([...seen].some(icon => icon.endsWith('-night')) && [...seen].some(icon => icon.endsWith('-day')))
})

t.test('the forecast has a language for its words alone, and ignores one without them', async t => {
  const path = '/forecast/district/3026'
  const plain = await gateway.get(path)
  for (const query of ['lang=fr', 'lang=en&lang=en', 'lang=%FF', 'include=&lang=en']) {
    const { status, headers } = await gateway.get(`${path}?${query}`)
    t.strictSame(
      [status, headers.etag, headers['content-language']],
      [200, plain.headers.etag, undefined],
      query,
    )
  }
  t.hasStrict(await gateway.get(`${path}?include=text&lang=fr`), { status: 400, body: { parameter: 'lang' } })
  const short = (await gateway.get(`${path}?days=2&include=text&lang=en`)).body.daily
  t.strictSame([short.time.length, short.weather_text.length, short.icon.length], [2, 2, 2])
})

t.test('responses with additions are kept, compressed and validated for each language', async t => {
  const path = '/api/v1/weather/district/3026'
  const key = { 'x-api-key': gateway.keys.enterprise ?? '' }
  const tags = new Set<unknown>()
  for (const query of ['', '?lang=en', '?include=text', '?include=text&lang=en']) {
    const url = `${gateway.apiUrl}${path}${query}`
    const first = await request(url, { headers: key })
    const text = await first.body.text()
    const { etag } = first.headers
    const packed = await request(url, { headers: { ...key, 'accept-encoding': 'gzip' } })
    t.equal(packed.headers['content-encoding'], 'gzip')
    t.equal(gunzipSync(Buffer.from(await packed.body.arrayBuffer())).toString(), text)
    const again = await request(url, { headers: { ...key, 'if-none-match': String(etag) } })
    t.strictSame([again.statusCode, await again.body.text()], [304, ''])
    t.match(again.headers, { 'cache-control': /^private, max-age=\d+$/, 'cache-status': /^abohawa; hit;/ })
    t.equal(again.headers['cache-control'], packed.headers['cache-control'])
    tags.add(etag)
  }
  t.equal(tags.size, 4)
})

t.test('a point has the nearest union with its upazila and district, with distances', async t => {
  const path = '/weather/coords/23.9012/90.2345'
  const { body, headers } = await gateway.get(`${path}?include=place`)
  t.strictSame(Object.keys(body).slice(0, 3), ['location', 'place', 'current'])
  const { body: without, headers: others } = await gateway.get(path)
  t.strictSame(plain(body), without)
  t.not(headers.etag, others.etag)
  t.strictSame(Object.keys(body.place), ['union', 'upazila', 'district'])
  const point = { latitude: 23.9012, longitude: 90.2345 }
  let parent: unknown
  for (const [type, place] of Object.entries<Block>(body.place).reverse()) {
    const { location } = (await gateway.get(`/locations/${type}/${place.id}`)).body
    t.equal(place.distance_km, Math.round(kilometresBetween(location, point) * 10) / 10)
    t.strictSame(Object.keys(place), ['type', 'id', 'name_en', 'name_bn', 'distance_km'])
    t.hasStrict(location, { type, name_en: place.name_en, name_bn: place.name_bn })
    if (parent !== undefined) t.equal(location.parent_en, parent)
    parent = location.name_en
  }
  const { results } = (
    await gateway.get(`/locations?type=union&upazila_id=${body.place.upazila.id}&limit=100`)
  ).body
  const distances = results.map((union: typeof point) => kilometresBetween(union, point))
  t.equal(Math.round(Math.min(...distances) * 10) / 10, body.place.union.distance_km)
  const both = await gateway.get(`${path}?lang=en&include=text,place`)
  t.strictSame(both.body.place, body.place)
  t.type(both.body.current.weather_text, 'string')
  // A point of the catalogue is that place.
  const [union] = results
  const own = await gateway.get(`/weather/coords/${union.latitude}/${union.longitude}?include=place`)
  t.hasStrict(own.body.place.union, { id: union.id, distance_km: 0 })
})

t.test('a place that is not published is left out, and so is never the nearest', async t => {
  const path = join(t.testdir(), 'locations.json')
  copyFileSync(usualCatalogue, path)
  const point = '/weather/coords/23.9012/90.2345?include=place'
  const { union, upazila } = (await gateway.get(point)).body.place
  await setPublished(path, union.id, false)
  await setPublished(path, upazila.id, false)
  const other = await startGateway(t, { providerUrl: provider.url, env: { ABOHAWA_CATALOGUE__PATH: path } })
  const { place } = (await other.get(point)).body
  t.not(place.union.id, union.id)
  t.ok(place.union.distance_km >= union.distance_km)
  if (place.union.id.startsWith(upazila.id)) t.notOk('upazila' in place)
  t.type(place.district.id, 'string')
})

t.test('another word, brackets and a second time are 400, which says what to send', async t => {
  const as = 'with commas between its values, as in include'
  for (const [query, code, error] of [
    ['include=text,places', 'include_invalid', 'be a comma-separated list of place, text, got "text,places"'],
    [
      'include%5B0%5D=text',
      'parameter_brackets',
      `be sent without brackets, ${as}=place,text, got "include[0]"`,
    ],
    ['include=text&include=place', 'parameter_repeated', `be given only once, ${as}=place,text`],
  ] as const) {
    const { status, body } = await gateway.get(`/weather/coords/23.8/90.4?${query}`)
    t.hasStrict({ status, ...body }, { status: 400, code, parameter: 'include' })
    t.ok(body.error.endsWith(error), body.error)
  }
  const { status } = await gateway.get('/forecast/district/3026?places[]=1&lang[]=en&include=text')
  t.equal(status, 200, 'of what is no list of the endpoint they are as unknown as any name')
})

t.test('a slug keeps what it includes in the path that it stands for', async t => {
  for (const [path, location] of [
    ['/weather/district/dhaka?include=text&lang=en&x=1', '3026?lang=en&include=text'],
    ['/forecast/district/dhaka?days=2&include=text', '3026?days=2&include=text'],
    ['/forecast/district/dhaka?lang=en', '3026'],
  ] as const) {
    const bySlug = await gateway.get(path)
    t.equal(bySlug.headers['content-location'], location)
    const own = await gateway.get(`${path.slice(0, path.lastIndexOf('/'))}/${location}`)
    t.strictSame([own.headers.etag, own.body], [bySlug.headers.etag, bySlug.body])
  }
})
