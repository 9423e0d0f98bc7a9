// The texts of the dashboard: what the page itself names is there.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isTextName } from '../../../dashboard/page/texts.js'

t.test('the page names texts that there are', t => {
  const page = readFileSync(join(import.meta.dirname, '../../../dashboard/page/index.html'), 'utf8')
  const names = [...page.matchAll(/data-(?:text|label|placeholder|title)="([^"]+)"/g)].map(
    ([, name]) => name ?? '',
  )
  t.ok(names.length > 40)
  for (const name of names) t.ok(isTextName(name), name)
  t.end()
})
