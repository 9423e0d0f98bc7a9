// Reading traffic files: order, faults, gzip, several files, and that no key comes out.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { readTraffic, type TrafficFault } from '../../src/traffic/read-traffic.ts'
import { lineOf, type TrafficRequest } from '../../src/traffic/traffic-request.ts'

const start = Date.parse('2026-11-21T06:00:00Z')
const request = (at: number, more: Partial<TrafficRequest> = {}): TrafficRequest => ({
  at: start + at,
  method: 'GET',
  path: '/api/v1/weather/district/3026',
  ...more,
})
const file = (requests: readonly TrafficRequest[]): string =>
  requests.map(each => `${lineOf(each)}\n`).join('')

const readAll = async (paths: readonly string[], options: Parameters<typeof readTraffic>[1] = {}) => {
  const faults: TrafficFault[] = []
  const traffic = readTraffic(paths, { onFault: fault => void faults.push(fault), ...options })
  const requests: TrafficRequest[] = []
  for await (const each of traffic) requests.push(each)
  return { requests, faults, summary: traffic.summary() }
}

t.test('a file and its gzip hold the same requests and have the same hash', async t => {
  const requests = Array.from({ length: 3_000 }, (_, i) => request(i, { key: `key_${i % 7}`, status: 200 }))
  const text = file(requests)
  const folder = t.testdir({ 'a.ndjson': text })
  // Two members, as when rotated files are put behind one another; and a name that does not say so.
  writeFileSync(
    join(folder, 'b.log'),
    Buffer.concat([gzipSync(text.slice(0, 1_000)), gzipSync(text.slice(1_000))]),
  )
  const plain = await readAll([join(folder, 'a.ndjson')])
  const packed = await readAll([join(folder, 'b.log')])
  t.strictSame(plain.requests, requests)
  t.strictSame(packed.requests, requests)
  t.equal(plain.summary.sha256, packed.summary.sha256)
  t.match(plain.summary, { requests: 3_000, faultyLines: 0, late: 0 })
})

t.test('several files are one stream in the order of arrival', async t => {
  const folder = t.testdir({
    a: file([request(0), request(30), request(10), request(50)]),
    b: file([request(20), request(40)]),
    empty: '',
  })
  const { requests, summary } = await readAll(['a', 'b', 'empty'].map(name => join(folder, name)))
  t.strictSame(
    requests.map(({ at }) => at - start),
    [0, 10, 20, 30, 40, 50],
  )
  t.match(summary, { requests: 6, files: [{ requests: 4 }, { requests: 2 }, { requests: 0 }] })
})
