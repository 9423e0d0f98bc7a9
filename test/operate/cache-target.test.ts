// Without it, a purge could hit other cells than its target names, or take a mistyped target.

import t from 'tap'
import { createCatalogue } from '../../src/catalogue/catalogue.ts'
import type { Bounds } from '../../src/catalogue/location-schema.ts'
import { readSnapshot } from '../../src/catalogue/snapshot-reader.ts'
import {
  areaTargetIn,
  cellOfTarget,
  pointOrPlaceIn,
  scopeOf,
  scopeOfArea,
  targetIn,
} from '../../src/operate/cache-target.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { hasCell } from '../../src/weather/cell-set.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

const catalogue = createCatalogue(await readSnapshot(usualCatalogue))
const { bounds } = catalogue
const areaOf = (degrees: number, box: Bounds = bounds) => ({
  catalogue: { ...catalogue, bounds: box },
  grid: createGrid(degrees),
})
const area = areaOf(0.1)
const scope = (text: string, given = area) => scopeOf(targetIn(text), given)

t.test('a point, a place, a box and all are distinguished', t => {
  t.strictSame(targetIn('23.81,90.41'), { point: { latitude: 23.81, longitude: 90.41 } })
  t.strictSame(targetIn(' -23.81 , +90 '), { point: { latitude: -23.81, longitude: 90 } })
  t.strictSame(targetIn('district/3026'), { place: { type: 'district', id: '3026' } })
  t.strictSame(targetIn('23.5,90,24,90.8'), { box: { south: 23.5, west: 90, north: 24, east: 90.8 } })
  t.strictSame(targetIn('all'), { all: true })
  t.end()
})

t.test('anything else is refused with one sentence: the given value and the allowed ones', t => {
  const refused: [string, RegExp][] = [
    ['', /^the target must be all, a point such as .*, got ""$/],
    ['dhaka', /, got "dhaka"$/],
    ['23.81', /, got "23\.81"$/],
    ['1,2,3', /, got "1,2,3"$/],
    ['0x10,90', /^the target must be /],
    ['1e1,90', /^the target must be /],
    [`${'9'.repeat(400)},0,1,1`, /, got "9{60}…"$/],
    ['district/30/26', /^the target must be /],
    ['town/3', /^the type of a place must be one of division, district, upazila, union, got "town"$/],
    ['24,90,23,91', /^a box must be south,west,north,east with south below north, got 24,90,23,91$/],
    ['23,91,24,90', /with west below east, got 23,91,24,90$/],
  ]
  for (const [text, message] of refused) t.throws(() => targetIn(text), { name: 'InputError', message }, text)
  for (const text of ['all', '23,90,24,91', 'x'])
    t.throws(() => pointOrPlaceIn(text), {
      message: /^the target must be a point such as 23\.81,90\.41 or a place such as district\/3026, got /,
    })
  t.end()
})

t.test('a point on the bounds has a cell, a point beyond them and a place that is not there have none', t => {
  t.equal(cellOfTarget(pointOrPlaceIn('20,93'), area).cell.id, '20,93')
  const refused: [string, RegExp][] = [
    ['19.99,90', /^the latitude must be from 20 to 27 \(Bangladesh\), got 19\.99$/],
    ['23,93.01', /^the longitude must be from 87\.5 to 93 \(Bangladesh\), got 93\.01$/],
    ['district/9', /^the district "9" was not found or is not published$/],
  ]
  for (const [text, message] of refused)
    t.throws(() => cellOfTarget(pointOrPlaceIn(text), area), { name: 'InputError', message })
  t.end()
})

t.test('all is every cell of a point within the bounds, also with a centre beyond them', t => {
  t.equal(scope('all').cells.length, 71 * 56)
  const narrow = { south: 20.04, north: 20.06, west: 90.04, east: 90.16 }
  t.strictSame(
    Array.from(scope('all', areaOf(0.1, narrow)).cells, ({ id }) => id),
    ['20,90', '20,90.1', '20,90.2', '20.1,90', '20.1,90.1', '20.1,90.2'],
  )
  t.end()
})

t.test('a box counts its cells within the bounds, however large it is, and needs one at least', t => {
  t.equal(scope('23.5,90,24,90.8').cells.length, 6 * 9)
  t.equal(scope('-180,-180,180,180').cells.length, 71 * 56)
  t.strictSame([...scope('23.7,90.4,23.7,90.4').cells], [area.grid.cellOf(23.7, 90.4)], 'edges included')
  for (const text of ['23.51,90.01,23.52,90.02', '50,8,51,9'])
    t.throws(() => scope(text), {
      name: 'InputError',
      message: /^a box must hold the centre of a grid cell within 20,87\.5,27,93, got /,
    })
  t.end()
})

t.test('an area is a place and all places below it, the unpublished ones too', async t => {
  const snapshot = await readSnapshot(usualCatalogue)
  const below = snapshot.locations.filter(({ id }) => id.startsWith('3026'))
  const hidden = below.filter(({ type }) => type === 'union').map(({ id }) => id)
  const locations = snapshot.locations.map(each =>
    hidden.includes(each.id) ? { ...each, published: false } : each,
  )
  const given = { catalogue: createCatalogue({ ...snapshot, locations }), grid: createGrid(0.05) }
  const found = scopeOfArea(areaTargetIn('district/3026'), 0.05, given)
  t.ok(hidden.length > 5)
  t.equal(found.places, below.length)
  t.equal(found.place?.id, '3026')
  const expected = new Set(below.map(each => given.grid.cellOf(each.latitude, each.longitude).id))
  t.strictSame(new Set(found.cells.map(({ id }) => id)), expected)
  t.equal(found.cells.length, expected.size, 'each cell once')
  if (!('cells' in found.scope)) return t.fail('no area')
  t.equal(found.scope.area, 'district/3026')
  for (const { id } of found.cells) t.ok(hasCell(found.scope.cells, id), id)

  const [union] = below.filter(({ id }) => id.length > 6)
  const one = scopeOfArea(areaTargetIn(`${union?.type}/${union?.id}`), 0.05, {
    ...given,
    catalogue,
  })
  t.match(one, { places: 1, cells: { length: 1 } }, 'the narrowest place has none below it')
})

t.test('only a published place is an area', t => {
  for (const text of ['all', '23.81,90.41', '23.5,90,24,90.8', ''])
    t.throws(
      () => areaTargetIn(text),
      /^the (area|target) must be a place such as district\/3026, got /,
      text,
    )
  t.throws(() => areaTargetIn('town/3'), /got "town"$/)
  t.throws(() => scopeOfArea(areaTargetIn('district/9'), 0.1, area), /the district "9" was not found/)
  t.end()
})
