// A process with the product's log on its standard output: `node logging.ts <file>`. The JSON file lists text, which is
// written as access-log lines, and objects for the log. Tests see the output after all redaction.

import { readFileSync } from 'node:fs'
import { openLog } from '../../src/telemetry/log.ts'

const { log, lines, flush } = openLog('info')
for (const each of JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as (string | object)[])
  if (typeof each === 'string') lines.end(Buffer.from(`${each}\n`))
  else log.info(each, 'sample')
flush()
