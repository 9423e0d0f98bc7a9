// Without it a repeated failure could flood the log.

import t from 'tap'
import { createThrottle } from '../../src/telemetry/throttle.ts'
import { manualClock } from '../support/manual-clock.ts'

t.test('a subject has its lines each minute, and the next minute counts the dropped ones', async t => {
  const clock = manualClock()
  const throttle = createThrottle(clock, 2)
  const lines: string[] = []
  const write = (subject: string) =>
    throttle(subject, ({ leftOut = 0 }) => lines.push(`${subject} ${leftOut}`))
  for (let i = 0; i < 5; i++) write('a')
  write('b')
  t.strictSame(lines.splice(0), ['a 0', 'a 0', 'b 0'])
  clock.advance(59_999)
  write('a')
  t.strictSame(lines, [])
  clock.advance(1)
  write('a')
  write('a')
  write('a')
  t.strictSame(lines.splice(0), ['a 4', 'a 0'])
  // After a jump back of the clock, lines are still written.
  clock.advance(-3_600_000)
  write('a')
  t.strictSame(lines, ['a 1'])
})
