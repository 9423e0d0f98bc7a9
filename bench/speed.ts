// The speed of the gateway against its bars: `npm run bench`. Every claim about speed in this project comes from it.

import { writePage } from './report.ts'
import { runBench } from './run-rows.ts'
import { hits } from './speed/hits.ts'

await runBench({
  name: 'bench',
  summary: 'Measures the speed of the gateway against its bars, some 10 minutes in all,',
  page: 'docs/performance.md',
  rows: [hits],
  settings: {
    rounds: { help: 'rounds of every row in turn', usual: 7 },
    seconds: { help: 'of load on a row in each round', usual: 4 },
  },
  write: ran =>
    writePage(
      'bench',
      {
        file: 'performance.md',
        title: 'Performance',
        intro: 'How fast cached weather is answered, beside others and against its bars.',
        howToRead: '',
        doesNotProve: [],
      },
      ran,
    ),
})
