// Without it a body that is joined from compressed parts could be broken at some length.

import { randomBytes } from 'node:crypto'
import { crc32, deflateRawSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import {
  deflatedStart,
  type GzipPart,
  type GzipStart,
  gzipEnd,
  gzipOfParts,
  joinedCrc,
  joinedGzip,
  openPartOptions,
  partBehind,
  storedPart,
  storedStart,
} from '../../src/api/joined-gzip.ts'

const text = (length: number): Buffer =>
  Buffer.from(
    randomBytes(Math.ceil(length / 2))
      .toString('hex')
      .slice(0, length),
  )
const endOf = (bytes: Buffer) => gzipEnd(bytes, deflateRawSync(bytes))
const joined = (start: GzipStart, bytes: Buffer): Buffer => Buffer.concat(joinedGzip(start, endOf(bytes)))

// The longest block without compression has 65,535 bytes.
const lengths = [0, 1, 2, 300, 4_583, 65_535, 65_536, 200_000]

t.test('both parts come out as they went in, and a checksum goes on without the bytes before it', async t => {
  for (const first of lengths)
    for (const second of lengths) {
      const [one, other] = [text(first), text(second)]
      const whole = Buffer.concat([one, other])
      for (const [name, start] of Object.entries({ storedStart, deflatedStart }))
        t.ok(gunzipSync(joined(start(one), other)).equals(whole), `${name}: ${first} and ${second} bytes`)
      t.equal(joinedCrc(crc32(one), endOf(other)), crc32(whole), `${first} and ${second} bytes`)
    }
})

t.test('any number of parts are joined, those that were stored and those that were compressed', async t => {
  const deflated = (bytes: Buffer) => gzipEnd(bytes, deflateRawSync(bytes, openPartOptions))
  for (const parts of [0, 1, 2, 40]) {
    const [given, whole]: [GzipPart[], Buffer[]] = [[], []]
    const [comma, end] = [Buffer.from(','), Buffer.from(']')]
    for (let i = 0; i < parts; i++) {
      const [place, weather] = [text(200 + i), text((i * 997) % 70_000)]
      given.push(partBehind(comma, i % 2 ? storedStart(place) : deflatedStart(place)), deflated(weather))
      whole.push(comma, place, weather)
    }
    const bytes = Buffer.concat(gzipOfParts([...given, storedPart(end, true)]))
    t.ok(gunzipSync(bytes).equals(Buffer.concat([...whole, end])), `${parts} places`)
  }
})

t.test('what is sent once is stored, and what is sent often takes less', async t => {
  const place = Buffer.from(
    '{"name_en":"Dhaka","name_bn":"ঢাকা","parent_en":"Dhaka","parent_bn":"ঢাকা"}'.repeat(3),
  )
  t.equal(storedStart(place).bytes.length, 10 + 5 + place.length)
  t.equal(storedStart(text(65_535)).bytes.length, 10 + 5 + 65_535)
  t.ok(storedStart(text(65_536)).bytes.length < 65_536, 'longer than a block')
  const header = deflatedStart(place).bytes.toString('hex', 0, 10)
  t.equal(header, '1f8b08000000000000ff', 'deflate, without a name or a time, of no system')
  t.ok(deflatedStart(place).bytes.length < place.length / 2)
})
