// What CI prints of TAP: what failed, with its details and where it is, and how much passed.

import { text } from 'node:stream/consumers'
import t from 'tap'
import FailuresReporter from './failures-reporter.ts'

const tap = `TAP version 14
1..2
# Subtest: a.test.ts
    # Subtest: the first
        ok 1 - it is so
        not ok 2 - ঢাকা
          ---
          diff: |
            -1
            +2
          ...
        not ok 3 - later # TODO
        1..3
    not ok 1 - the first # time=3ms
      ---
      at: a line
      ...
    ok 2 - skipped # SKIP
    1..2
not ok 1 - a.test.ts # time=5ms
  ---
  exitCode: 1
  ...
ok 2 - b.test.ts # time=7ms
`

t.test('what failed is there whole, and what passed is counted', async t => {
  const bytes = Buffer.from(tap)
  for (const size of [1, 7, bytes.length]) {
    const reporter = new FailuresReporter()
    for (let at = 0; at < bytes.length; at += size) reporter.write(bytes.subarray(at, at + size))
    reporter.end()
    t.equal(
      await text(reporter),
      `a.test.ts > the first > not ok 2 - ঢাকা
  ---
  diff: |
    -1
    +2
  ...
a.test.ts > not ok 1 - the first # time=3ms
not ok 1 - a.test.ts # time=5ms
  ---
  exitCode: 1
  ...
ok 2 - b.test.ts # time=7ms
2 passed, 1 failed
`,
    )
  }
})
