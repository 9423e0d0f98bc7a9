// Every rule for a place, each broken once in an otherwise valid table.

import t from 'tap'
import { check, faultLine } from '../../src/catalogue/check.ts'
import { snapshotNaming } from '../../src/catalogue/location-schema.ts'
import { parseTable } from '../../src/catalogue/table.ts'
import { bounds, sampleRows, type TableRow, tableText } from './sample-places.ts'

const faultsOf = (rows: readonly TableRow[]) => {
  const table = parseTable(tableText(rows))
  return [...table.faults, ...check(table.rows, bounds)]
}

/** The faults after changing fields of one row; rows are counted from 0, without the header. */
const spoilt = (at: number, fields: TableRow): string[] =>
  faultsOf(sampleRows().map((row, index) => (index === at ? { ...row, ...fields } : row))).map(faultLine)

t.test('the sample has no fault', async t => {
  t.strictSame(faultsOf(sampleRows()), [])
})

const upazila = 3
const cases: [title: string, fields: TableRow, ...faults: string[]][] = [
  [
    'an unknown level is named with the four there are, and is one fault, not one more for every child',
    { level: 'village' },
    'row 5, level: given "village"; allowed is one of division, district, upazila, union',
  ],
  [
    'a missing parent is named',
    { parent_bbs_code: '1099' },
    'row 5, parent_bbs_code: given "1099", which no row has as its id; allowed is the id of its district, in the same set',
  ],
  [
    'a parent of the wrong level is named with its level',
    { parent_bbs_code: '10' },
    'row 5, parent_bbs_code: given "10", which is of level division; allowed is the id of its district, in the same set',
  ],
  [
    'every level but the first has a parent',
    { parent_bbs_code: '' },
    'row 5, parent_bbs_code: given null; allowed is the id of its district, for every upazila has a parent',
  ],
  [
    'a parent must be an id',
    { parent_bbs_code: 'x4' },
    'row 5, parent_bbs_code: given "x4"; allowed is the id of a place (decimal digits) or none',
    'row 5, parent_bbs_code: given "x4", which no row has',
  ],
  [
    'a latitude outside the box is refused with the box',
    { latitude: '27.0001' },
    'row 5, latitude: given 27.0001; allowed is a number from 20 to 27',
  ],
  [
    'a longitude outside the box is refused with the box',
    { longitude: '87.4999' },
    'row 5, longitude: given 87.4999; allowed is a number from 87.5 to 93',
  ],
  [
    'a latitude must be a plain number',
    { latitude: '2.2e1' },
    'row 5, latitude: given "2.2e1"; allowed is a number from 20 to 27',
  ],
  [
    'an empty latitude is no number',
    { latitude: '' },
    'row 5, latitude: given ""; allowed is a number from 20 to 27',
  ],
  [
    'a population must be whole',
    { population: '12.5' },
    'row 5, population: given 12.5; allowed is a whole number, 0 or more',
  ],
  [
    'a population must not be negative',
    { population: '-1' },
    'row 5, population: given -1; allowed is a whole number, 0 or more',
  ],
  [
    'an area must not be negative',
    { area_sq_km: '-0.5' },
    'row 5, area_sq_km: given -0.5; allowed is a number, 0 or more',
  ],
  [
    'an area must be a number',
    { area_sq_km: 'wide' },
    'row 5, area_sq_km: given "wide"; allowed is a number, 0 or more',
  ],
  [
    'a name must not be empty',
    { name_en: '' },
    'row 5, name_en: given ""; allowed is a name of at least one letter',
  ],
  [
    'a name must not be blank',
    { name_bn: ' ' },
    'row 5, name_bn: given " "; allowed is a name of at least one letter',
  ],
  [
    'a name must not hold a tab',
    { name_en: 'Am\ttali' },
    'row 5, name_en: given "Am\\ttali"; allowed is text without control characters',
  ],
  [
    'a name must not hold a line break',
    { name_en: 'Am\ntali' },
    'row 5, name_en: given "Am\\ntali"; allowed is text without control characters',
  ],
  [
    'a name must not turn the direction of a line',
    { name_en: 'Am\u202etali' },
    'row 5, name_en: given "Am\\u202etali"; allowed is text without control characters',
  ],
  [
    'a name must not turn the direction of a line in Arabic either',
    { name_bn: 'আম\u061cতলী' },
    'row 5, name_bn: given "আম\\u061cতলী"; allowed is text without control characters',
  ],
  [
    'a website must not turn the direction of a line',
    { website: 'https://x.bd/\u202egpj' },
    'row 5, website: given "https://x.bd/\\u202egpj"; allowed is text without control characters',
  ],
  [
    'a name must not start or end with a blank',
    { name_bn: 'আমতলী\u00a0' },
    'row 5, name_bn: given "আমতলী\u00a0"; allowed is text without blanks at either end',
  ],
  [
    'a Bengali name must be in NFC, spelt out in code points',
    { name_bn: 'হলদি\u09df\u09be' },
    'row 5, name_bn: given "হলদি\u09df\u09be", with U+09DF U+09BE in it; allowed is its usual spelling in Unicode NFC, U+09AF U+09BC U+09BE',
  ],
  [
    'a Bengali letter must not be put together where it has a code point',
    { name_bn: '\u0985\u09beমতলী' },
    'row 5, name_bn: given "\u0985\u09beমতলী", with U+0985 U+09BE in it; allowed is its usual spelling in Unicode NFC, U+0986',
  ],
  [
    'khanda ta must be written as itself',
    { name_bn: 'চি\u09a4\u09cd\u200dলা' },
    'row 5, name_bn: given "চি\u09a4\u09cd\u200dলা", with U+09A4 U+09CD U+200D in it; allowed is its usual spelling in Unicode NFC, U+09CE',
  ],
  [
    'signs must be in their order',
    { name_bn: 'গ\u09be\u09c7পাল' },
    'row 5, name_bn: given "গ\u09be\u09c7পাল", with U+0997 U+09BE U+09C7 in it; allowed is its usual spelling in Unicode NFC, U+0997 U+09CB',
  ],
  [
    'a visarga must not be a colon',
    { name_bn: 'দু:খিতা' },
    'row 5, name_bn: given "দু:খিতা", with U+09A6 U+09C1 U+003A in it; allowed is its usual spelling in Unicode NFC, U+09A6 U+09C1 U+0983',
  ],
  [
    'an English name must be in NFC',
    { name_en: 'Cafe\u0301' },
    'row 5, name_en: given "Cafe\u0301", with U+0065 U+0301 in it; allowed is its usual spelling in Unicode NFC, U+00E9',
  ],
  [
    'a slug is lower-case ASCII',
    { slug_en: 'Amtali Sadar' },
    'row 5, slug_en: given "Amtali Sadar"; allowed is at least one of a-z, 0-9 and -',
  ],
  [
    'a slug not in NFC breaks both rules',
    { slug_en: 'cafe\u0301' },
    'row 5, slug_en: given "cafe\u0301"; allowed is at least one of',
    'row 5, slug_en: given "cafe\u0301", with U+0065 U+0301',
  ],
  [
    'a web site must be http or https',
    { website: 'ftp://amtali.example' },
    'row 5, website: given "ftp://amtali.example"; allowed is an http or https address or none',
  ],
  [
    'a web site must not turn the direction of a line',
    { website: 'https://amtali.example/\u202e' },
    'row 5, website: given "https://amtali.example/\\u202e"; allowed is text without control characters',
  ],
  [
    'a web site must be an address',
    { website: 'https://' },
    'row 5, website: given "https://"; allowed is an http or https address or none',
  ],
  [
    'a basis is a word',
    { population_basis: 'a guess', coordinates_basis: '', name_bn_basis: 'List' },
    'row 5, population_basis: given "a guess"; allowed is a word of a-z, 0-9 and -',
    'row 5, coordinates_basis: given ""',
    'row 5, name_bn_basis: given "List"',
  ],
]

