// `traceparent` is taken in the form of W3C Trace Context, and in no other.

import t from 'tap'
import { traceContextOf } from '../../src/api/trace-context.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

t.test('a good one', async t => {
  t.strictSame(traceContextOf(`00-${traceId}-${spanId}-01`), { traceId, spanId, isSampled: true })
  t.strictSame(traceContextOf(`00-${traceId}-${spanId}-00`), { traceId, spanId, isSampled: false })
  t.match(traceContextOf(`00-${traceId}-${spanId}-03`), { isSampled: true })
  t.match(traceContextOf(`cc-${traceId}-${spanId}-01`), { traceId }, 'of a later version')
  t.match(traceContextOf(`cc-${traceId}-${spanId}-01-what-comes`), { traceId }, 'with more fields')
})

t.test('others are as good as none', async t => {
  for (const [what, given] of Object.entries({
    empty: '',
    'upper case': `00-${traceId.toUpperCase()}-${spanId}-01`,
    'trace of zeros': `00-${'0'.repeat(32)}-${spanId}-01`,
    'span of zeros': `00-${traceId}-${'0'.repeat(16)}-01`,
    'too short': `00-${traceId.slice(1)}-${spanId}-01`,
    'no flags': `00-${traceId}-${spanId}`,
    'more fields in version 00': `00-${traceId}-${spanId}-01-more`,
    'more without a separator': `cc-${traceId}-${spanId}-01more`,
    'version ff': `ff-${traceId}-${spanId}-01`,
    'sent twice': `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`,
    blanks: ` 00-${traceId}-${spanId}-01`,
    'a line break': `00-${traceId}-${spanId}-01\n`,
    'too long': `cc-${traceId}-${spanId}-01-${'x'.repeat(300)}`,
  }))
    t.equal(traceContextOf(given), undefined, what)
})
