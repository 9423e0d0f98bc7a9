// Which places a catalogue shows and hides, and in which order.

import t, { type Test } from 'tap'
import { type Catalogue, createCatalogue } from '../../src/catalogue/catalogue.ts'
import type { LocationType } from '../../src/catalogue/location-schema.ts'
import { readSnapshot } from '../../src/catalogue/snapshot-reader.ts'
import { buildSample, sampleRows } from './sample-places.ts'

/** A catalogue of the sample in which these ids are unpublished. */
const catalogueWithout = async (test: Test, ...unpublished: string[]): Promise<Catalogue> => {
  const rows = sampleRows().map(row => ({
    ...row,
    published: String(!unpublished.includes(row.bbs_code ?? '')),
  }))
  const { path } = await buildSample(test.testdir(), rows)
  return createCatalogue(await readSnapshot(path))
}

const page = { limit: 50, offset: 0 }
const idsOf = ({ results }: { results: readonly { id: string }[] }) => results.map(({ id }) => id)

t.test('a place is found by its level and id together, and names its parent', async t => {
  const catalogue = await catalogueWithout(t)
  t.equal(catalogue.find('district', '1004')?.name_en, 'Barguna')
  for (const type of ['division', 'upazila', 'union'] as const)
    t.equal(catalogue.find(type, '1004'), undefined)
  for (const id of ['9', '', '1004 ', '01004', '__proto__'])
    t.equal(catalogue.find('district', id), undefined)
  const [district, division] = [catalogue.find('district', '1004'), catalogue.find('division', '10')]
  t.equal(district && catalogue.parentOf(district), division)
  t.equal(division && catalogue.parentOf(division), undefined)
})

t.test('an unpublished place is hidden, and its children still name it', async t => {
  const catalogue = await catalogueWithout(t, '1004')
  t.equal(catalogue.find('district', '1004'), undefined)
  const nothing = { results: [], total: 0, matchedAliases: new Map(), approximate: false }
  t.strictSame(catalogue.list({ type: 'district', ...page }), nothing)
  t.strictSame(catalogue.list({ type: 'district', q: 'barguna', ...page }), nothing)
  t.strictSame(catalogue.list({ type: 'upazila', parentId: '1004', ...page }), nothing)
  t.notOk(catalogue.all().some(({ id }) => id === '1004'))
  t.equal(catalogue.size, 6)

  const child = catalogue.find('upazila', '100409')
  t.equal(child && catalogue.parentOf(child)?.name_en, 'Barguna')
  t.strictSame(idsOf(catalogue.list({ type: 'upazila', ...page })), ['100409'])
})

t.test('pages are ordered by population, then by id; they miss nothing and have the same total', async t => {
  const catalogue = await catalogueWithout(t)
  t.strictSame(idsOf(catalogue.list({ type: 'division', ...page })), ['20', '10'])
  for (const limit of [1, 2, 3, 4]) {
    const ids: string[] = []
    for (let offset = 0; offset < 5; offset += limit) {
      const found = catalogue.list({ type: 'union', limit, offset })
      t.equal(found.total, 3)
      ids.push(...idsOf(found))
    }
    t.strictSame(ids, ['10040923', '10040913', '10040915'], `by ${limit}`)
  }
  t.match(catalogue.list({ type: 'union', limit: 2, offset: 3 }), { results: [], total: 3 })
})

t.test('a parent filters by being the direct parent', async t => {
  const catalogue = await catalogueWithout(t)
  const under = (type: LocationType, parentId: string) => idsOf(catalogue.list({ type, parentId, ...page }))
  t.strictSame(under('district', '10'), ['1004'])
  t.strictSame(under('district', '20'), [])
  t.strictSame(under('union', '100409').length, 3)
  for (const id of ['10', '1004', '77', '', 'x']) t.strictSame(under('union', id), [], `unions under "${id}"`)
  t.strictSame(under('district', '1004'), [])
})

t.test('a search finds parts of either name, within the filters, and counts before it cuts', async t => {
  const catalogue = await catalogueWithout(t)
  const search = (q: string, type: LocationType = 'union') => catalogue.list({ type, q, limit: 1, offset: 0 })
  t.match(search('gas'), { total: 2, results: [{ name_en: 'Atharagashia' }] })
  t.match(search('  GASHIA '), { total: 2 })
  t.match(search('\u0986\u09ae\u09a4'), { total: 3 })
  t.match(search('am'), { total: 1 })
  t.match(search('nowhere'), { total: 0, results: [] })
  t.match(search('.*'), { total: 0 })
  t.match(search(''), { total: 3 })
  t.match(search(' \u200d '), { total: 3 })
  t.match(catalogue.list({ type: 'union', parentId: '1004', q: 'am', ...page }), { total: 0 })
  for (const between of ['\n', ' ', ''])
    t.match(search(`amtali${between}\u0986\u09ae`), { total: 0 }, 'never across two names')
})

t.test('both encodings of a Bengali name find it', async t => {
  const rows = sampleRows()
  Object.assign(rows[4] ?? {}, { name_bn: '\u09ac\u09a1\u09bc\u09cb\u09af\u09bc\u09be' })
  const { path } = await buildSample(t.testdir(), rows)
  const catalogue = createCatalogue(await readSnapshot(path))
  const inPieces = '\u09ac\u09a1\u09bc\u09c7\u09be\u09af\u09bc\u09be'
  for (const q of ['\u09ac\u09dc\u09cb\u09df\u09be', inPieces, '\u09dc', '\u09cb\u09df'])
    t.strictSame(idsOf(catalogue.list({ type: 'union', q, ...page })), ['10040915'])
})

t.test('returned places are frozen, and different catalogues have different checksums', async t => {
  const catalogue = await catalogueWithout(t)
  t.ok(Object.isFrozen(catalogue) && Object.isFrozen(catalogue.all()))
  t.throws(() => Object.assign(catalogue.find('division', '10') ?? {}, { published: false }), TypeError)
  ;(catalogue.list({ type: 'union', ...page }).results as unknown[]).length = 0
  t.equal(catalogue.list({ type: 'union', ...page }).results.length, 3, 'a page is the caller’s own')
  t.not((await catalogueWithout(t, '20')).checksum, catalogue.checksum)
})
