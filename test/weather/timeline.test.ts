// Without it timelines could take more memory than the bound of the cache counts.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { bytesOf, type Timeline } from '../../src/weather/timeline.ts'
import { sampleTimeline } from './sample-timeline.ts'

t.test('the computed size of a timeline is its real size', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const taken = () => {
    for (let i = 0; i < 4; i++) collect()
    const { arrayBuffers, heapUsed } = process.memoryUsage()
    return arrayBuffers + heapUsed
  }
  const kept: unknown[] = new Array(2_000).fill(sampleTimeline())
  const before = taken()
  for (let i = 0; i < kept.length; i++) kept[i] = sampleTimeline({ quarterHours: 102, days: 10 })
  const each = (taken() - before) / kept.length
  const bytes = bytesOf(kept[0] as Timeline)
  t.ok(Math.abs(bytes - each) < bytes * 0.03, `${bytes} bytes said, ${each.toFixed(0)} taken`)
  // One buffer, no larger than its values.
  const { values } = kept[0] as Timeline
  t.equal(values.length, 102 * 15 + 240 * 11 + 10 * 4)
  t.equal(values.buffer.byteLength, values.length * 4)
})
