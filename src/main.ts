#!/usr/bin/env -S node --max-semi-space-size=8 --no-allocation-site-pretenuring
// The process: hands the command line, the environment and the clock to the commands, and ends with their exit code.

import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { systemClock } from './clock.ts'

// What Node makes of the sources is kept from one start to the next, in a folder that whoever installed us owns: code
// is read back from there unasked, so a folder that all users of the machine share won't do. Where it can't be
// written, every start is like the first one. NODE_COMPILE_CACHE names another folder.
if (process.env.NODE_COMPILE_CACHE === undefined)
  enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/abohawa', import.meta.url)))

// A reader that has seen enough, such as `head`, is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

// Loaded here, because only what is loaded after the cache was opened is kept in it.
const { run } = await import('./cli/program.ts')
process.exitCode = await run(process.argv.slice(2), { env: process.env, clock: systemClock })
