// A slow reader of the log when the process stops: it still gets every line, complete and in order.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'

t.test('lines that wait for their reader at the end are neither cut nor reordered nor lost', async t => {
  const script = new URL('../support/slow-log-reader.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const closed = once(child, 'close')
  await pause(500)
  let text = ''
  child.stdout.setEncoding('utf8').on('data', piece => {
    text += piece
  })
  await closed
  const all = text.trimEnd().split('\n')
  t.strictSame(
    all.slice(0, -1).map(line => JSON.parse(line).number),
    Array.from({ length: 10_000 }, (_, i) => i),
  )
  t.match(JSON.parse(all.at(-1) ?? ''), { msg: 'all is said' })
})
