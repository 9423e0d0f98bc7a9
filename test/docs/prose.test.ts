// Without it pages could grow back into what must be read twice: long sentences and cells, and turns of phrase that stop a reader. The
// bars are shares, so that a long sentence may be right.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '../..')
const pages = globSync(['*.md', '{docs,samples,tools,deploy}/**/*.md'], { cwd: root })

const longSentence = 25
const longCell = 25
const turns =
  /\b(?:that of|those of|those that|the same of|as it stands|as they stand|at fault|of late|seldom|in place of|the former|the latter|of its own|of their own|whence|beforehand|likewise|asked for|whose it is|alike|aside|forth)\b/g

/** The text of a page without code blocks and comments. */
const textOf = (page: string): string =>
  readFileSync(join(root, page), 'utf8')
    .replaceAll(/```.*?```/gs, '')
    .replaceAll(/<!--.*?-->/gs, '')

const wordsIn = (text: string): number => (text.match(/[A-Za-z']+/g) ?? []).length

const cellsOf = (text: string): string[] =>
  text
    .split('\n')
    .filter(line => line.startsWith('|'))
    .flatMap(line => line.replace(/^\|/, '').replace(/\|$/, '').split('|'))

const sentencesOf = (text: string): string[] =>
  text
    .split('\n')
    .filter(line => !line.startsWith('|'))
    .map(line => (line.startsWith('#') ? '\n\n' : line))
    .join(' ')
    .split(/(?<=[.!?:])\s+(?=[A-Z*`])|\n\n/)
    .filter(sentence => wordsIn(sentence) >= 3)

t.test('sentences are short', async t => {
  const sentences = pages.flatMap(page => sentencesOf(textOf(page)))
  const long = sentences.filter(sentence => wordsIn(sentence) > longSentence)
  t.ok(sentences.length > 1_000, `${sentences.length} sentences`)
  t.ok(long.length / sentences.length <= 0.08, `${long.length} of ${sentences.length} are long`)
})

t.test('cells of tables are short', async t => {
  for (const page of pages) {
    const long = cellsOf(textOf(page)).filter(cell => cell.trim().split(/\s+/).length > longCell)
    t.strictSame(long, [], page)
  }
})

t.test('turns of phrase that must be read twice are rare', async t => {
  const found = pages.flatMap(page => textOf(page).toLowerCase().match(turns) ?? [])
  t.ok(found.length <= 60, `${found.length} turns`)
})

t.test('the pages stay short enough to be read', async t => {
  const words = pages.reduce(
    (sum, page) => sum + readFileSync(join(root, page), 'utf8').split(/\s+/).length,
    0,
  )
  t.ok(words <= 45_000, `${words} words`)
})
