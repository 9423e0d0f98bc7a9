// The places that come with the product: whole, sound, and in the very bytes a build would write.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { createCatalogue, type ListQuery } from '../../src/catalogue/catalogue.ts'
import { type Location, type LocationType, locationTypes } from '../../src/catalogue/location.ts'
import { fold } from '../../src/catalogue/search.ts'
import { formatSnapshot } from '../../src/catalogue/snapshot.ts'
import { readSnapshot } from '../../src/catalogue/snapshot-reader.ts'
import { bounds } from './sample-places.ts'

const path = fileURLToPath(new URL('../../locations.json', import.meta.url))
const snapshot = await readSnapshot(path, bounds)
const catalogue = createCatalogue(snapshot)

t.test('there are 8 divisions, 64 districts, 544 upazilas and 4,476 unions', async t => {
  t.strictSame(snapshot.provenance.counts, {
    division: 8,
    district: 64,
    upazila: 544,
    union: 4476,
    total: 5092,
  })
  t.equal(catalogue.size, 5092)
})

t.test('both sources are named with their licence', async t => {
  t.match(snapshot.provenance, {
    title: 'Bangladesh',
    sources: [
      { name: /bangladesh-geocode/, licence: 'MIT', date: '2023-03-17' },
      { name: /CRAN package bangladesh/, licence: 'MIT', date: '2022-10-28' },
    ],
  })
})

t.test('the file is byte for byte what a build writes, one place a line', async t => {
  const text = readFileSync(path, 'utf8')
  t.ok(formatSnapshot(snapshot) === text)
  t.equal(text.split('\n').filter(line => line.startsWith('    {"id":')).length, 5092)
})

t.test('every place but a division leads to its division in as many steps as its level', async t => {
  const stepsUp = (place: Location): number => {
    const parent = catalogue.parentOf(place)
    return parent ? 1 + stepsUp(parent) : 0
  }
  const wrong = catalogue.all().filter(place => stepsUp(place) !== locationTypes.indexOf(place.type))
  t.strictSame(wrong, [])
})

t.test('pages of a hundred walk every place of every level once, by population', async t => {
  for (const type of locationTypes) {
    const walked: Location[] = []
    for (let offset = 0; ; offset += 100) {
      const { results, total } = catalogue.list({ type, limit: 100, offset })
      if (results.length === 0) {
        t.equal(walked.length, total)
        break
      }
      walked.push(...results)
    }
    t.equal(new Set(walked.map(({ id }) => id)).size, walked.length)
    t.ok(walked.every((place, at) => place.population <= (walked[at - 1]?.population ?? Infinity)))
  }
})

t.test('well-known places are found by either name', async t => {
  const first = (type: LocationType, q: string) => catalogue.list({ type, q, limit: 1, offset: 0 }).results[0]
  t.match(first('division', 'dhaka'), { id: '30', name_bn: '\u09a2\u09be\u0995\u09be' })
  t.match(first('district', '\u0995\u09c1\u09ae\u09bf\u09b2\u09cd\u09b2\u09be'), { name_en: 'Cumilla' })
  t.match(first('division', '\u09ae\u09df\u09ae\u09a8\u09b8\u09bf\u0982\u09b9'), { name_en: 'Mymensingh' })
})

t.test('a search gives what looking at every name gives, in order, on every page', async t => {
  const place = fc.constantFrom(...catalogue.all())
  const maybe = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined })
  const search = place.chain(({ type, name_en, name_bn, parentId }) => {
    const part = fc
      .tuple(fc.constantFrom(name_en, name_bn), fc.nat(20), fc.integer({ min: 1, max: 9 }))
      .map(([name, from, length]) => name.slice(from % name.length).slice(0, length))
    return fc.record({
      type: fc.oneof({ weight: 9, arbitrary: fc.constant(type) }, fc.constantFrom(...locationTypes)),
      q: maybe(fc.oneof({ weight: 4, arbitrary: part }, fc.tuple(part, part).map(String), fc.string())),
      parentId: maybe(
        fc.oneof(
          fc.constant(parentId ?? '0'),
          place.map(({ id }): string => id),
        ),
      ),
      limit: fc.integer({ min: 1, max: 100 }),
      offset: fc.oneof(fc.constant(0), fc.nat(300)),
    })
  })
  const shown = ({ type, q = '', parentId, limit, offset }: ListQuery) => {
    const all = catalogue
      .all()
      .filter(place => place.type === type && (parentId === undefined || place.parentId === parentId))
      .filter(({ name_en, name_bn }) => [name_en, name_bn].some(name => fold(name).includes(fold(q))))
      .toSorted((a, b) => b.population - a.population || (a.id < b.id ? -1 : 1))
    return { results: all.slice(offset, offset + limit), total: all.length }
  }
  let several = 0
  const same = fc.property(search, query => {
    const page = catalogue.list(query)
    if (query.q && page.total > 1) several += 1
    return isDeepStrictEqual(page, shown(query))
  })
  t.doesNotThrow(() => fc.assert(same, { numRuns: 400 }))
  t.ok(several > 20, `${several} searches found more than one place`)
})
