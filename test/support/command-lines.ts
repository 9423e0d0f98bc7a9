// Runs many command lines in one process, one after the other: `node command-lines.ts <file>`, a JSON list of them. The
// output of each ends with NUL on both streams, followed by the exit code on standard output.

import { readFileSync } from 'node:fs'
import { run } from '../../src/cli/program.ts'
import { systemClock } from '../../src/clock.ts'

const surroundings = { env: process.env, clock: systemClock }
for (const args of JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as string[][]) {
  const code = await run(args, surroundings)
  process.stdout.write(`\0${code}\0`)
  process.stderr.write('\0')
}
