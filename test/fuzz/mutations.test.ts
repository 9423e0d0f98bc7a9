// Mutations change what their names say: one that changes nothing would find nothing.

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { brotliCompressSync, crc32, gunzipSync } from 'node:zlib'
import t from 'tap'
import { request } from 'undici'
import { createRandom } from '../../fuzz/random.ts'
import { bombKinds, bombText } from '../../fuzz/targets/body-bombs.ts'
import { changed, changeKinds, makeChange } from '../../fuzz/targets/body-mutations.ts'
import { makeWire, rightWires, sent, wireKinds } from '../../fuzz/targets/body-wire.ts'
import { layoutOf, makeTampering, tampered, tamperingKinds } from '../../fuzz/targets/entry-mutations.ts'
import { cellName, freshCellsOf } from '../../fuzz/targets/fresh-cells.ts'
import { damage, makeDamage, otherTypes, setAs } from '../../fuzz/targets/redis-damage.ts'
import { startRedisProcess } from '../support/redis-process.ts'
import { withoutOwnRedis } from '../support/redis-server.ts'

const section = {
  time: ['2026-11-21T00:00', '2026-11-21T01:00', '2026-11-21T02:00'],
  temperature_2m: [1, 2, 3],
  rain: [4, 5, 6],
}
const element = (latitude: number) => ({
  latitude,
  longitude: 90,
  utc_offset_seconds: 21_600,
  minutely_15_units: { time: 'iso8601', temperature_2m: '°C' },
  minutely_15: section,
  hourly_units: { time: 'iso8601', temperature_2m: '°C' },
  hourly: { ...section, rain: [7, 8, latitude] },
  daily_units: { time: 'iso8601', temperature_2m: '°C' },
  daily: { ...section, temperature_2m: [10, 11, 12] },
})
const body = JSON.stringify([element(22), element(23), element(24)])

t.test('a body without changes stays as it is, and every change changes most bodies', async t => {
  t.equal(changed(body, []), body)
  t.equal(changed(JSON.stringify(element(22)), []), JSON.stringify(element(22)))
  for (const kind of changeKinds) {
    const random = createRandom('changes', kind)
    const texts = Array.from({ length: 40 }, () => changed(body, [makeChange(random, kind)]))
    t.ok(texts.filter(text => text !== body).length >= 20, kind)
  }
})

t.test('JSON that no value is written as gets into the text', async t => {
  const change = { kind: 'a value', at: [0, 0, 0.5, 0], value: '@raw:1e400@' } as const
  t.match(changed(body, [change]), /"temperature_2m":\[1e400,2,3\]/)
})

t.test('bombs have about the size they say', async t => {
  for (const kind of bombKinds) {
    const { length } = bombText({ kind, megabytes: 1 }, JSON.stringify(element(22)))
    t.ok(length > 700_000 && length < 1_300_000, `${kind}: ${length}`)
  }
})

/** What a client makes of a response that a server sends in these pieces. */
const received = async (pieces: readonly Buffer[]): Promise<string> => {
  const server = createServer(socket => {
    socket.once('data', () => {
      for (const piece of pieces) socket.write(piece)
      socket.end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { body, headers } = await request(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const bytes = Buffer.from(await body.arrayBuffer())
    return (headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString()
  } finally {
    server.close()
  }
}

t.test('a body goes out as HTTP has it, or damaged', async t => {
  const text = Buffer.from(body)
  for (let number = 0; number < 5; number++) {
    const all = wireKinds.map(kind => {
      const { pieces, isIntact } = sent(text, makeWire(createRandom('wire', number), kind))
      return { kind, pieces, isIntact, bytes: Buffer.concat([...pieces]).toString('latin1') }
    })
    const [intact, broken] = [all.filter(({ isIntact }) => isIntact), all.filter(one => !one.isIntact)]
    t.strictSame(new Set(intact.map(({ kind }) => kind)), new Set(rightWires))
    for (const { kind, pieces } of intact) t.equal(await received(pieces), body, kind)
    for (const { kind, bytes } of broken)
      t.notOk(
        intact.some(one => one.bytes === bytes),
        kind,
      )
  }
})

/** A head with a checksum, and a compressed part: the shape of an entry, with any content. */
const entryOf = (cell: string): Buffer => {
  const head = Buffer.alloc(40, cell)
  const bytes = Buffer.concat([head, brotliCompressSync(Buffer.alloc(4_000, cell))])
  bytes.writeUInt32LE(crc32(bytes.subarray(13), crc32(bytes.subarray(0, 9))), 9)
  return bytes
}

t.test('how an entry is laid out is found out from one, and its checksum made right again', async t => {
  const own = entryOf('23.8,90.4')
  const layout = layoutOf(own, ['23.8,90.4'])
  t.equal(layout.bodyAt, 40)
  const forged = Buffer.from(own)
  forged[20] = 99
  layout.repair?.(forged, '23.8,90.4')
  t.equal(forged.readUInt32LE(9), crc32(forged.subarray(13), crc32(forged.subarray(0, 9))))
  t.strictSame(layoutOf(Buffer.alloc(100, 7), []), { bodyAt: undefined, repair: undefined })
})

t.test('every way to tamper with an entry makes it another', async t => {
  const parts = { bytes: entryOf('a'), other: entryOf('b'), layout: layoutOf(entryOf('a'), ['a']), now: 1 }
  for (const kind of tamperingKinds) {
    const random = createRandom('tampering', kind)
    const other = Array.from({ length: 10 }, () => tampered(makeTampering(random, kind), parts, 'a'))
    t.ok(
      other.some(bytes => !bytes.equals(parts.bytes)),
      kind,
    )
    t.ok(parts.bytes.equals(entryOf('a')), `${kind} leaves the original alone`)
  }
})

t.test('cells are new for each case, the same for each run, and others when a case runs again', async t => {
  const names = (system: object) =>
    Array.from({ length: 500 }, (_, i) => freshCellsOf(system).of(i, 6).map(cellName)).flat()
  const [one, other] = [{}, {}]
  const first = names(one)
  t.equal(new Set(first).size, 3_000)
  t.strictSame(names(other), first)
  const again = freshCellsOf(one).of(7, 6).map(cellName)
  t.notOk(again.some(name => first.includes(name)))
  for (const { latitude, longitude } of freshCellsOf(one).of(1_000_000, 8))
    t.ok(latitude > 20 && latitude < 27 && longitude > 87.5 && longitude < 93)
})

t.test('a record in Redis is replaced in one step, whatever it was', { skip: withoutOwnRedis }, async t => {
  const { admin, stop } = await startRedisProcess()
  t.teardown(stop)
  for (const type of otherTypes) {
    await admin.set('record', 'text')
    await setAs(admin, 'record', type)
    t.equal(await admin.type('record'), { 'sorted set': 'zset' }[type as string] ?? type)
  }
  const seen = new Set<string>()
  for (let number = 0; number < 200; number++) {
    const how = makeDamage(createRandom('damage', number))
    await admin.del('record')
    await admin.hset('record', { used: '5', other: '1 1' })
    const before = await admin.dumpBuffer('record')
    await damage(admin, 'record', how)
    if (!(await admin.dumpBuffer('record'))?.equals(before ?? Buffer.alloc(0))) seen.add(how.kind)
  }
  t.strictSame([...seen].toSorted(), [
    'all fields',
    'fields',
    'gone',
    'many',
    'members',
    'more fields',
    'text',
    'type',
  ])
})
