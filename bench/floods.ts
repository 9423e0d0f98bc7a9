// `npm run bench:floods`: what a well-behaved consumer notices of floods. Writes docs/performance.md.

import { besideFloods } from './floods/beside.ts'
import { writeSection } from './report.ts'
import { runBench } from './run-rows.ts'

await runBench({
  name: 'bench:floods',
  summary: 'Floods a gateway in several ways and measures another consumer meanwhile',
  page: 'docs/performance.md',
  rows: [besideFloods],
  settings: {
    rounds: { help: 'pairs of a quiet and a flooded time for each flood', usual: 4 },
    seconds: { help: 'of each time', usual: 3 },
    rate: { help: 'requests a second of a flood', usual: 2_000 },
  },
  write: ran =>
    writeSection(
      'bench:floods',
      {
        title: 'Beside a flood',
        intro: 'How late a well-behaved consumer is answered while another client floods the same gateway.',
        howToRead:
          'Each figure is the median of the ratios of pairs: the p99 of a consumer while the flood goes on, of that right before it. Times count from the instant at which a request was due.',
        doesNotProve: [
          'The flood, the consumer, Redis and the provider share one core, the gateway has the other: part of what the consumer notices is this core.',
          'Other work on the machine: where the quiet p99 is far above 5 ms, a ratio says more of that work than of the flood.',
          'A flood of a whole machine or network: there, what stands in front of the gateway must limit it.',
        ],
      },
      ran,
    ),
})
