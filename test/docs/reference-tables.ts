// The tables of docs/operating/commands.md and metrics.md, made of the program: each command by its --help, each metric by a scrape.
// They stand between two markers; people write the rest of the pages. `npm run reference` writes them; a test compares them.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runShared } from '../support/process.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { inScope, type Teardown } from '../support/teardown.ts'

const marker = (name: string, end: 'begin' | 'end'): string => `<!-- ${name}: ${end} -->\n`
const code = (text: string): string => `\`${text}\``
const tableOf = (head: string, rows: readonly string[]): string =>
  `\n${head}\n${head.replaceAll(/[^|]+/g, '---')}\n${rows.join('\n')}\n\n`

/** The entries of a list in a help text: what is before the gap, and the lines of text behind it as one. */
const entriesIn = (help: string, heading: string): [name: string, text: string][] => {
  const [, list = ''] = new RegExp(`^${heading}:\\n((?: .*\\n)+)`, 'm').exec(help) ?? []
  return [...list.matchAll(/^ {2}(\S.*?)(?: {2,}(.*(?:\n {4,}.*)*))?$/gm)].map(([, name = '', text = '']) => [
    name,
    text.replaceAll(/\s+/g, ' ').trim(),
  ])
}

const rowOf = (words: readonly string[], help: string, text: string): string => {
  const [, usage = ''] = /^Usage: abohawa .*?((?:[<[](?!options|command)\S+ ?)*)$/m.exec(help) ?? []
  const command = code(['abohawa', ...words, usage.trim()].join(' ').trim())
  return `| ${command} | ${text} |`
}

/** A command and all below it that do something, in the order of the help. */
const rowsOf = async (words: readonly string[], text: string): Promise<string[]> => {
  const { stdout: help } = await runShared([...words, '--help'])
  const below = entriesIn(help, 'Commands').filter(([name]) => !name.startsWith('help '))
  const own = below.length === 0 || help.includes('[command] <') ? [rowOf(words, help, text)] : []
  for (const [name, text] of below)
    if (words.length < 2) own.push(...(await rowsOf([...words, name.split(' ')[0] ?? ''], text)))
  return own
}

const commandTable = async (): Promise<string> => tableOf('| Command | Does |', await rowsOf([], ''))

const shownValues = 6
// Their values differ from one build or place to the next; the page names those of `upstream` once.
const withoutValues = new Set(['version', 'checksum', 'upstream'])

const metricTable = async (t: Teardown): Promise<string> => {
  const limits = { PER_MINUTE: '600', PER_HOUR: '5000', PER_DAY: '10000' }
  const env = Object.fromEntries(
    Object.entries(limits).map(([name, value]) => [`ABOHAWA_PROVIDER__BUDGET__${name}`, value]),
  )
  // Of several upstreams, so that those series are there too.
  const fallbacks = { ABOHAWA_PROVIDER__FALLBACKS: '[{ baseUrl: "http://127.0.0.1:7" }]' }
  const gateway = await startGateway(t, {
    providerUrl: 'http://127.0.0.1:9',
    env: { ...env, ...fallbacks },
  })
  const { text } = await sendRequest(`${gateway.opsUrl}/metrics`)
  const rows = [...text.matchAll(/^# HELP ((?:abohawa|http_server)_\S+) (.*)$/gm)].map(
    ([, name = '', help = '']) => {
      const values = new Map<string, Set<string>>()
      for (const [, labels = ''] of text.matchAll(new RegExp(`^${name}(?:_count)?\\{(.*)\\}`, 'gm')))
        for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="([^"]*)"/g))
          values.set(label, (values.get(label) ?? new Set()).add(value))
      const listed = [...values]
        .filter(([label, { size }]) => size <= shownValues && !withoutValues.has(label))
        .filter(([, of]) => ![...of].every(value => help.includes(value)))
        .map(([label, of]) => ` ${code(label)}: ${[...of].map(code).join(', ')}.`)
      return `| ${code(name)} | ${[...values.keys()].map(code).join(', ')} | ${help}${listed.join('')} |`
    },
  )
  return tableOf('| Metric | Labels | Says |', rows)
}

/** The text of each page with its table as the program is now, by its path in the repository. */
export const pagesWithTables = async (t: Teardown): Promise<Readonly<Record<string, string>>> => {
  const tables = { commands: await commandTable(), metrics: await metricTable(t) }
  return Object.fromEntries(
    Object.entries(tables).map(([name, table]) => {
      const path = `docs/operating/${name}.md`
      const page = readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
      const [begin, end] = [marker(name, 'begin'), marker(name, 'end')]
      const [head, rest = ''] = page.split(begin)
      const tail = rest.split(end)[1]
      if (tail === undefined) throw new Error(`${path} has no ${begin.trim()} and ${end.trim()}`)
      return [path, `${head}${begin}${table}${end}${tail}`]
    }),
  )
}

if (import.meta.main) {
  const pages = await inScope(pagesWithTables)
  for (const [path, text] of Object.entries(pages))
    writeFileSync(join(import.meta.dirname, '../..', path), text)
}
