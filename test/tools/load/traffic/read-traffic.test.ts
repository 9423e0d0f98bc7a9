// Without it traffic files could leak keys, lose requests, or be read in the wrong order.

import { readdirSync, readlinkSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import { createKey } from '../../../../src/keys/key-form.ts'
import { readTraffic, type TrafficFault } from '../../../../tools/load/traffic/read-traffic.ts'
import { lineOf, type TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'
import { leakIn, spellings } from '../../../support/key-spellings.ts'
import { until } from '../../../support/until.ts'
import { linesOf } from '../replay/send-some.ts'
import { readAll, request, start } from './read-all.ts'

t.test('a file and its gzip hold the same requests and have the same hash', async t => {
  const requests = Array.from({ length: 3_000 }, (_, i) => request(i, { key: `key_${i % 7}`, status: 200 }))
  const text = linesOf(requests)
  const folder = t.testdir({ 'a.ndjson': text })
  const plain = await readAll([join(folder, 'a.ndjson')])
  t.strictSame(plain.requests, requests)
  // Two members, as when rotated files are put behind one another; padded, as on block devices; and a name that does not say
  // so. The last padding is longer than what is read at once.
  const members = [gzipSync(text.slice(0, 1_000)), gzipSync(text.slice(1_000))] as const
  for (const padding of [0, 1, 512, 300_000].map(length => Buffer.alloc(length))) {
    writeFileSync(join(folder, 'b.log'), Buffer.concat([members[0], padding, members[1], padding]))
    const packed = await readAll([join(folder, 'b.log')])
    t.strictSame(packed.requests, requests)
    t.equal(plain.summary.sha256, packed.summary.sha256)
    t.strictSame(packed.faults, [])
  }
  t.match(plain.summary, { requests: 3_000, faultyLines: 0, late: 0 })
})

t.test('the broken line 200,001 is reported with line and reason, and the rest goes on', async t => {
  const path = join(t.testdir(), 'many.ndjson.gz')
  const line = `${lineOf(request(0))}\n`
  // A thousand copies packed once are a member; gzip members follow each other.
  const thousand = gzipSync(line.repeat(1_000))
  const members = [...Array.from({ length: 200 }, () => thousand), gzipSync(`{"at":"2026\n${line}`)]
  writeFileSync(path, Buffer.concat(members))
  const faults: TrafficFault[] = []
  const traffic = readTraffic([path], { onFault: fault => void faults.push(fault) })
  let requests = 0
  for await (const batch of traffic.batches()) requests += batch.length
  t.equal(requests, 200_001)
  t.strictSame(faults, [{ file: path, line: 200_001, reason: '"{\\"at\\":\\"2026" is not JSON' }])
  t.match(traffic.summary(), { requests: 200_001, faultyLines: 1 })
})

t.test('of gzip that is cut off or damaged, what was readable is kept and the fault is named', async t => {
  const all = Array.from({ length: 20_000 }, (_, i) => request(i, { key: `key_${(i * 7_919) % 9_973}` }))
  const packed = gzipSync(linesOf(all))
  const damaged = Buffer.from(packed)
  damaged.fill(0xff, Math.floor(packed.length / 2), Math.floor(packed.length / 2) + 40)
  const folder = t.testdir()
  const variants: [string, Buffer][] = [
    ['cut', packed.subarray(0, Math.floor(packed.length / 2))],
    ['damaged', damaged],
    ['appended', Buffer.concat([packed, Buffer.from('and a line that is not packed\n')])],
  ]
  for (const [name, bytes] of variants) {
    writeFileSync(join(folder, name), bytes)
    const { requests, faults } = await readAll([join(folder, name)])
    t.ok(requests.length > 9_000, `${name}: ${requests.length} requests`)
    const last = faults.at(-1)
    t.match(last?.reason, /the gzip data end too early or are damaged .*the rest of the file could not be/)
    t.ok((last?.line ?? 0) >= requests.length, 'with the line')
    await until(`${name} is closed`, () => !isOpen(join(folder, name)))
  }
  for (const behind of ['x', '\0x']) {
    writeFileSync(join(folder, 'nothing'), Buffer.concat([gzipSync(''), Buffer.from(behind)]))
    await t.rejects(readAll([join(folder, 'nothing')]), /nothing: the gzip data end too early or are damaged/)
  }
  await until('it is closed too', () => !isOpen(join(folder, 'nothing')))
  writeFileSync(join(folder, 'long'), 'no format begins so\n'.repeat(10_000))
  await t.rejects(readAll([join(folder, 'long')]), /unknown format/)
  await until('a long file is closed', () => !isOpen(join(folder, 'long')))
})

const isOpen = (path: string): boolean =>
  readdirSync('/proc/self/fd').some(descriptor => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === realpathSync(path)
    } catch {
      return false
    }
  })

