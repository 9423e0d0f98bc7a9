// A gateway's report of itself when the process has no descriptor left, and when it has: prints the memory of each. For
// instance-report.test.ts.

import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'
import { systemClock } from '../../src/common/clock.ts'
import { createSelfReport } from '../../src/operate/instance-report.ts'
import { createHistory } from '../../src/telemetry/history.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'

/** In bytes; null where it is not known. */
export type Memories = readonly [without: number | null, later: number | null]

const { totals } = createMetrics({ clock: systemClock, store: 'embedded' })
const self = createSelfReport({
  phase: () => 'ready',
  reload: { hash: () => 'a1b2c3d4e5f6' },
  outages: { open: () => [] },
  circuit: () => 'closed',
  history: createHistory(totals, systemClock, () => {}),
  clock: systemClock,
})
const held: number[] = []
try {
  for (;;) held.push(openSync(devNull, 'r'))
} catch {}
const without = self().memoryBytes
for (const fd of held) closeSync(fd)
const memories: Memories = [without, self().memoryBytes]
process.stdout.write(JSON.stringify(memories))
