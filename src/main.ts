// The process: hands the command line, the environment and the clock to the commands, and ends with their exit code.
// `bin/abohawa` starts it as it is meant to run.

import { run } from './cli/program.ts'
import { watchStandardOutput } from './cli/standard-output.ts'
import { systemClock } from './clock.ts'

watchStandardOutput()

process.exitCode = await run(process.argv.slice(2), { env: process.env, clock: systemClock })
