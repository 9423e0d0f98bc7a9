// The tables of commands and metrics are those that the program gives today; `npm run reference` renews them.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { pagesWithTables } from '../support/reference-tables.ts'

t.test('the tables of commands and metrics are not stale', async t => {
  for (const [path, text] of Object.entries(await pagesWithTables(t))) {
    t.ok(text.split('\n| `').length > 35, `${path} has a row for each`)
    t.ok(
      readFileSync(join(import.meta.dirname, '../..', path), 'utf8') === text,
      `${path}; npm run reference`,
    )
  }
})
