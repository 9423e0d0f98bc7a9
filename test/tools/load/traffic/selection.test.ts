// Without it a selection could split cells, or scrubbing leave keys in a file for others.

import t from 'tap'
import { readCatalogue } from '../../../../src/catalogue/live-catalogue.ts'
import { type CellOf, endpointOf, placeOf } from '../../../../tools/load/traffic/endpoint-of-path.ts'
import { createGaps } from '../../../../tools/load/traffic/gaps.ts'
import { createScrub } from '../../../../tools/load/traffic/scrub.ts'
import { isSampled, type Selection, selected } from '../../../../tools/load/traffic/selection.ts'
import type { TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'
import { request, start } from './read-all.ts'

async function* batchesOf(requests: readonly TrafficRequest[], size = 3) {
  for (let at = 0; at < requests.length; at += size) yield requests.slice(at, at + size)
}
const all = async (batches: AsyncIterable<readonly TrafficRequest[]>) => {
  const found: TrafficRequest[] = []
  for await (const batch of batches) found.push(...batch)
  return found
}

t.test('endpoints and places are read of paths', async t => {
  const paths: [path: string, endpoint: string, place?: string][] = [
    ['/api/v1/weather/district/3026?lang=en', 'weather', 'district/3026'],
    ['/api/v1/forecast/upazila/302602?days=3', 'forecast', 'upazila/302602'],
    ['/api/v1/weather/coords/23.81/90.41', 'coords', '23.81,90.41'],
    ['/api/v1/locations?type=district', 'locations', '/api/v1/locations'],
    ['/api/v1/locations/district/3026', 'location'],
    ['/api/v1/weather', 'other'],
    ['/api/v1/weather?places=district/3026,division/30&lang=en', 'weather_places', '/api/v1/weather'],
    ['/api/v1/forecast?days=2&places=district/3026', 'forecast_places', '/api/v1/forecast'],
    ['/api/v1/forecast?places%5B%5D=district/3026', 'forecast_places', '/api/v1/forecast'],
    ['/api/v1/forecast?days=2', 'other', '/api/v1/forecast'],
    ['/api/v1/weather/coords/23.81', 'weather', 'coords/23.81'],
    ['/api/v1/forecast/district/3026/now', 'other'],
    ['/api/v1/locations/district', 'other'],
    ['/', 'other'],
  ]
  for (const [path, endpoint, place = path] of paths)
    t.strictSame([endpointOf(path), placeOf(path)], [endpoint, place])
})

t.test('a list of places is chosen by the cells of its places', async t => {
  const ids = Array.from({ length: 200 }, (_, i) => 302600 + i)
  const lists = (name: string) =>
    ids.map((id, i) =>
      request(i, { path: `/api/v1/${name}?days=2&places=upazila%2F${id},coords/23.81/90.41` }),
    )
  const chosen = (requests: readonly TrafficRequest[], selection: Selection, cellOf?: CellOf) =>
    all(selected(batchesOf(requests), selection, cellOf))
  const sampled = (await chosen(lists('forecast'), { sample: 0.5 })).length
  t.ok(sampled > 60 && sampled < 140, `${sampled} of 200`)
  t.equal((await chosen(lists('weather'), { sample: 0.5 })).length, sampled, 'the same of every endpoint')
  t.equal((await chosen(lists('weather'), { cell: ['upazila/302626'] })).length, 1)
  t.equal((await chosen(lists('weather'), { cell: ['23.81,90.41'] })).length, 200)
  const cellOf: CellOf = ({ path }) => (path.endsWith('/302626') ? '23.7,90.3' : undefined)
  t.equal((await chosen(lists('weather'), { cell: ['23.7,90.3'] }, cellOf)).length, 1)
})

t.test('requests are chosen by time, endpoint, key, cell and number', async t => {
  const requests = Array.from({ length: 20 }, (_, i) =>
    request(i * 1_000, {
      key: `key_${i % 2}`,
      ...(i % 4 === 0 ? { cell: '23.8,90.4' } : {}),
      ...(i % 5 === 0 ? { path: '/api/v1/forecast/district/1' } : {}),
    }),
  )
  const chosen = async (selection: Selection) =>
    (await all(selected(batchesOf(requests), selection))).map(({ at }) => (at - start) / 1_000)
  t.strictSame(await chosen({ from: { at: start + 17_500 } }), [18, 19])
  t.strictSame(await chosen({ from: { after: 5_000 }, duration: 3_000 }), [5, 6, 7])
  t.strictSame(await chosen({ from: { after: 5_000 }, to: { at: start + 6_001 } }), [5, 6])
  t.strictSame(await chosen({ duration: 2_000 }), [0, 1])
  t.strictSame(await chosen({ key: ['key_1'], head: 3 }), [1, 3, 5])
  t.strictSame(await chosen({ cell: ['23.8,90.4'] }), [0, 4, 8, 12, 16])
  t.strictSame(await chosen({ cell: ['district/1'] }), [0, 5, 10, 15])
  t.strictSame(await chosen({ endpoint: ['forecast'], head: 3 }), [0, 5, 10])
  t.strictSame(await chosen({}), [...requests.keys()])
})

t.test('of searches a sample takes some, each with its repetitions', async t => {
  const paths = Array.from({ length: 400 }, (_, i) => `/api/v1/locations?q=place-${i % 200}`)
  const requests = paths.map((path, i) => request(i, { path }))
  const { length } = await all(selected(batchesOf(requests), { sample: 0.3 }))
  t.ok(length > 60 && length < 180 && length % 2 === 0, `${length} of 400`)
})

t.test('a sample takes cells whole, in the share that was given', async t => {
  const requests = Array.from({ length: 30_000 }, (_, i) => {
    const place = i % 3_000
    const cell = `${(place % 60) / 10 + 20.6},${Math.floor(place / 60) / 10 + 88}`
    return request(i, place % 3 === 0 ? { path: `/api/v1/weather/union/${place}?lang=bn` } : { cell })
  })
  const sample = await all(selected(batchesOf(requests, 1_000), { sample: 0.1 }))
  t.ok(Math.abs(sample.length / requests.length - 0.1) < 0.02, `${sample.length} of ${requests.length}`)
  const nameOf = ({ cell, path }: TrafficRequest) => cell ?? placeOf(path)
  const names = new Set(sample.map(nameOf))
  const whole = requests.filter(each => names.has(nameOf(each)))
  t.equal(sample.length, whole.length, 'with all of their requests')
  t.ok(isSampled('a', 1))
  const smaller = requests.map(nameOf).filter(name => isSampled(name, 0.05))
  const isPart = smaller.every(name => isSampled(name, 0.1))
  t.ok(isPart, 'a smaller sample is a part of a larger one')
})

t.test('cells that were not recorded are those from which a gateway would answer', async t => {
  const { createCellOf } = await import('../../../../tools/load/traffic/endpoint-of-path.ts')
  const { createGrid } = await import('../../../../src/weather/cell.ts')
  const bounds = { south: 20, west: 88, north: 27, east: 93 }
  const catalogue = await readCatalogue('locations.json')
  const cellOf = createCellOf(catalogue, bounds, createGrid(0.1))
  const paths: [string, string | undefined][] = [
    ['/api/v1/weather/district/3026?lang=en', '23.7,90.4'],
    ['/api/v1/forecast/district/3026', '23.7,90.4'],
    ['/api/v1/weather/coords/23.71/90.41', '23.7,90.4'],
    ['/api/v1/weather/coords/53/9', undefined],
    ['/api/v1/weather/district/9', undefined],
    ['/api/v1/weather/town/3026', undefined],
    ['/api/v1/locations/district/3026', undefined],
    ['/', undefined],
  ]
  for (const [path, cell] of paths) t.equal(cellOf({ path }), cell, path)
  t.equal(cellOf({ path: '/', cell: '1,1' }), '1,1')
  const neighbours = ['/api/v1/weather/coords/23.71/90.41', '/api/v1/weather/coords/23.72/90.42']
  const batches = batchesOf(neighbours.map(path => request(0, { path })))
  t.equal((await all(selected(batches, { cell: ['23.7,90.4'] }, cellOf))).length, 2)
})

t.test('gaps are found, and shortened for all that follow', async t => {
  const requests = [0, 10, 500, 510, 2_000].map(at => request(at * 1_000))
  const found = createGaps()
  t.strictSame(await all(found.pass(batchesOf(requests))), requests)
  const longest = [{ from: start + 510_000, ms: 1_490_000 }, { ms: 490_000 }]
  t.hasStrict(found.found(), { count: 2, cutMs: 0, longest })
  const cut = createGaps(60_000)
  const instants = (await all(cut.pass(batchesOf(requests)))).map(({ at }) => (at - start) / 1_000)
  t.strictSame(instants, [0, 10, 70, 80, 140])
  t.match(cut.found(), { count: 2, cutMs: (430 + 1_430) * 1_000 })
})

t.test('scrubbing renames keys and leaves out what is to be left out', async t => {
  const path = '/api/v1/weather/district/3026?lang=en&q=me&token=abc'
  const answered = { key: 'key_1', accepts: 'gzip', status: 200, cell: '23.8,90.4' }
  const given = request(5_000, { path, ...answered })
  const nameOf = (secret: string) => `name of ${secret}`
  t.strictSame(createScrub({ scrub: true, withoutParameter: ['q'] }, nameOf)?.(given), {
    ...given,
    path: '/api/v1/weather/district/3026?lang=en&token=name of abc',
    key: 'name of key_1',
  })
  t.strictSame(createScrub({ start: given.at }, nameOf)?.(given), given, 'only what is wanted')
  t.equal(createScrub({}, nameOf), undefined)
  const wanted = { withoutParameter: ['*'], withoutKeys: true, withoutAnswers: true, start: 1_000 }
  const scrub = createScrub(wanted, nameOf) as (request: TrafficRequest) => TrafficRequest
  t.strictSame(scrub(given), { ...request(0), at: 1_000, accepts: 'gzip' })
  t.equal(scrub(request(6_000)).at, 2_000, 'the distance stays')
})
