// Without it an id with an API key could be logged, or an odd accept-encoding or traceparent could be believed.

import t from 'tap'
import { acceptedOf, longestPreference } from '../../src/api/content-coding.ts'
import { requestIdOf } from '../../src/api/request.ts'
import { traceContextOf } from '../../src/api/trace-context.ts'
import { createKey } from '../../src/keys/key-form.ts'
import { spellings } from '../support/key-spellings.ts'

t.test('an id that holds a key, or the beginning of one, is replaced', async t => {
  const key = createKey()
  for (const [spelling, spell] of Object.entries(spellings))
    for (const id of [spell(key), `trace-${spell(key)}`, `${spell(key)}.7`, `a:${spell(key).slice(0, 30)}`])
      if (id.length <= 128) t.match(requestIdOf(id), /^[\w-]{20}$/, `${spelling}: ${id}`)
})

t.test('any other sane id of a request stays', async t => {
  for (const id of [
    'trace-01/a=b',
    '7f3c2a1e-0b5d-4c1a-9b1e-3f2d1c0b9a87',
    'Root=1-67891233-abcdef012345678912345678',
    'svc_live_',
    'svc-live-1',
    'dGhpcyBpcyBubyBrZXk=',
    'x'.repeat(128),
  ])
    t.equal(requestIdOf(id), id)
  for (const id of ['with blanks', 'x'.repeat(129), '"quoted"', '<script>']) t.not(requestIdOf(id), id)
})

t.test('each request without a sane id gets one that no other has', async t => {
  const ids = Array.from({ length: 600 }, () => requestIdOf(undefined))
  t.equal(new Set(ids).size, 600)
  for (const id of ids) if (!/^[\w-]{20}$/.test(id)) t.fail(id)
})

const large = 10_000

t.test('the preferred coding is taken, br before gzip, and none for what fits in one packet', async t => {
  for (const [header, accepted] of [
    ['gzip, br', { preferred: 'br', gzip: true }],
    ['*', { preferred: 'br', gzip: true }],
    ['gzip, br;q=0.5', { preferred: 'gzip', gzip: true }],
    ['br', { preferred: 'br', gzip: false }],
    ['gzip', { preferred: 'gzip', gzip: true }],
    ['gzip;q=0.5, identity', undefined],
    ['deflate', undefined],
    ['', undefined],
  ] as const)
    for (const _ of ['read', 'remembered']) t.strictSame(acceptedOf(header, 1_024), accepted, header)
  t.equal(acceptedOf('gzip', 1_023), undefined)
  t.hasStrict(acceptedOf('gzip, identity;q=0', 0), { preferred: 'gzip' }, 'a client that takes nothing else')
})

t.test('x-gzip is gzip, in any case, with its weight, and beside a coding of another name', async t => {
  const gzip = { preferred: 'gzip', gzip: true }
  for (const header of ['x-gzip', 'X-GZip', 'x-gzip, identity;q=0', 'deflate,x-gzip;q=0.5', 'x-gzip, gzip'])
    t.strictSame(acceptedOf(header, large), gzip, header)
  t.strictSame(acceptedOf('br, x-gzip;q=0.5', large), { preferred: 'br', gzip: true })
  for (const header of ['x-gzip;q=0', 'x-gzip-2', 'an-x-gzip'])
    t.equal(acceptedOf(header, large), undefined, header)
})

t.test('256 characters of a preference are read, and a longer one counts as none', async t => {
  t.equal(longestPreference, 256)
  const of = (wanted: string, length: number) => `${wanted},`.padEnd(length, 'x')
  t.hasStrict(acceptedOf(of('gzip', 256), large), { preferred: 'gzip' })
  t.equal(acceptedOf(of('gzip', 257), large), undefined)
})

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

t.test('a good traceparent', async t => {
  t.strictSame(traceContextOf(`00-${traceId}-${spanId}-01`), { traceId, spanId, isSampled: true })
  t.strictSame(traceContextOf(`00-${traceId}-${spanId}-00`), { traceId, spanId, isSampled: false })
  for (const flags of ['03', '11'])
    t.match(traceContextOf(`00-${traceId}-${spanId}-${flags}`), { isSampled: true })
  t.hasStrict(
    traceContextOf(`cc-${traceId}-${spanId}-01-`.padEnd(256, 'x')),
    { traceId },
    'as long as one may be',
  )
  t.hasStrict(traceContextOf(`cc-${traceId}-${spanId}-01`), { traceId }, 'of a later version')
  t.hasStrict(traceContextOf(`cc-${traceId}-${spanId}-01-what-comes`), { traceId }, 'with more fields')
})

t.test('another traceparent is as good as none', async t => {
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
    'too long': `cc-${traceId}-${spanId}-01-`.padEnd(257, 'x'),
  }))
    t.equal(traceContextOf(given), undefined, what)
})
