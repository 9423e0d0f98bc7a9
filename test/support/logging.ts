// A process with the product's log on its standard output: `node logging.ts <file>`, a JSON list of text for
// the lines of requests, as it is, and of objects for the log. So that what reaches the output is seen, after every net.

import { readFileSync } from 'node:fs'
import { openLog } from '../../src/ops/log.ts'

const { log, lines, flush } = openLog('info')
for (const each of JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as (string | object)[])
  if (typeof each === 'string') lines.write(`${each}\n`)
  else log.info(each, 'told')
flush()
