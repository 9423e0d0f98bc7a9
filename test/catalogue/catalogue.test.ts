// Without this, hidden places could be served, or lists could come in another order.

import t, { type Test } from 'tap'
import { type Catalogue, createCatalogue } from '../../src/catalogue/catalogue.ts'
import { readSnapshot } from '../../src/catalogue/snapshot-reader.ts'
import { buildSample, sampleRows } from './sample-places.ts'

/** A catalogue of the sample in which these ids are unpublished. */
const catalogueWithout = async (test: Test, ...unpublished: string[]): Promise<Catalogue> => {
  const isPublished = ({ bbs_code = '' }) => String(!unpublished.includes(bbs_code))
  const rows = sampleRows().map(row => ({ ...row, published: isPublished(row) }))
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

t.test('pages of any length are parts of one order; a search never spans two names', async t => {
  const catalogue = await catalogueWithout(t)
  const all = ['10040923', '10040913', '10040915']
  for (const limit of [1, 2, 3, 4]) {
    const pages = [0, 1, 2, 3].map(i => catalogue.list({ type: 'union', limit, offset: i * limit }))
    t.strictSame(pages.flatMap(idsOf), all, `by ${limit}, in order of population and then of ids`)
  }
  t.strictSame(idsOf(catalogue.list({ type: 'district', parentId: '20', ...page })), [], 'without children')
  const search = (q: string) => catalogue.list({ type: 'union', q, ...page }).total
  for (const q of ['amtali\n\u0986\u09ae', 'amtali \u0986\u09ae', 'amtali\u0986\u09ae', '.*'])
    t.equal(search(q), 0, q)
  t.strictSame(['', ' \u200d ', '  GASHIA ', '\u0986\u09ae\u09a4'].map(search), [3, 3, 2, 3])
})

t.test('returned places are frozen, and different catalogues have different checksums', async t => {
  const catalogue = await catalogueWithout(t)
  t.ok(Object.isFrozen(catalogue) && Object.isFrozen(catalogue.all()))
  t.throws(() => Object.assign(catalogue.find('division', '10') ?? {}, { published: false }), TypeError)
  ;(catalogue.list({ type: 'union', ...page }).results as unknown[]).length = 0
  t.equal(catalogue.list({ type: 'union', ...page }).results.length, 3, 'a page is the caller’s own')
  t.not((await catalogueWithout(t, '20')).checksum, catalogue.checksum)
})

t.test('a slug finds the published places of a level that have it, the most populous first', async t => {
  const rows = sampleRows().map(row => (row.level === 'union' ? { ...row, slug_en: 'amtali' } : row))
  const { path } = await buildSample(t.testdir(), rows)
  const catalogue = createCatalogue(await readSnapshot(path))
  const found = (type: 'union' | 'upazila', slug: string) =>
    catalogue.withSlug(type, slug).map(({ id }) => id)
  t.strictSame(found('union', 'Amtali'), ['10040923', '10040913', '10040915'])
  t.strictSame(found('upazila', 'amtali-sadar'), ['100409'])
  for (const slug of ['amtali', '', 'toString', '100409']) t.strictSame(found('upazila', slug), [])
  const other = await catalogueWithout(t, '10040913')
  t.strictSame(other.withSlug('union', 'amtali'), [])
})
