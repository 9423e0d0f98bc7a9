// Without this, a rule for places could stop refusing what it is for.

import t from 'tap'
import { check, faultLine } from '../../src/catalogue/check.ts'
import { snapshotNaming } from '../../src/catalogue/location-schema.ts'
import { parseTable } from '../../tools/catalogue/table.ts'
import { bounds, sampleRows, type TableRow, tableText } from './sample-places.ts'

const faultsOf = (rows: readonly TableRow[]) => {
  const table = parseTable(tableText(rows))
  return [...table.faults, ...check(table.rows, bounds)]
}

/** The faults after changing fields of one row; rows are counted from 0, without the header. */
const spoilt = (at: number, fields: TableRow): string[] =>
  faultsOf(sampleRows().map((row, index) => (index === at ? { ...row, ...fields } : row))).map(faultLine)

const upazila = 3
const id = 'decimal digits without a leading zero, 15 at most'
const name = 'a name of at least one letter'
const plain = 'text without control characters'
const web = 'an http or https address or none'
const basis = 'a word of a-z, 0-9 and -'
const district = 'the id of its district, in the same set'
const nfc = 'its usual spelling in Unicode NFC,'

// What is given, as the message shows it, is the value itself as JSON unless a row says otherwise.
const cases: [row: number, field: string, value: string, allowed: string, given?: string][] = [
  [upazila, 'level', 'village', 'one of division, district, upazila, union'],
  [upazila, 'parent_bbs_code', '1099', district, '"1099", which no row has as its id'],
  [upazila, 'parent_bbs_code', '10', district, '"10", which is of level division'],
  [upazila, 'parent_bbs_code', '100409', district, '"100409", which is of level upazila'],
  [upazila, 'parent_bbs_code', '', 'the id of its district', 'null'],
  [0, 'parent_bbs_code', '10', 'none (a division has no parent)'],
  [0, 'bbs_code', '020', id],
  [6, 'bbs_code', '100409a', id],
  [6, 'bbs_code', '1004099999999999', id],
  [5, 'bbs_code', '10040915', 'unique', '"10040915", the id of row 6'],
  [4, 'bbs_code', '20040915', 'an id that begins with the id of its parent, "100409"'],
  [upazila, 'latitude', '27.0001', 'a number from 20 to 27', '27.0001'],
  [upazila, 'longitude', '87.4999', 'a number from 87.5 to 93', '87.4999'],
  [upazila, 'latitude', '2.2e1', 'a number from 20 to 27'],
  [upazila, 'latitude', '', 'a number from 20 to 27'],
  [upazila, 'population', '12.5', 'a whole number, 0 or more', '12.5'],
  [upazila, 'population', '-1', 'a whole number, 0 or more', '-1'],
  [upazila, 'area_sq_km', '-0.5', 'a number, 0 or more', '-0.5'],
  [upazila, 'area_sq_km', 'wide', 'a number, 0 or more'],
  [upazila, 'name_en', '', name],
  [upazila, 'name_bn', ' ', name],
  [upazila, 'name_en', 'Am\ttali', plain],
  [upazila, 'name_en', 'Am\ntali', plain],
  [upazila, 'name_en', 'Am\u202etali', plain, '"Am\\u202etali"'],
  [upazila, 'name_bn', 'আম\u061cতলী', plain, '"আম\\u061cতলী"'],
  [upazila, 'website', 'https://x.bd/\u202egpj', plain, '"https://x.bd/\\u202egpj"'],
  [upazila, 'name_bn', 'আমতলী\u00a0', 'text without blanks at either end'],
  [upazila, 'slug_en', 'Amtali Sadar', 'at least one of a-z, 0-9 and -'],
  [upazila, 'website', 'ftp://amtali.example', web],
  [upazila, 'website', 'https://', web],
  [upazila, 'population_basis', 'a guess', basis],
  [upazila, 'coordinates_basis', '', basis],
  [upazila, 'name_bn_basis', 'List', basis],
]
const misspelt: [field: string, value: string, part: string, right: string][] = [
  ['name_bn', 'হলদি\u09df\u09be', 'U+09DF U+09BE', 'U+09AF U+09BC U+09BE'],
  ['name_bn', '\u0985\u09beমতলী', 'U+0985 U+09BE', 'U+0986'],
  ['name_bn', 'চি\u09a4\u09cd\u200dলা', 'U+09A4 U+09CD U+200D', 'U+09CE'],
  ['name_bn', 'গ\u09be\u09c7পাল', 'U+0997 U+09BE U+09C7', 'U+0997 U+09CB'],
  ['name_bn', 'দু:খিতা', 'U+09A6 U+09C1 U+003A', 'U+09A6 U+09C1 U+0983'],
  ['name_en', 'Cafe\u0301', 'U+0065 U+0301', 'U+00E9'],
]
for (const [field, value, part, right] of misspelt)
  cases.push([upazila, field, value, `${nfc} ${right}`, `"${value}", with ${part} in it`])

