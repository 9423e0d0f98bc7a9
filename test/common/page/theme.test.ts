// Without it pages could drift apart in colours and forms.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '../../..')
const namedIn = (file: string): string[] =>
  [...readFileSync(join(root, file), 'utf8').matchAll(/^ +(--[\w-]+): (?:light-dark|color-mix|#)/gm)].map(
    ([, name = '']) => name,
  )

t.test('each colour has one definition, in the theme', async t => {
  const theme = namedIn('dashboard/house.css')
  t.ok(theme.length > 30, `${theme.length} names`)
  // On paper the ground has a second one.
  t.strictSame(
    theme.filter((name, at) => theme.indexOf(name) !== at),
    ['--ground'],
  )
  const all = globSync('{dashboard,tools}/**/*.css', { cwd: root })
  const sheets = all.filter(file => file !== 'dashboard/house.css')
  t.equal(sheets.length, 4)
  for (const sheet of sheets)
    t.strictSame(
      namedIn(sheet).filter(name => theme.includes(name)),
      [],
      sheet,
    )
})
