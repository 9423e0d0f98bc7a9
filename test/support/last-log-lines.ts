// A process with the product's log in a file, which ends with lines that are gathered and not written yet:
// `node last-log-lines.ts <file>`.

import { openLog } from '../../src/telemetry/log.ts'

const { lines } = openLog('info', process.argv[2])
for (let number = 0; number < 500; number++)
  lines.end(Buffer.from(`{"number":${number},"text":"${'x'.repeat(100)}"}\n`))