t.test('lines without an end and gzip that expands without measure take no memory', async t => {
  const folder = t.testdir()
  // Twenty members expand to 320 MiB.
  const zeros = gzipSync(Buffer.alloc(16 * 1024 * 1024))
  const first = linesOf([request(0)])
  const endless = Buffer.concat([gzipSync(first), ...Array(20).fill(zeros), gzipSync(`\n${first}`)])
  writeFileSync(join(folder, 'endless.gz'), endless)
  const before = process.memoryUsage.rss()
  const { requests, faults } = await readAll([join(folder, 'endless.gz')])
  t.ok(process.memoryUsage.rss() - before < 160 * 1024 * 1024, 'half of what it expands to')
  t.equal(requests.length, 1)
  t.match(faults, [
    { line: 2, reason: 'the line is longer than 262144 bytes' },
    { line: 2, reason: /the gzip data expand to more than 400 times their size/ },
  ])
  writeFileSync(join(folder, 'long'), `${first}${'x'.repeat(1_000_000)}\n${first}`)
  const long = await readAll([join(folder, 'long')])
  t.equal(long.requests.length, 2)
  t.hasStrict(long.faults, [{ line: 2, reason: 'the line is longer than 262144 bytes' }])
})

t.test('neighbours out of order are sorted, and what is further away is counted and not lost', async t => {
  const mixed = [5, 3, 4, 9, 8, 7, 20, 21, 1, 22, 2]
  const path = join(t.testdir({ a: linesOf(mixed.map(at => request(at))) }), 'a')
  const numbers = (requests: readonly TrafficRequest[]) => requests.map(({ at }) => at - start)
  // All in one batch: only what was given before is too late.
  const { requests, summary } = await readAll([path], { window: 100 })
  t.strictSame([numbers(requests), summary.late], [[1, 2, 3, 4, 5, 7, 8, 9, 20, 21, 22], 0])
  const { inOrder } = await import('../../../../tools/load/traffic/arrival-order.ts')
  const batches = async function* () {
    for (const at of mixed) yield [request(at)]
  }
  const given: number[] = []
  let late = 0
  const count = (requests: number): void => {
    late += requests
  }
  for await (const batch of inOrder(batches(), count, 3)) given.push(...numbers(batch))
  t.equal(late, 2)
  const [tooLate, inTime] = [given.filter(at => at <= 2), given.filter(at => at > 2)]
  t.strictSame([...tooLate, 'late', ...inTime], [1, 2, 'late', 3, 4, 5, 7, 8, 9, 20, 21, 22])
})

t.test('whatever the streams, merging gives all of their requests in order', async t => {
  const { merged } = await import('../../../../tools/load/traffic/arrival-order.ts')
  const few = { maxLength: 5 }
  const streams = fc.array(fc.array(fc.array(fc.nat(20), few), few), few)
  await fc.assert(
    fc.asyncProperty(streams, async given => {
      // Each stream in order, whatever its batches.
      const ordered = given.map((batches, stream) => {
        const all = batches.flat().sort((one, other) => one - other)
        const path = `/${stream}`
        return batches.map(({ length }) => all.splice(0, length).map(at => request(at, { path })))
      })
      const inTurn = ordered.map(async function* (batches) {
        yield* batches
      })
      const found = (await Array.fromAsync(merged(inTurn))).flat()
      // A stable sort of the streams behind each other: of equal instants those of earlier streams first.
      t.strictSame(
        found,
        ordered.flat(2).sort((one, other) => one.at - other.at),
      )
    }),
  )
})

t.test('no key comes out, wherever it stands', async t => {
  const key = createKey()
  const other = createKey()
  const paths = Object.values(spellings).flatMap(spell => [
    `/x?key=${spell(key)}&y=1`,
    `/${spell(key)}/x`,
    `/x?a=b;${spell(key)}`,
  ])
  const lines = [
    ...paths.filter(path => /^\/[\x21-\x7e]*$/.test(path)).map(path => lineOf(request(0, { path }))),
    lineOf(request(0, { key, accepts: key, cell: key })),
    lineOf(request(0, { key: other, path: `/x?key=${key}` })),
    JSON.stringify({ at: '2026-11-21T06:00:00Z', method: 'GET', path: '/', key: `${key} and more` }),
    `{"at":${key}}`,
  ]
  const path = join(t.testdir({ a: lines.join('\n') }), 'a')
  const { requests, faults } = await readAll([path])
  t.ok(requests.length > 20, `${requests.length} requests`)
  t.equal(faults.length, 1)
  t.equal(leakIn(JSON.stringify([requests, faults]), key), undefined)
  const inPath = requests.find(({ path }) => path.startsWith('/x?key=anon_'))
  const inHeader = requests.find(({ path }) => path === '/api/v1/weather/district/3026')
  const named = inPath?.path.slice('/x?key='.length, '/x?key=anon_'.length + 12)
  t.equal(named, inHeader?.key, 'the same name for the same key')
})
