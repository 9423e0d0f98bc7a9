// A month of days on a clock that is moved: `npm run bench:month`.

import { writeSection } from './report.ts'
import { runBench } from './run-rows.ts'
import { month } from './soak/month.ts'

await runBench({
  name: 'bench:month',
  summary: 'Lets a fleet live through days on a clock that is moved',
  page: 'docs/performance.md',
  rows: [month],
  settings: { days: { help: 'how many', usual: 30 } },
  write: ran =>
    writeSection(
      'bench:month',
      {
        title: 'A month of days',
        intro: 'What a fleet holds at each midnight of a month, and what it admits in each day.',
        howToRead:
          'The heap is that of one process with gateways, provider and callers, after a collection of garbage.',
        doesNotProve: [
          'Few requests an hour: [hours of traffic](#hours-of-traffic) have the load.',
          'Redis does not know that the days pass, so that nothing in it expires; each day leaves its counts.',
        ],
      },
      ran,
    ),
})
