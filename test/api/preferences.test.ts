// The codings that a client accepts: its header is read up to the longest length, and not at all beyond.

import t from 'tap'
import { acceptedOf, longestPreference } from '../../src/api/content-coding.ts'

const large = 10_000

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
  t.match(acceptedOf(of('gzip', 256), large), { preferred: 'gzip' })
  t.equal(acceptedOf(of('gzip', 257), large), undefined)
})
