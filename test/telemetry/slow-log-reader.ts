// A process that logs a megabyte at once, says so on standard error, and stops. A test that reads its standard output only then sees
// whether the log is complete.

import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { openLog } from '../../src/telemetry/log.ts'

const { promise: isBehind, resolve } = Promise.withResolvers<void>()
const { writev } = fs
type Done = (error: NodeJS.ErrnoException | null, written: number) => void
const watched = (fd: number, lines: Buffer[], done: Done): void =>
  writev(fd, lines, (error, written) => {
    if (error?.code === 'EAGAIN') resolve()
    done(error, written)
  })
Object.assign(fs, { writev: watched })
syncBuiltinESMExports()

// The listener makes standard output non-blocking, as in the product.
process.stdout.on('error', () => {})
const { log, lines, flush } = openLog('info')
for (let number = 0; number < 10_000; number++)
  lines.end(Buffer.from(`{"number":${number},"text":"${'x'.repeat(100)}"}\n`))
log.info('all is said')
// A write has found its reader behind.
await isBehind
process.stderr.write('all is given')
await flush()
