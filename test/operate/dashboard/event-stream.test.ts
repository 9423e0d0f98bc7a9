// The reader of event streams: events that come whole, in pieces, with comments, and with line ends of either kind.

import t from 'tap'
import { readEvents } from '../../../src/operate/dashboard/page/live.js'

const read = async (pieces: readonly Uint8Array[]): Promise<string[][]> => {
  const events: string[][] = []
  await readEvents(ReadableStream.from(pieces), (event, data) => events.push([event, data]))
  return events
}

const text =
  'retry: 3000\n\nevent: status\ndata: {"at":"…"}\n\n: alive\n\nevent: cells\r\ndata: [1,\r\ndata: 2]\r\n\r\ndata:ঢাকা\n\nevent: lost\ndata: cut off'

t.test('events are read however they are cut', async t => {
  const bytes = Buffer.from(text)
  const wanted = [
    ['status', '{"at":"…"}'],
    ['cells', '[1,\n2]'],
    ['message', 'ঢাকা'],
  ]
  t.strictSame(await read([bytes]), wanted)
  for (const size of [1, 2, 3, 7])
    t.strictSame(
      await read(
        Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
          bytes.subarray(i * size, (i + 1) * size),
        ),
      ),
      wanted,
      `in pieces of ${size} bytes`,
    )
})
