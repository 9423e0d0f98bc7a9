// Without it a page could be out of reach of the README, a link lead nowhere, or a path of the repository not exist.

import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..', '..')
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'samples/README.md',
  'tools/provider/README.md',
  ...globSync('docs/**/*.md', { cwd: root }),
]
const texts = new Map(pages.map(page => [page, readFileSync(join(root, page), 'utf8')]))
const textOf = (page: string): string => texts.get(page) ?? ''
const proseOf = (page: string): string => textOf(page).replaceAll(/^ *```.*?^ *```$/gms, '')

/** Anchors as GitHub makes them, the second of a name with a number. */
const anchorsOf = (page: string): Set<string> => {
  const anchors = new Set<string>()
  for (const [, heading = ''] of proseOf(page).matchAll(/^#+ (.*)$/gm)) {
    const name = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{M}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-')
    let anchor = name
    for (let i = 1; anchors.has(anchor); i += 1) anchor = `${name}-${i}`
    anchors.add(anchor)
  }
  return anchors
}

/** The relative links of a page: where to, from the root of the repository, and the anchor. */
const linksOf = (page: string): { to: string; anchor: string }[] =>
  [...proseOf(page).matchAll(/\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"/g)]
    .map(([, markdown, html]) => markdown ?? html ?? '')
    .filter(link => !/^[a-z]+:/.test(link))
    .map(link => {
      const [file = '', anchor = ''] = link.split('#')
      return { to: file === '' ? page : normalize(join(dirname(page), file)), anchor }
    })

t.test('every relative link and anchor leads somewhere', async t => {
  let links = 0
  for (const page of pages)
    for (const { to, anchor } of linksOf(page)) {
      links += 1
      t.ok(existsSync(join(root, to)), `${page} links to ${to}`)
      if (anchor && texts.has(to)) t.ok(anchorsOf(to).has(anchor), `${page} links to ${to}#${anchor}`)
    }
  t.ok(links > 200, `${links} links`)
})

t.test('every page can be reached from the README', async t => {
  const reached = new Set(['README.md'])
  for (const page of reached) for (const { to } of linksOf(page)) if (texts.has(to)) reached.add(to)
  const unreached = pages.filter(page => page.startsWith('docs/') && !reached.has(page))
  t.strictSame(unreached, [])
})

t.test('every page of docs leads back to the table of contents', async t => {
  const ends = pages.filter(page => page.startsWith('docs/') && page !== 'docs/README.md')
  t.ok(ends.length > 30, `${ends.length} pages`)
  t.strictSame(
    ends.filter(page => !linksOf(page).some(({ to }) => to === 'docs/README.md')),
    [],
  )
})

t.test('the indexes of folders name each of their pages', async t => {
  for (const [folder, index] of [
    ['docs/decisions', 'docs/decisions/README.md'],
    ['docs/operating', 'docs/README.md'],
  ] as const) {
    const listed = new Set(linksOf(index).map(({ to }) => to))
    const own = pages.filter(page => dirname(page) === folder && !page.endsWith('README.md'))
    const unlisted = own.filter(page => !listed.has(page))
    t.strictSame(unlisted, [], folder)
  }
})

const foldersIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .filter(entry => entry.isDirectory() && entry.name !== 'node_modules')
    .map(({ name }) => name)

// A page may leave out src/, and test/ with the end of the name: `api/api.ts`, `journeys/floods`.
const bases = ['.', 'src', 'test']
const firsts = new Set(bases.flatMap(foldersIn))

const exists = (path: string): boolean =>
  bases.some(base => {
    const at = join(base, path)
    if (/[*{]/.test(path)) return globSync(at, { cwd: root }).length > 0
    return existsSync(join(root, at)) || (base === 'test' && existsSync(join(root, `${at}.test.ts`)))
  })

/** What looks like a path of the repository, in the code of a page's text: `node bench/cache.ts` has one. */
const pathsIn = (page: string): string[] =>
  [...proseOf(page).matchAll(/`([^`\n]+)`/g)]
    .flatMap(([, code = '']) => code.split(/[\s,]+/))
    .filter(word => /^[\w.*{}-]+\/[\w./*{},-]*$/.test(word) && firsts.has(word.split('/', 1)[0] ?? ''))

t.test('every path of the repository that a page names exists', async t => {
  let paths = 0
  // The change log names files of former versions.
  for (const page of pages.filter(page => page !== 'CHANGELOG.md'))
    for (const path of pathsIn(page)) {
      paths += 1
      t.ok(exists(path), `${page} names ${path}`)
    }
  t.ok(paths > 150, `${paths} paths`)
})

t.test('every npm script that a page names exists', async t => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const named = pages.flatMap(page => [...textOf(page).matchAll(/npm run (?:-s )?([a-z][a-z:-]*)/g)])
  const missing = named.filter(([, script = '']) => !(script in scripts)).map(([text]) => text)
  t.ok(named.length > 20)
  t.strictSame(missing, [])
})

t.test('each row of a table with tests names some that exist', async t => {
  let rows = 0
  let named = 0
  for (const page of pages) {
    const tables = textOf(page).matchAll(/^\|[^\n]*\| tests? \|\n\|[- :|]+\|\n((?:\|[^\n]*\n)+)/gim)
    for (const [, body = ''] of tables)
      for (const row of body.trimEnd().split('\n')) {
        const cell = row.split('|').at(-2) ?? ''
        const names = [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
        rows += 1
        t.ok(names.length > 0 || /histories|none: /.test(cell), `${page}: ${row.slice(0, 80)}`)
        for (const name of names.filter(name => !name.startsWith('npm '))) {
          named += 1
          t.ok(exists(name), `${page} names ${name}`)
        }
      }
  }
  t.ok(rows > 100 && named > 180, `${rows} rows, ${named} tests`)
})
