// A process that logs a megabyte at once, says so on standard error, and stops. A test that reads its standard output only then sees
// whether the log is complete.

import { setTimeout as pause } from 'node:timers/promises'
import { openLog } from '../../src/telemetry/log.ts'

// The listener makes standard output non-blocking, as in the product.
process.stdout.on('error', () => {})
const { log, lines, flush } = openLog('info')
for (let number = 0; number < 10_000; number++)
  lines.end(Buffer.from(`{"number":${number},"text":"${'x'.repeat(100)}"}\n`))
log.info('all is said')
// By then a write waits for the reader.
await pause(50)
process.stderr.write('all is given')
await flush()
