// Without it a log could end without the line that says how many lines were dropped.

import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLogWriter } from '../../src/telemetry/log-writer.ts'

t.test('it is not idle before the line that says how many were dropped', async t => {
  // Several: in some the write would be faster than the look at the file.
  for (let i = 0; i < 8; i++) {
    const file = join(t.testdir(), 'lines.log')
    let dropped = 0
    const writer = createLogWriter(openSync(file, 'w'), {
      maxBytes: 16,
      endForMs: 2_000,
      onFailed: reason => t.fail(reason),
      onDropped: lines => {
        dropped += lines
      },
      onWritten: () => {
        if (dropped > 0) writer.write(Buffer.from(`${dropped} dropped\n`))
        dropped = 0
      },
    })
    writer.write(Buffer.from('one that is too long\n'))
    writer.write(Buffer.from('one\n'))
    await writer.idle()
    t.equal(readFileSync(file, 'utf8'), 'one\n1 dropped\n')
  }
})
