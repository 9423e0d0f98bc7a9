// Without it a faulty table could replace a good snapshot, or a rebuild publish places that operators hid.

import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { chmod, lstat, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { faultLine } from '../../../src/catalogue/check.ts'
import { readSnapshot } from '../../../src/catalogue/snapshot-reader.ts'
import { buildSnapshot } from '../../../tools/catalogue/build.ts'
import { setPublished } from '../../../tools/catalogue/publication.ts'
import { buildSample, facts, sampleRows } from '../../catalogue/sample-places.ts'

const unpublishedIn = async (path: string) =>
  (await readSnapshot(path)).locations.filter(({ published }) => !published).map(({ id }) => id)

t.test('a build reports its counts; a table with faults changes nothing and names all', async t => {
  const folder = t.testdir({ empty: {} })
  const { path, ...report } = await buildSample(folder)
  const counts = { division: 2, district: 1, upazila: 1, union: 3, total: 7 }
  t.strictSame(report, { counts, aliases: 0, formerIds: 0, faults: [], keptUnpublished: [] })
  const former = readFileSync(path)
  const written = await stat(path)
  const rows = sampleRows()
  Object.assign(rows[0] ?? {}, { latitude: '0' })
  Object.assign(rows[6] ?? {}, { population: 'many' })
  const { faults, keptUnpublished } = await buildSample(folder, rows)
  const places = faults.map(({ row, column }) => `${row} ${column}`)
  t.strictSame(places, ['row 2 latitude', 'row 8 population'])
  t.strictSame(keptUnpublished, [])
  t.ok(readFileSync(path).equals(former))
  t.equal((await stat(path)).ino, written.ino)
  t.notOk(existsSync(`${path}.new`))
  const first = await buildSample(join(folder, 'empty'), rows)
  t.notOk(existsSync(first.path), 'nor is a first snapshot written')
})

t.test('a rebuild keeps unpublished places unpublished, and repairs a faulty snapshot', async t => {
  const folder = t.testdir()
  const { path } = await buildSample(folder)
  for (const id of ['10040915', '100409', '20']) await setPublished(path, id, false)
  writeFileSync(path, readFileSync(path, 'utf8').replace('"population":892781', '"population":-1'))
  await t.rejects(readSnapshot(path))
  t.strictSame((await buildSample(folder)).keptUnpublished, ['100409', '10040915', '20'])
  t.strictSame(await unpublishedIn(path), ['100409', '10040915', '20'])
  const removed = await buildSample(folder, sampleRows().slice(1))
  t.strictSame(removed.keptUnpublished, ['100409', '10040915'], 'a place removed from the table is gone')
  t.equal((await readSnapshot(path)).locations.length, 6)

  // A column for it overrides the former state, except where it is empty.
  for (const id of ['10040913', '10040915']) await setPublished(path, id, false)
  const published: Record<string, string> = { 20: 'true', 1004: 'false', 10040915: '' }
  const rows = sampleRows().map(row => ({ ...row, published: published[row.bbs_code ?? ''] ?? '' }))
  t.strictSame((await buildSample(folder, rows)).keptUnpublished, ['100409', '10040913', '10040915'])
  t.strictSame(await unpublishedIn(path), ['1004', '100409', '10040913', '10040915'])
})

t.test('a file that is not a snapshot is not overwritten', async t => {
  const folder = t.testdir()
  const { path } = await buildSample(folder)
  for (const other of ['{"name":"a package"}', '{"locations": [', '[]']) {
    writeFileSync(path, other)
    await t.rejects(buildSample(folder), { code: 'bad_input', message: /is not a snapshot of places/ })
    t.equal(readFileSync(path, 'utf8'), other)
  }
  t.strictSame(readdirSync(folder).toSorted(), ['locations.json', 'table.csv'])
})

t.test('an invalid title, source or date is a fault; a missing table or folder is named', async t => {
  const folder = t.testdir()
  const { path } = await buildSample(folder)
  const former = readFileSync(path)
  const options = { csvPath: join(folder, 'table.csv'), outPath: path, facts, builtOn: '2026-11-21' }
  for (const [changed, fault] of [
    [{ builtOn: '21.11.2026' }, /^provenance, built: given "21.11.2026"/],
    [{ facts: { ...facts, title: '' } }, /^provenance, title: given ""/],
    [{ facts: { ...facts, sources: [] } }, /^provenance, sources: /],
  ] as const) {
    const { faults } = await buildSnapshot({ ...options, ...changed })
    t.match(faults.map(faultLine), [fault])
    t.ok(readFileSync(path).equals(former))
  }
  for (const [changed, message] of [
    [{ csvPath: join(folder, 'no.csv') }, /no\.csv can't be read: ENOENT/],
    [{ outPath: join(folder, 'no/a.json') }, /no\/a\.json can't be written: ENOENT/],
  ] as const)
    await t.rejects(buildSnapshot({ ...options, ...changed }), { code: 'bad_input', message })
})

t.test('a link is followed, and the mode of the file is kept', async t => {
  const folder = t.testdir({ real: {} })
  const { path } = await buildSample(join(folder, 'real'))
  await chmod(path, 0o640)
  const link = join(folder, 'locations.json')
  symlinkSync(path, link)
  const other = { facts: { ...facts, title: 'Other' }, builtOn: '2026-11-21' }
  const report = await buildSnapshot({ csvPath: join(folder, 'real/table.csv'), outPath: link, ...other })
  t.match(report, { faults: [] })
  t.ok((await lstat(link)).isSymbolicLink())
  t.equal((await stat(path)).mode & 0o777, 0o640)
  t.equal((await readSnapshot(path)).provenance.title, 'Other')
})
