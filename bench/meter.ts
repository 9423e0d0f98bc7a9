// The meter of a fleet against its bars: `npm run bench:meter`.

import { commands, exactCluster, exactMany, exactOne } from './meter/exact.ts'
import { manyKeysEmbedded, millionKeys } from './meter/many-keys.ts'
import { midnightRow } from './meter/midnight.ts'
import { clusterFailover, redisFrozen, redisKilled, sentinelFailover } from './meter/outage.ts'
import { throughput } from './meter/throughput.ts'
import { wrongKeys } from './meter/wrong-keys.ts'
import { writeSection } from './report.ts'
import { runBench } from './run-rows.ts'

await runBench({
  name: 'bench:meter',
  summary: 'Measures keys and quotas of a fleet against their bars',
  page: 'docs/performance.md',
  rows: [
    exactOne,
    exactMany,
    exactCluster,
    commands,
    redisFrozen,
    redisKilled,
    sentinelFailover,
    clusterFailover,
    midnightRow,
    millionKeys,
    manyKeysEmbedded,
    wrongKeys,
    throughput,
  ],
  settings: {
    keys: { help: 'keys of the row million-keys; the embedded store gets a tenth', usual: 1_000_000 },
  },
  write: ran =>
    writeSection(
      'bench:meter',
      {
        title: 'Keys and quotas under load',
        intro: 'The exactness, cost and resilience of quotas over a fleet, measured against its bars.',
        howToRead: `Redis and the gateways are processes of their own on one machine, and the callers are one more. The admitted requests are
counted from the answers, and compared with the figures of \`abohawa keys usage\` afterwards.`,
        doesNotProve: [
          `Nothing here is throughput at its best: callers, gateways and Redis share two cores, so times are upper bounds that
  other work on the machine moves. Counts do not depend on that.`,
          'Networks that lose or delay packets between machines are not measured, only processes that stop, die and come back.',
        ],
      },
      ran,
    ),
})
