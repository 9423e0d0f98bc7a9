// The tables of aliases and changes: what a snapshot takes from them, how a gateway serves it, and every fault by row.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { checkFile } from '../../src/catalogue/build.ts'
import { createCatalogue } from '../../src/catalogue/catalogue.ts'
import { faultLine } from '../../src/catalogue/check.ts'
import { setPublished } from '../../src/catalogue/publication.ts'
import { inspectSnapshot, readSnapshot } from '../../src/catalogue/snapshot-reader.ts'
import { aliasRow, bounds, buildSample, changeRow, sampleRows, type TableRow } from './sample-places.ts'

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

const build = (test: Test, extras: { aliases?: TableRow[]; changes?: TableRow[] } = { aliases, changes }) =>
  buildSample(test.testdir(), sampleRows(), extras)

const faultsOf = async (test: Test, extras: { aliases?: TableRow[]; changes?: TableRow[] }) => {
  const { faults, path } = await build(test, extras)
  t.throws(() => readFileSync(path), { code: 'ENOENT' }, 'nothing was written')
  return faults.map(faultLine)
}

t.test('a build counts aliases and former ids, and rows in any order give the same bytes', async t => {
  const folder = t.testdir({ other: {} })
  const { path, ...report } = await buildSample(folder, sampleRows(), { aliases, changes })
  t.match(report, { faults: [], aliases: 4, formerIds: 2 })
  const other = await buildSample(join(folder, 'other'), sampleRows(), {
    aliases: aliases.toReversed(),
    changes: changes.toReversed(),
  })
  t.ok(readFileSync(other.path).equals(readFileSync(path)))
})

t.test(
  'a snapshot has the aliases, the most official first, and the former ids with their dates',
  async t => {
    const { locations } = await readSnapshot((await build(t)).path)
    const place = (id: string) => locations.find(location => location.id === id)
    t.strictSame(place('20')?.aliases, ['Chittagong', 'Chottogram'])
    t.strictSame(place('10040913')?.formerIds, [{ id: '10049913', until: '2012-04-25' }])
    t.strictSame(place('10040915')?.formerIds, [{ id: '10049915' }])
    t.strictSame([place('10')?.aliases, place('10')?.formerIds], [[], []])
    t.ok(Object.isFrozen(place('20')?.aliases) && Object.isFrozen(place('10040915')?.formerIds))
  },
)

t.test('a place found by an alias alone is listed with the first that matches, else without', async t => {
  const catalogue = createCatalogue(await readSnapshot((await build(t)).path))
  const found = (type: 'division' | 'union', q: string) => {
    const { results, matchedAliases, total } = catalogue.list({ type, q, limit: 9, offset: 0 })
    return { total, found: results.map(place => [place.id, matchedAliases.get(place)]) }
  }
  t.strictSame(found('division', 'chittagong'), { total: 1, found: [['20', 'Chittagong']] })
  t.strictSame(found('division', 'chottog'), { total: 1, found: [['20', 'Chottogram']] })
  t.strictSame(found('division', 'ch'), { total: 1, found: [['20', undefined]] })
  t.strictSame(found('union', 'আমতলি'), { total: 1, found: [['10040913', 'আমতলি']] })
  t.strictSame(found('division', 'chittagongchottogram').total, 0, 'never across two names')
})

t.test('a former id leads to a published place of its level and to no other', async t => {
  const { path } = await build(t)
  const catalogue = async () => createCatalogue(await readSnapshot(path))
  t.match((await catalogue()).successorOf('union', '10049913'), {
    location: { id: '10040913' },
    since: '2012-04-25',
  })
  t.equal((await catalogue()).successorOf('union', '10049915')?.since, undefined)
  t.equal((await catalogue()).successorOf('upazila', '10049913'), undefined)
  t.equal((await catalogue()).successorOf('union', '10040913'), undefined)
  t.equal((await catalogue()).successorOf('union', '__proto__'), undefined)
  await setPublished(path, '10040913', false)
  t.equal((await catalogue()).successorOf('union', '10049913'), undefined)
})

t.test('publishing and checking leave aliases and former ids as they are', async t => {
  const { path } = await build(t)
  const former = readFileSync(path, 'utf8')
  await setPublished(path, '20', false)
  t.match(await checkFile(path, async () => bounds), { faults: [] })
  await setPublished(path, '20', true)
  t.equal(readFileSync(path, 'utf8'), former)
})