for (const [title, fields, ...faults] of cases)
  t.test(title, async t => {
    const found = spoilt(upazila, fields)
    t.equal(found.length, faults.length, found.join('\n'))
    faults.forEach((fault, at) => {
      t.ok(found[at]?.startsWith(fault), `${found[at]} should start with ${fault}`)
    })
  })

t.test('a division has no parent', async t => {
  t.strictSame(spoilt(0, { parent_bbs_code: '10' }), [
    'row 2, parent_bbs_code: given "10"; allowed is none, for a division has no parent',
  ])
})

t.test('an id used twice is named at its later row, with the first', async t => {
  t.strictSame(spoilt(5, { bbs_code: '10040915' }), [
    'row 7, bbs_code: given "10040915", which is that of row 6; allowed is an id no other row has',
  ])
})

t.test('an id begins with the id of its parent', async t => {
  t.strictSame(spoilt(4, { bbs_code: '20040915' }), [
    'row 6, bbs_code: given "20040915"; allowed is an id that begins with "100409", that of its parent',
  ])
})

t.test('a place is not its own parent', async t => {
  t.match(spoilt(upazila, { parent_bbs_code: '100409' }), [
    'row 5, parent_bbs_code: given "100409", which is of level upazila; allowed is the id of its district',
  ])
})

