// The texts of the dashboard: both languages have each of them, with the same values in it; and what the page itself names
// is there.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isTextName, textsIn } from '../../../dashboard/page/texts.js'

const folder = join(import.meta.dirname, '../../../dashboard/page')
const page = readFileSync(join(folder, 'index.html'), 'utf8')
const source = readFileSync(join(folder, 'texts.js'), 'utf8')

t.test('each text has the same values in both languages', t => {
  const en = textsIn('en')
  const bn = textsIn('bn')
  const names = [...source.matchAll(/^ {2}'?([\w-]+)'?:/gm)].map(([, name]) => name ?? '')
  t.ok(names.length > 200)
  for (const name of new Set(names)) {
    if (!isTextName(name)) {
      t.fail(`${name} is not a text`)
      continue
    }
    const values = ['⟨0⟩', '⟨1⟩', '⟨2⟩']
    const used = (text: string) => [...text.matchAll(/⟨\d⟩/g)].map(([value]) => value).sort()
    t.strictSame(used(bn(name, ...values)), used(en(name, ...values)), name)
    if (!/Language/.test(name)) t.notMatch(bn(name).replace('ops.token', ''), /[A-Za-z]/, name)
  }
  t.end()
})

t.test('the page names texts that there are', t => {
  const names = [...page.matchAll(/data-(?:text|label|placeholder|title)="([^"]+)"/g)].map(
    ([, name]) => name ?? '',
  )
  t.ok(names.length > 40)
  for (const name of names) t.ok(isTextName(name), name)
  t.end()
})
