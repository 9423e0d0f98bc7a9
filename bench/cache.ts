// The cache of a fleet against its bars: `npm run bench:cache`.

import { allCold } from './cache/all-cold.ts'
import { badBodies } from './cache/bad-bodies.ts'
import { budgetDay } from './cache/budget-day.ts'
import { day } from './cache/day.ts'
import { dueTimes } from './cache/due-times.ts'
import { leaseHolderKilled, redisKilled, stampede } from './cache/fleet.ts'
import { form } from './cache/form.ts'
import { greedyKey } from './cache/greedy-key.ts'
import { growth } from './cache/growth.ts'
import { memory } from './cache/memory.ts'
import { outage } from './cache/outage.ts'
import { restart } from './cache/restart.ts'
import { writeSection } from './report.ts'
import type { Row } from './row.ts'
import { runBench } from './run-rows.ts'

const rows: readonly Row[] = [
  stampede,
  leaseHolderKilled,
  redisKilled,
  allCold,
  day,
  outage,
  badBodies,
  budgetDay,
  greedyKey,
  dueTimes,
  restart,
  memory,
  form,
  growth,
]

await runBench({
  name: 'bench:cache',
  summary: 'Measures the cache of a fleet against its bars',
  page: 'docs/performance.md',
  rows,
  write: ran =>
    writeSection(
      'bench:cache',
      {
        title: 'Capacity of the cache',
        intro: 'The cost, capacity and resilience of the cache of a fleet, measured against its bars.',
        howToRead: `Redis, the provider and, where processes matter, the gateways are processes of their own on one machine; the provider is
\`abohawa provider\`, and the requests it received are taken from its own counters. Where a day has to pass, the gateway runs in the
measuring process on a clock that is moved, and the provider's clock is moved with it; timeouts and waits pass in real time.`,
        doesNotProve: [
          `Nothing here is throughput: callers, gateways, provider and Redis share two cores, so times are upper bounds that other
  work on the machine moves, and a quiet machine does better. Counts do not depend on that.`,
          "The provider is simulated. It keeps the real one's protocol, weights and limits, not its network or its bad days.",
          'One Redis without replicas: a failover or a cluster that reshards is not measured.',
          `Days pass in steps of 15 minutes, so what happens between two steps is not seen. A fleet over a day is not measured either: the
  rows of a day run one gateway.`,
          'Memory is measured over minutes, not weeks; slow leaks would not show.',
        ],
      },
      ran,
    ),
})
