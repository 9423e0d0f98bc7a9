// The process: hands the command line, the environment and the clock to the commands, and ends with their exit code.
// `bin/abohawa` starts it as it is meant to run.

import { run } from './cli/program.ts'
import { systemClock } from './clock.ts'

// A reader that closes the pipe early, such as `head`, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  process.stderr.write(`abohawa: standard output can't be written: ${error.message}\n`)
  process.exit(1)
})

process.exitCode = await run(process.argv.slice(2), { env: process.env, clock: systemClock })
