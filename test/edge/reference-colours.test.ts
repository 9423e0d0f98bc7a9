// The pages for consumers and for operators look alike: a colour that both style sheets name is the same in both.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..', '..')
const coloursIn = (file: string): Map<string, string> =>
  new Map(
    [...readFileSync(join(root, file), 'utf8').matchAll(/^ {2}(--[\w-]+): (light-dark\(.*\));$/gm)].map(
      ([, name = '', value = '']) => [name, value],
    ),
  )

t.test('colours of one name are one colour', async t => {
  const dashboard = coloursIn('src/ops/dashboard/page/dashboard.css')
  const reference = coloursIn('src/edge/reference/page/reference.css')
  t.ok(reference.size > 5, `${reference.size} colours`)
  for (const [name, value] of reference) if (dashboard.has(name)) t.equal(value, dashboard.get(name), name)
})