t.test('a place whose id has changed stays unpublished', async t => {
  const folder = t.testdir()
  const before = sampleRows().map(row =>
    row.bbs_code === '10040913' ? { ...row, bbs_code: '10040999' } : row,
  )
  const { path } = await buildSample(folder, before)
  await setPublished(path, '10040999', false)
  const { keptUnpublished } = await buildSample(folder, sampleRows(), {
    changes: [changeRow('10040999', '10040913')],
  })
  t.strictSame(keptUnpublished, ['10040913'])
  t.equal((await readSnapshot(path)).locations.find(({ id }) => id === '10040913')?.published, false)
})

const aliasFaults: [title: string, row: TableRow, fault: string][] = [
  [
    'an unknown place',
    aliasRow('77', 'Elsewhere'),
    'aliases, row 3, bbs_code: given "77"; allowed is the code of a place in the table',
  ],
  [
    'no code at all',
    aliasRow('x', 'Elsewhere'),
    'aliases, row 3, bbs_code: given "x"; allowed is decimal digits without a leading zero, 15 at most',
  ],
  [
    'another language',
    aliasRow('20', 'Elsewhere', 'common', 'hi'),
    'aliases, row 3, language: given "hi"; allowed is one of en, bn',
  ],
  [
    'another kind',
    aliasRow('20', 'Elsewhere', 'nickname'),
    'aliases, row 3, kind: given "nickname"; allowed is one of former-official, common, transliteration',
  ],
  [
    'an empty name',
    aliasRow('20', ''),
    'aliases, row 3, alias: given ""; allowed is a name of at least one letter',
  ],
  [
    'a name not in NFC',
    aliasRow('20', 'Cafe\u0301'),
    'aliases, row 3, alias: given "Cafe\u0301", with U+0065 U+0301 in it; allowed is its usual spelling in Unicode NFC, U+00E9',
  ],
  [
    'Bengali that is spelled in pieces',
    aliasRow('20', 'ওপা\u09a1\u09bf\u09bc'),
    'aliases, row 3, alias: given "ওপা\u09a1\u09bf\u09bc", with U+09A1 U+09BF U+09BC in it; allowed is its usual spelling in Unicode NFC, U+09A1 U+09BC U+09BF',
  ],
  [
    'a control character',
    aliasRow('20', 'Else\u0007where'),
    'aliases, row 3, alias: given "Else\\u0007where"; allowed is text without control characters',
  ],
  ...['\u202e', '\u2066', '\u200f', '\u061c'].map((sign): [string, TableRow, string] => [
    `the sign of direction U+${sign.charCodeAt(0).toString(16)}`,
    aliasRow('20', `Else${sign}where`),
    `aliases, row 3, alias: given "Else\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}where"; allowed is text without control characters`,
  ]),
  [
    'the same again, as a search reads it',
    aliasRow('20', 'chotto-gram'),
    'aliases, row 3, alias: given "chotto-gram", which reads as that of aliases, row 2; allowed is each once',
  ],
  [
    'the name of the place',
    aliasRow('20', 'CHATTOGRAM'),
    'aliases, row 3, alias: given "CHATTOGRAM", which reads as the name of the place; allowed is another name',
  ],
]
for (const [title, row, fault] of aliasFaults)
  t.test(`an alias with a fault changes nothing: ${title}`, async t => {
    t.strictSame(await faultsOf(t, { aliases: [aliasRow('20', 'Chottogram'), row] }), [fault])
  })

const changeFaults: [title: string, row: TableRow, fault: string][] = [
  [
    'a former code that is no code',
    changeRow('0', '10040915'),
    'changes, row 3, old_code: given "0"; allowed is decimal digits without a leading zero, 15 at most',
  ],
  [
    'a former code that a place has',
    changeRow('10040923', '10040915'),
    'changes, row 3, old_code: given "10040923", which is in the table of places; allowed is a code that no place has any more',
  ],
  [
    'a new code that no place has',
    changeRow('10049915', '10040999'),
    'changes, row 3, new_code: given "10040999"; allowed is the code of a place in the table',
  ],
  [
    'another level',
    { ...changeRow('10049915', '10040915'), level: 'upazila' },
    'changes, row 3, level: given "upazila"; allowed is union, as 10040915 is',
  ],
  [
    'a date that is none',
    changeRow('10049915', '10040915', '25.4.2012'),
    'changes, row 3, date: given "25.4.2012"; allowed is a date as YYYY-MM-DD, YYYY-MM or YYYY',
  ],
  [
    'a word for in_table that is none',
    { ...changeRow('10049915', '10040915'), in_table: 'Yes' },
    'changes, row 3, in_table: given "Yes"; allowed is one of yes, no, name only',
  ],
  [
    'a former code given twice',
    changeRow('10049913', '10040915'),
    'changes, row 3, old_code: given "10049913", which is that of changes, row 2; allowed is each once',
  ],
]
for (const [title, row, fault] of changeFaults)
  t.test(`a change with a fault changes nothing: ${title}`, async t => {
    t.strictSame(await faultsOf(t, { changes: [changeRow('10049913', '10040913'), row] }), [fault])
  })