t.test('a value that a rule refuses is one fault, with row, column and what is allowed', async t => {
  t.strictSame(faultsOf(sampleRows()), [], 'the sample has no fault')
  for (const [row, field, value, allowed, given = JSON.stringify(value)] of cases)
    t.strictSame(
      spoilt(row, { [field]: value }),
      [`row ${row + 2}, ${field}: must be ${allowed}, got ${given}`],
      `${field} ${value}`,
    )
})

t.test('a value that breaks two rules is two faults', async t => {
  t.match(spoilt(upazila, { parent_bbs_code: 'x4' }), [
    'row 5, parent_bbs_code: must be the id of a place (decimal digits) or none, got "x4"',
    /^row 5, parent_bbs_code: must be .*, got "x4", which no row has/,
  ])
  t.match(spoilt(upazila, { slug_en: 'cafe\u0301' }), [
    'row 5, slug_en: must be at least one of',
    /^row 5, slug_en: must be .*, got "cafe\u0301", with U\+0065 U\+0301/,
  ])
})

t.test('what is at the edge of a rule has no fault', async t => {
  t.strictSame(spoilt(0, { latitude: '20.0', longitude: '93' }), [])
  t.strictSame(spoilt(0, { latitude: '27', longitude: '87.5' }), [])
  t.strictSame(spoilt(6, { bbs_code: '1004099' }), [], 'an id has any length')
  t.strictSame(spoilt(upazila, { website: '' }), [])
})

t.test('one bad field hides no other fault', async t => {
  const rows = sampleRows()
  const wrong = { latitude: 'north', population: '1.5', name_en: ' Barishal', website: 'none' }
  Object.assign(rows[1] ?? {}, wrong)
  Object.assign(rows[6] ?? {}, { area_sq_km: '', slug_en: 'A' })
  const named = faultsOf(rows).map(({ row, column }) => `${row} ${column}`)
  t.strictSame(named, [
    ...['name_en', 'latitude', 'population', 'website'].map(column => `row 3 ${column}`),
    ...['row 8 slug_en', 'row 8 area_sq_km'],
  ])
})

t.test('a field of the wrong type, a missing and an unknown key are faults of a location', async t => {
  const fields = {
    ...{ id: 10, type: 'division', parent_id: null, name_en: 'Barishal', name_bn: null },
    ...{ latitude: '22.7', longitude: 90.37, area_sq_km: 1, population: true },
    ...{ population_basis: 'census-2011', coordinates_basis: 'seat', name_bn_basis: 'list' },
    ...{ website: undefined, published: 'no', colour: 'green' },
  }
  const faults = check([{ row: 'locations[0] (id 10)', naming: snapshotNaming, fields }], bounds)
  const messages = faults.map(({ column, message }) => `${column}: ${message.split(', got ')[1] ?? message}`)
  t.strictSame(messages, [
    'colour: there is no such column',
    'id: 10',
    'name_bn: null',
    'slug_en: must have a value',
    'latitude: "22.7"',
    'population: true',
    'website: must have a value',
    'published: "no"',
  ])
})
