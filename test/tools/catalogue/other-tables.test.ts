// Without it aliases and former ids could be lost, or a faulty row enter the snapshot.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createCatalogue } from '../../../src/catalogue/catalogue.ts'
import { faultLine } from '../../../src/catalogue/check.ts'
import { inspectSnapshot, readSnapshot } from '../../../src/catalogue/snapshot-reader.ts'
import { setPublished } from '../../../tools/catalogue/publication.ts'
import { aliasRow, buildSample, changeRow, sampleRows, type TableRow } from '../../catalogue/sample-places.ts'

const aliases = [
  aliasRow('20', 'Chottogram', 'transliteration'),
  aliasRow('20', 'Chittagong', 'former-official'),
  aliasRow('10040913', 'Amtoli'),
  aliasRow('10040913', 'আমতলি', 'common', 'bn'),
]
const changes = [
  changeRow('10049913', '10040913'),
  changeRow('10049915', '10040915', ''),
  { ...changeRow('', '10040923'), kind: 'new-union' },
  { ...changeRow('1004 2004', ''), kind: 'respelt' },
  { ...changeRow('100409', '100409'), kind: 'renamed', level: 'upazila' },
  { ...changeRow('999', '998'), in_table: 'no', date: '' },
]

type Extras = { aliases?: TableRow[]; changes?: TableRow[] }

const build = (test: Test, extras: Extras = { aliases, changes }) =>
  buildSample(test.testdir(), sampleRows(), extras)

const faultsOf = async (test: Test, extras: Extras) => {
  const { faults, path } = await build(test, extras)
  test.throws(() => readFileSync(path), { code: 'ENOENT' }, 'nothing was written')
  return faults.map(faultLine)
}

t.test('a build counts aliases and former ids, and rows in any order give the same bytes', async t => {
  const folder = t.testdir({ other: {} })
  const { path, ...report } = await buildSample(folder, sampleRows(), { aliases, changes })
  t.match(report, { faults: [], aliases: 4, formerIds: 2 })
  const reversed = { aliases: aliases.toReversed(), changes: changes.toReversed() }
  const bytes = readFileSync(path)
  const other = await buildSample(join(folder, 'other'), sampleRows().toReversed(), reversed)
  t.ok(readFileSync(other.path).equals(bytes))
  await buildSample(folder, sampleRows(), reversed)
  t.ok(readFileSync(path).equals(bytes), 'over itself')
})

t.test('the most official alias comes first, and former ids have their dates', async t => {
  const { locations } = await readSnapshot((await build(t)).path)
  const place = (id: string) => locations.find(location => location.id === id)
  t.strictSame(place('20')?.aliases, ['Chittagong', 'Chottogram'])
  t.strictSame(place('10040913')?.formerIds, [{ id: '10049913', until: '2012-04-25' }])
  t.strictSame(place('10040915')?.formerIds, [{ id: '10049915' }])
  t.strictSame([place('10')?.aliases, place('10')?.formerIds], [[], []])
  t.ok(Object.isFrozen(place('20')?.aliases) && Object.isFrozen(place('10040915')?.formerIds))
})

t.test('a place found by an alias alone is listed with the first that matches, else without', async t => {
  const catalogue = createCatalogue(await readSnapshot((await build(t)).path))
  for (const [type, q, ...found] of [
    ['division', 'chittagong', ['20', 'Chittagong']],
    ['division', 'chottog', ['20', 'Chottogram']],
    ['division', 'ch', ['20', undefined]],
    ['union', 'আমতলি', ['10040913', 'আমতলি']],
    ['division', 'chittagongchottogram'],
  ] as const) {
    const { results, matchedAliases, total } = catalogue.list({ type, q, limit: 9, offset: 0 })
    const listed = results.map(place => [place.id, matchedAliases.get(place)])
    t.strictSame(listed, found, q)
    t.equal(total, found.length)
  }
})

t.test('a former id leads to a published place of its level and to no other', async t => {
  const { path } = await build(t)
  const { successorOf } = createCatalogue(await readSnapshot(path))
  t.hasStrict(successorOf('union', '10049913'), { location: { id: '10040913' }, since: '2012-04-25' })
  t.equal(successorOf('union', '10049915')?.since, undefined)
  t.equal(successorOf('upazila', '10049913'), undefined)
  for (const id of ['10040913', '__proto__']) t.equal(successorOf('union', id), undefined)
  const former = readFileSync(path, 'utf8')
  await setPublished(path, '10040913', false)
  t.equal(createCatalogue(await readSnapshot(path)).successorOf('union', '10049913'), undefined)
  await setPublished(path, '10040913', true)
  t.equal(readFileSync(path, 'utf8'), former, 'aliases and former ids stay as they are')
})

t.test('a place whose id has changed stays unpublished', async t => {
  const folder = t.testdir()
  const before = sampleRows()
  Object.assign(before[5] ?? {}, { bbs_code: '10040999' })
  const { path } = await buildSample(folder, before)
  await setPublished(path, '10040999', false)
  const moved = { changes: [changeRow('10040999', '10040913')] }
  t.strictSame((await buildSample(folder, sampleRows(), moved)).keptUnpublished, ['10040913'])
  t.equal((await readSnapshot(path)).locations.find(({ id }) => id === '10040913')?.published, false)
})

const code = 'decimal digits without a leading zero, 15 at most'
const place = 'the code of a place in the table'
const plain = 'text without control characters'
const spelling = 'its usual spelling in Unicode NFC,'