t.test('a missing column and an unknown column are named', async t => {
  const { kind: _, ...withoutKind } = aliasRow('20', 'Chottogram')
  t.strictSame(await faultsOf(t, { aliases: [withoutKind] }), [
    'aliases, row 1, kind: given nothing; allowed is a header with the column kind',
  ])
  t.match(await faultsOf(t, { changes: [{ ...changeRow('1', '2'), olds: '' }] }), [
    /^changes, row 1, olds: given "olds"; allowed is one of date, /,
  ])
})

t.test('an invalid alias or former id in a snapshot is refused when it is loaded', async t => {
  const { path } = await build(t)
  const text = readFileSync(path, 'utf8')
  const faultAfter = (
    change: (place: Record<string, unknown>, others: Record<string, unknown>[]) => void,
  ) => {
    const file = JSON.parse(text)
    change(file.locations[3], file.locations)
    return inspectSnapshot(JSON.stringify(file)).faults.map(faultLine)
  }
  const at = 'locations[3] (id 10040913)'
  t.strictSame(
    faultAfter(place => void Object.assign(place, { aliases: ['A\u202eb'] })),
    [`${at}, aliases: given "A\\u202eb"; allowed is text without control characters`],
  )
  t.strictSame(
    faultAfter(place => void Object.assign(place, { aliases: ['One', 'Two', 'One'] })),
    [`${at}, aliases: given "One"; allowed is each once`],
  )
  t.strictSame(
    faultAfter(place => void Object.assign(place, { aliases: ['One Two', 'one-two'] })),
    [`${at}, aliases: given "one-two"; allowed is each once`],
    'which reads as another',
  )
  for (const aliases of [[], 'One', {}, [7], [null]])
    t.match(
      faultAfter(place => void Object.assign(place, { aliases })),
      [/^locations\[3\] \(id 10040913\), aliases: given /],
    )
  for (const former of [
    [],
    '10',
    [null],
    ['10'],
    [{}],
    [{ id: 10 }],
    [{ id: '9', until: 'then' }],
    [{ id: '9', of: '' }],
  ])
    t.match(
      faultAfter(place => void Object.assign(place, { former_ids: former })),
      [/^locations\[3\] \(id 10040913\), former_ids: given /],
    )
  t.strictSame(
    faultAfter(place => void Object.assign(place, { former_ids: [{ id: '20' }] })),
    [
      `${at}, former_ids: given "20", which is that of locations[6] (id 20); allowed is an id that no other place has or had`,
    ],
  )
  t.strictSame(
    faultAfter(place => void Object.assign(place, { former_ids: [{ id: '10040913' }] })),
    [`${at}, former_ids: given "10040913"; allowed is another id than its own`],
  )
  t.strictSame(
    faultAfter((_place, others) => void Object.assign(others[4] ?? {}, { former_ids: [{ id: '10049913' }] })),
    [
      `locations[4] (id 10040915), former_ids: given "10049913", which is that of ${at}; allowed is an id that no other place has or had`,
    ],
  )
  writeFileSync(path, text.replace('"Chittagong"', '"Chittagang"'))
  await t.rejects(readSnapshot(path), /sha256/, 'an alias is part of the checksum')
})

t.test('a snapshot without aliases and former ids, as earlier versions wrote it, loads', async t => {
  const { path } = await build(t, {})
  const text = readFileSync(path, 'utf8')
  t.notMatch(text, /aliases|former_ids/)
  const catalogue = createCatalogue(await readSnapshot(path))
  t.match(catalogue.list({ type: 'division', q: 'chatto', limit: 1, offset: 0 }), { total: 1 })
})
