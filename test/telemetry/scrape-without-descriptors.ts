// A process that is scraped when it has no descriptor left, and again when it has, and prints how each scrape ended. For
// metrics.test.ts.

import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'
import { systemClock } from '../../src/common/clock.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'

/** How each ended: `whole`, or why it failed. */
export type Scrapes = readonly [first: string, second: string]

const metrics = createMetrics({ clock: systemClock, store: 'embedded' })
const scrape = (): Promise<string> =>
  metrics.exposition().then(
    text => (text.includes('process_cpu_seconds_total') ? 'whole' : text),
    error => `${error.code ?? error}`,
  )
const held: number[] = []
try {
  for (;;) held.push(openSync(devNull, 'r'))
} catch {}
const first = await scrape()
for (const fd of held) closeSync(fd)
const scrapes: Scrapes = [first, await scrape()]
process.stdout.write(JSON.stringify(scrapes))
