// Without it the tables of commands, metrics and endpoints could differ from the program; `npm run reference` renews them.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { pagesWithTables } from './reference-tables.ts'

t.test('the tables of commands and metrics are not stale', async t => {
  for (const [path, text] of Object.entries(await pagesWithTables(t))) {
    t.ok(text.split('\n| `').length > 35, `${path} has a row for each`)
    t.ok(
      readFileSync(join(import.meta.dirname, '../..', path), 'utf8') === text,
      `${path}; npm run reference`,
    )
  }
})

t.test('docs/api.md and the description give one order of the checks, and say what counts', async t => {
  const [page, text] = ['docs/api.md', 'docs/openapi.json'].map(path =>
    readFileSync(join(import.meta.dirname, '../..', path), 'utf8'),
  )
  const [, order = ''] = /^(Checks are made in this order: .*?\.)$/m.exec(page ?? '') ?? []
  const { info, components } = JSON.parse(text ?? '')
  t.ok(order !== '' && info.description.includes(order), order)
  for (const [name, status] of [
    ['Unauthorized', 401],
    ['Forbidden', 403],
    ['QuotaExhausted', 429],
  ] as const) {
    t.match(info.description, new RegExp(`${status}.* do not count`))
    t.match(components.responses[name].description, /Does not count\.$/, name)
  }
})

t.test('docs/api.md has the endpoints and the parameters of the description, and no others', async t => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/api.md'), 'utf8')
  const { paths } = JSON.parse(readFileSync(join(import.meta.dirname, '../../docs/openapi.json'), 'utf8'))
  const listed = [...page.matchAll(/^\| `GET (\/api\/v1\/\S+)` \|/gm)].map(([, path = '']) => path)
  t.strictSame(listed.sort(), Object.keys(paths).sort())
  const [, rows = ''] = /^\| Parameter \|.*\n\|---.*\n((?:\|.*\n)+)/m.exec(page) ?? []
  const named = [...rows.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, cell = '']) => cell.match(/\w+/g) ?? [])
  const described = Object.values<{ get: { parameters: { name: string; in: string }[] } }>(paths).flatMap(
    ({ get }) => get.parameters.flatMap(one => (one.in === 'header' ? [] : one.name)),
  )
  t.strictSame([...new Set(named)].sort(), [...new Set(described)].sort())
})
