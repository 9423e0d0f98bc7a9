// A provider's zipped body: padding behind it, and the memory that it takes while it is unzipped.

import { Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { unzipped } from '../../src/provider/provider-call.ts'

t.test('a zipped body may be padded with zeros, in the chunk of its end or behind it', async t => {
  const [body, zeros] = [gzipSync('weather'), Buffer.alloc(512)]
  for (const chunks of [[body, zeros], [Buffer.concat([body, zeros])], [body, zeros, zeros]]) {
    let text = ''
    for await (const chunk of unzipped(Readable.from(chunks), 'gzip', 1e4))
      text += Buffer.from(chunk).toString()
    t.equal(text, 'weather')
  }
})

t.test('what bodies were unzipped to is collected with young objects', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (what: { type: 'minor' }) => void
  const text = Array.from({ length: 6_000 }, (_, i) => (Math.sin(i) * 100).toFixed(1)).join()
  const body = gzipSync(text)
  const bodies = 100
  const before = process.memoryUsage().arrayBuffers
  for (let i = 0; i < bodies; i++) {
    let read = 0
    for await (const chunk of unzipped(Readable.from([body]), 'gzip', 1e6)) read += chunk.length
    if (read !== text.length) t.equal(read, text.length)
    collect({ type: 'minor' })
  }
  const keptOfEach = (process.memoryUsage().arrayBuffers - before) / bodies
  // 64 KiB of each without it.
  t.ok(keptOfEach < 16_384, `${Math.round(keptOfEach)} bytes of each body are kept`)
})
