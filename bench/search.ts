// The time of a search for places: `node bench/search.ts`. One catalogue in this process, without HTTP, every query many
// times; the median of the queries' medians is compared with the bar, and the slowest query is shown beside it.

import { parseArgs } from 'node:util'
import { openCatalogue } from '../src/catalogue/live-catalogue.ts'
import { catalogueFile } from '../test/scenarios/set-up.ts'

const barUs = 50
const rounds = 500

const usage = `Usage: node bench/search.ts [options]

Searches the names of all places, in both scripts, against a bar of ${barUs} µs.

  --json  the figures as JSON
  --help  this text
`

/** Short and long, both scripts and encodings, common, rare and absent, and with other spellings. */
const queries = [
  ...[
    'a',
    'p',
    'q',
    'ur',
    'zz',
    'pur',
    'xyz',
    'para',
    'char',
    'dhaka',
    'nagar',
    'bazar',
    'gopalpur',
    'sonapur',
  ],
  ...['uttar dakshin', 'a name that is nowhere', 'Dh\u0101k\u0101', '  NORTH   char '],
  ...[
    'া',
    'ক',
    'ি',
    'পুর',
    'চর',
    'রাজ',
    'ঢাকা',
    'গোপালপুর',
    'সোনাপুর',
    'কখগঘ',
    'উত্তর দক্ষিণ',
    '\u09ac\u09dc',
    '\u09ac\u09a1\u09bc',
  ],
]

const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

const { values: given } = parseArgs({ options: { json: { type: 'boolean' }, help: { type: 'boolean' } } })
if (given.help) process.stdout.write(usage)
else {
  const live = await openCatalogue({ path: catalogueFile, pollMs: 3_600_000 })
  const catalogue = live.current
  live.close()
  const usOf = (q: string): number => {
    const started = performance.now()
    catalogue.list({ type: 'union', q, limit: 50, offset: 0 })
    return (performance.now() - started) * 1_000
  }
  const firstUs = usOf('dhaka')
  for (let round = 0; round < rounds; round++) queries.forEach(usOf)
  const medians = queries.map(q => ({ q, us: medianOf(Array.from({ length: rounds }, () => usOf(q))) }))
  const slowest = medians.toSorted((a, b) => b.us - a.us)[0]
  const medianUs = medianOf(medians.map(({ us }) => us))
  const figures = {
    node: process.version,
    places: catalogue.size,
    firstUs,
    medianUs,
    slowest,
    barUs,
    medians,
  }
  process.stdout.write(
    given.json
      ? `${JSON.stringify(figures)}\n`
      : `${[
          `Node ${process.version}, unions among ${catalogue.size} places, ${queries.length} queries, ${rounds} times each`,
          `median     ${medianUs.toFixed(1)} µs (bar: ${barUs} µs, ${medianUs < barUs ? 'met' : 'missed'})`,
          `slowest    ${slowest?.us.toFixed(1)} µs, for "${slowest?.q}"`,
          `the first  ${(firstUs / 1_000).toFixed(1)} ms, which folds the names`,
        ].join('\n')}\n`,
  )
}
