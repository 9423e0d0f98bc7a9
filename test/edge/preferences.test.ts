// The codings that a client accepts: its header is read up to the longest length, and not at all beyond.

import t from 'tap'
import { acceptedOf, longestPreference } from '../../src/edge/content-coding.ts'

const large = 10_000

t.test('256 characters of a preference are read, and a longer one counts as none', async t => {
  t.equal(longestPreference, 256)
  const of = (wanted: string, length: number) => `${wanted},`.padEnd(length, 'x')
  t.match(acceptedOf(of('gzip', 256), large), { preferred: 'gzip' })
  t.equal(acceptedOf(of('gzip', 257), large), undefined)
})
