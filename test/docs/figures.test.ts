// Without it README could name figures that the pages of the benchmarks no longer have.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..', '..')
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8').replaceAll(/\s+/g, ' ')
const readme = textOf('README.md')

/** What a line of a benchmark's page measured. @throws Error when the page has no such line */
const measuredIn = (page: string, what: string): string => {
  const line = textOf(page)
    .split(' | ')
    .flatMap((cell, i, cells) => (cell.replace('| ', '') === what ? [cells[i + 2] ?? ''] : []))
  if (line[0] === undefined) throw new Error(`${page} has no line "${what}"`)
  return line[0]
}

const numberIn = (text: string, pattern: RegExp): number => {
  const [, found] = pattern.exec(text) ?? []
  if (found === undefined) throw new Error(`"${text}" has no ${pattern}`)
  return Number(found.replaceAll(',', ''))
}

const grouped = (value: number): string => value.toLocaleString('en-GB')

t.test('README names the weight that the page on performance shows, and what direct calls cost', t => {
  const what = 'a day of demand on 5,104 places (1,259 cells) by run: weight per cell'
  const day = measuredIn('docs/performance.md', what)
  const [weight, requests] = [numberIn(day, /\(([\d,]+) in all/), numberIn(day, /; ([\d,]+) requests/)]
  const each = numberIn(textOf('docs/performance.md'), /own shape \(30 variables, 7 days, weight ([\d.]+)\)/)
  t.match(readme, `a day of ${grouped(requests)} requests for all places`)
  t.match(readme, `It cost ${grouped(weight)} of the provider's weight units`)
  const times = Math.round((requests * each) / weight)
  t.match(readme, `that day would cost [${times} times as much]`)
  t.end()
})
