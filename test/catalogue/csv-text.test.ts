// Without this, exported CSV could run a formula in a spreadsheet, or read back differently.

import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import t from 'tap'
import { parseCsv } from '../../src/catalogue/csv.ts'
import { csvLine } from '../../src/catalogue/csv-text.ts'
import { keysCsv } from '../../src/cli/keys/key-table.ts'
import { anyText } from '../support/any-text.ts'

const columns = { known: ['text', 'number', 'more'], required: ['text', 'number', 'more'] }
const isFormula = (cell: string): boolean => /^[=+\-@\t\r]/.test(cell)
const parts = [...'=+-@\t\r\n\'",;\\ a১\u001b\ufeff\ud800', '\\u0041']
const fromParts = fc.array(fc.constantFrom(...parts), { maxLength: 12 }).map(all => all.join(''))
const texts = fc.oneof(anyText(), fromParts)

t.test('whatever the text, it comes back equal and is no formula', async () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(texts, fc.double({ noNaN: true }), texts), { maxLength: 5 }), given => {
      const rows = [['text', 'number', 'more'], ...given]
      const text = rows.map(csvLine).join('')
      for (const [first = '', , third = ''] of parse(text) as string[][])
        if (isFormula(first) || isFormula(third))
          throw new Error(`a formula: ${JSON.stringify([first, third])}`)
      const read = parseCsv(text, columns, line => `line ${line}`)
      if (read.faults.length > 0) throw new Error(`faults: ${JSON.stringify(read.faults)}`)
      const found = read.rows.map(({ fields }) => [fields.text, fields.number, fields.more])
      if (JSON.stringify(found) !== JSON.stringify(given.map(row => row.map(String))))
        throw new Error(`${JSON.stringify(given)} came back as ${JSON.stringify(found)}`)
    }),
    { numRuns: 2_000 },
  )
})

t.test('numbers stay numbers, and text that looks like one is text', async t => {
  const line = csvLine([-3.5, '-3.5', null, true, '=1+1', "'=x", 'a,"b'])
  t.equal(line, `-3.5,'-3.5,,true,'=1+1,''=x,"a,""b"\r\n`)
})

t.test('keys have no formula, whoever named them', async t => {
  const key = {
    ...{ id: 'key_1', externalId: '@SUM(A1)', subscriber: '=HYPERLINK("http://x")', subscriberId: 'sub_1' },
    ...{ tier: '+free', limit: 5, ownLimit: false, status: 'active', createdAt: '2026-11-21T00:00:00Z' },
    ...{ expiresAt: null, revokedAt: null, formerKeyUntil: null, lastUsedOn: null, usedToday: 0 },
  }
  for (const cell of (parse(keysCsv([key as never])) as string[][]).flat()) t.notOk(isFormula(cell), cell)
})