t.test('an id is decimal digits of any length', async t => {
  t.match(spoilt(6, { bbs_code: '100409a' }), [
    /^row 8, bbs_code: given "100409a"; allowed is decimal digits/,
  ])
  t.strictSame(spoilt(6, { bbs_code: '1004099' }), [])
})

t.test('an id must survive as an integer: no leading zero, not too long', async t => {
  const leading = spoilt(0, { bbs_code: '020' })
  t.strictSame(leading, [
    'row 2, bbs_code: given "020"; allowed is decimal digits without a leading zero, 15 at most',
  ])
  t.match(spoilt(6, { bbs_code: '1004099999999999' }), [/15 at most/])
})

t.test('the edges of the box are inside', async t => {
  t.strictSame(spoilt(0, { latitude: '20.0', longitude: '93' }), [])
  t.strictSame(spoilt(0, { latitude: '27', longitude: '87.5' }), [])
})

t.test('an upazila without a web site has no fault', async t => {
  t.strictSame(spoilt(upazila, { website: '' }), [])
})

t.test('one bad field hides no other fault', async t => {
  const rows = sampleRows()
  Object.assign(rows[1] ?? {}, {
    latitude: 'north',
    population: '1.5',
    name_en: ' Barishal',
    website: 'none',
  })
  Object.assign(rows[6] ?? {}, { area_sq_km: '', slug_en: 'A' })
  t.strictSame(
    faultsOf(rows).map(({ row, column }) => `${row} ${column}`),
    [
      'row 3 name_en',
      'row 3 latitude',
      'row 3 population',
      'row 3 website',
      'row 8 slug_en',
      'row 8 area_sq_km',
    ],
  )
})

t.test('a field of the wrong type, a missing and an unknown key are faults of a location', async t => {
  const rows = [
    {
      row: 'locations[0] (id 10)',
      naming: snapshotNaming,
      fields: {
        id: 10,
        type: 'division',
        parent_id: null,
        name_en: 'Barishal',
        name_bn: null,
        latitude: '22.7',
        longitude: 90.37,
        area_sq_km: 1,
        population: true,
        population_basis: 'census-2011',
        coordinates_basis: 'seat',
        name_bn_basis: 'list',
        website: undefined,
        published: 'no',
        colour: 'green',
      },
    },
  ]
  t.strictSame(
    check(rows, bounds).map(({ column, message }) => `${column}: ${message.split(';')[0]}`),
    [
      'colour: given "green"',
      'id: given 10',
      'name_bn: given null',
      'slug_en: given nothing',
      'latitude: given "22.7"',
      'population: given true',
      'website: given nothing',
      'published: given "no"',
    ],
  )
})
