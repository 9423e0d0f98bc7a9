// The process: hands the command line, the environment and the clock to the commands, and ends with their exit code.
// `bin/abohawa` starts it as it is meant to run.

import { holdSignals } from './command-line/interruption.ts'

const args = process.argv.slice(2)
// Before the rest is loaded, which takes seconds on a slow machine: such a process is told by signals to reload and to stop.
if (['serve', 'demo', 'provider'].includes(args.find(word => word !== '--') ?? '')) holdSignals()

const { run } = await import('./cli/program.ts')
const { watchOutputs } = await import('./command-line/standard-output.ts')
const { systemClock } = await import('./common/clock.ts')

watchOutputs()

process.exitCode = await run(args, { env: process.env, clock: systemClock })
