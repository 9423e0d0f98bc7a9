// Hours of traffic with faults: `npm run bench:soak`.

import { writeSection } from './report.ts'
import { runBench } from './run-rows.ts'
import { soak } from './soak/soak.ts'

await runBench({
  name: 'bench:soak',
  summary: 'Serves the mix for hours while things fail',
  page: 'docs/performance.md',
  rows: [soak],
  settings: {
    minutes: { help: 'how long', usual: 120 },
    rate: { help: 'requests a second to each gateway', usual: 2_000 },
  },
  write: ran =>
    writeSection(
      'bench:soak',
      {
        title: 'Hours of traffic',
        intro: 'What gateways hold, and how late they answer, in hours of the mix with faults.',
        howToRead:
          'Memory, handles and descriptors are those of the process by its own metrics; the store is `used_memory` of Redis, or the files of the embedded store.',
        doesNotProve: [
          'Hours, not weeks: a leak of less than a MiB in an hour does not show.',
          'Callers, both gateways, Redis and the provider share the cores of one machine, so times are upper bounds.',
        ],
      },
      ran,
    ),
})