/** A row with a fault in a column: what the message shows of it, and what is allowed there. */
type Faulty = [row: TableRow, column: string, given: string, allowed: string]

const aliasFaults: Faulty[] = [
  [aliasRow('77', 'Elsewhere'), 'bbs_code', '"77"', place],
  [aliasRow('x', 'Elsewhere'), 'bbs_code', '"x"', code],
  [aliasRow('20', 'Elsewhere', 'common', 'hi'), 'language', '"hi"', 'one of en, bn'],
  [aliasRow('20', 'Else', 'nick'), 'kind', '"nick"', 'one of former-official, common, transliteration'],
]
for (const [alias, why, allowed] of [
  ['', '', 'a name of at least one letter'],
  ['Cafe\u0301', ', with U+0065 U+0301 in it', `${spelling} U+00E9`],
  ['ওপা\u09a1\u09bf\u09bc', ', with U+09A1 U+09BF U+09BC in it', `${spelling} U+09A1 U+09BC U+09BF`],
  ['chotto-gram', ', which reads as that of aliases, row 2', 'unique'],
  ['CHATTOGRAM', ', which reads as the name of the place', 'another name'],
] as const)
  aliasFaults.push([aliasRow('20', alias), 'alias', `"${alias}"${why}`, allowed])
for (const sign of ['\u0007', '\u202e', '\u2066', '\u200f', '\u061c']) {
  const shown = `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`
  aliasFaults.push([aliasRow('20', `Else${sign}where`), 'alias', `"Else${shown}where"`, plain])
}

const wrongChange = (fields: TableRow): TableRow => ({ ...changeRow('10049915', '10040915'), ...fields })
const twice = '"10049913", which is that of changes, row 2'
const changeFaults: Faulty[] = [
  [wrongChange({ old_code: '0' }), 'old_code', '"0"', code],
  [wrongChange({ old_code: '10049913' }), 'old_code', twice, 'unique'],
  [wrongChange({ new_code: '10040999' }), 'new_code', '"10040999"', place],
  [wrongChange({ level: 'upazila' }), 'level', '"upazila"', 'union, as 10040915 is'],
  [wrongChange({ date: '25.4.2012' }), 'date', '"25.4.2012"', 'a date as YYYY-MM-DD, YYYY-MM or YYYY'],
  [wrongChange({ in_table: 'Yes' }), 'in_table', '"Yes"', 'one of yes, no, name only'],
]
const taken = '"10040923", which is in the table of places'
const gone = 'a code that no place has any more'
changeFaults.push([wrongChange({ old_code: '10040923' }), 'old_code', taken, gone])

t.test('an alias or a change with a fault is named with its row, and nothing is written', async t => {
  const [firstAlias, firstChange] = [aliasRow('20', 'Chottogram'), changeRow('10049913', '10040913')]
  for (const [row, column, given, allowed] of aliasFaults)
    t.strictSame(await faultsOf(t, { aliases: [firstAlias, row] }), [
      `aliases, row 3, ${column}: must be ${allowed}, got ${given}`,
    ])
  for (const [row, column, given, allowed] of changeFaults)
    t.strictSame(await faultsOf(t, { changes: [firstChange, row] }), [
      `changes, row 3, ${column}: must be ${allowed}, got ${given}`,
    ])
})

t.test('an invalid alias or former id in a snapshot is refused when it is loaded', async t => {
  const { path } = await build(t)
  const text = readFileSync(path, 'utf8')
  const faultsAfter = (fields: Record<string, unknown>, at = 3) => {
    const file = JSON.parse(text)
    Object.assign(file.locations[at], fields)
    return inspectSnapshot(JSON.stringify(file)).faults.map(faultLine)
  }
  const it = 'locations[3] (id 10040913)'
  for (const [given, fault] of [
    [['A\u202eb'], `must be ${plain}, got "A\\u202eb"`],
    [['One', 'Two', 'One'], 'must be unique, got "One", twice'],
    [['One Two', 'one-two'], 'must be unique, got "one-two", twice'],
  ] as const)
    t.strictSame(faultsAfter({ aliases: given }), [`${it}, aliases: ${fault}`])
  for (const aliases of [[], 'One', {}, [7], [null]])
    t.match(faultsAfter({ aliases }), [/^locations\[3\] \(id 10040913\), aliases: must be /])
  const wrongIds = [[], '10', [null], ['10'], [{}], [{ id: 10 }], [{ id: '9', until: 'then' }]]
  for (const former_ids of [...wrongIds, [{ id: '9', of: '' }]])
    t.match(faultsAfter({ former_ids }), [/^locations\[3\] \(id 10040913\), former_ids: must be /])

  const own = 'must be an id that no other place has or had'
  t.strictSame(faultsAfter({ former_ids: [{ id: '20' }] }), [
    `${it}, former_ids: ${own}, got "20", the id of locations[6] (id 20)`,
  ])
  t.strictSame(faultsAfter({ former_ids: [{ id: '10040913' }] }), [
    `${it}, former_ids: must be another id than its own, got "10040913"`,
  ])
  t.strictSame(faultsAfter({ former_ids: [{ id: '10049913' }] }, 4), [
    `locations[4] (id 10040915), former_ids: ${own}, got "10049913", the id of ${it}`,
  ])
  writeFileSync(path, text.replace('"Chittagong"', '"Chittagang"'))
  await t.rejects(readSnapshot(path), /sha256/, 'an alias is part of the checksum')
})
