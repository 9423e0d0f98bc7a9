// Without it a fault in a table would be reported at the wrong line, or not at all.

import t from 'tap'
import { check, faultLine } from '../../../src/catalogue/check.ts'
import { parseTable } from '../../../tools/catalogue/table.ts'
import { bounds, sampleRows, tableText } from '../../catalogue/sample-places.ts'

const text = tableText(sampleRows())
const faultsOf = (table: string): string[] => parseTable(table).faults.map(faultLine)
const withHeader = (change: (header: string) => string): string => text.replace(/^.*/u, change)

t.test('a row has the number of its line, also behind empty lines and line breaks in a field', async t => {
  t.strictSame(faultsOf(text), [])
  const [header, first, second, third] = text.split('\n')
  for (const end of ['\n', '\r\n']) {
    const broken = first?.replace('Chattogram', `"Chatto${end}gram"`)
    const { rows } = parseTable([header, '', broken, second, '', third].join(end))
    const numbers = rows.map(({ row }) => row)
    t.strictSame(numbers, ['row 3', 'row 5', 'row 7'], JSON.stringify(end))
  }
})

t.test('an unknown column is named, with the nearest if there is one, and that as missing', async t => {
  const faults = faultsOf(withHeader(header => header.replace('name_bn,', 'Name_BN,')))
  t.equal(faults.length, 2)
  t.match(faults, [
    /^row 1, Name_BN: must be one of bbs_code, .*, got "Name_BN" \(did you mean name_bn\?\)$/,
    /^row 1, name_bn: the header must have the column name_bn$/,
  ])
  const [unlike = ''] = faultsOf(withHeader(header => `${header},remarks of the editor`))
  t.match(unlike, /^row 1, remarks of the editor: must be one of/)
  t.notMatch(unlike, /did you mean/)
})

t.test('without a column of ids, the header alone is at fault and not every row', async t => {
  const { rows, faults } = parseTable(text.replace(',bbs_code', ',bbs_cod'))
  t.equal(faults.length, 2)
  t.strictSame(check(rows, bounds), [])
})

t.test('a column named twice, a row that is too long and a quote that never ends are faults', async t => {
  t.hasStrict(faultsOf(withHeader(header => `${header},level`)), [
    'row 1, level: must be unique, got "level", twice',
  ])
  t.match(faultsOf(`${text.trimEnd()},more\n`), [/^row 8, the row: must be 14 fields/])
  t.match(faultsOf(text.replace('Barguna', '"Barguna')), [/^row 4, the row: not CSV: a quotation mark/])
})

t.test('a table without rows, and an empty file, are faults', async t => {
  t.has(faultsOf(`${text.split('\n')[0]}\n`), ['row 2, the row: must be at least one place, got nothing'])
  t.equal(faultsOf('').length, 14 + 1)
})

t.test('fields become numbers, texts, flags or nothing', async t => {
  const [row] = sampleRows()
  const read = (published: string) =>
    parseTable(tableText([{ ...row, website: '', latitude: '22.50', longitude: '9O', published }])).rows[0]
      ?.fields
  t.has(read(''), { latitude: 22.5, longitude: '9O', website: null, parent_bbs_code: null, bbs_code: '20' })
  const flags = ['', 'true', 'false', 'TRUE', 'constructor'].map(field => read(field)?.published)
  t.strictSame(flags, [undefined, true, false, 'TRUE', 'constructor'])
})
