// How the hostile provider sends a body: as valid HTTP, gzipped or not, or damaged. Returns the whole response in chunks of
// bytes, because a library would not send most of these.

import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { Random } from '../random.ts'

export type Wire = { readonly kind: string; readonly share: number; readonly status: number }

/** Whether the body may arrive unchanged; if not, only correct weather may be served. */
type Sent = { readonly pieces: readonly Buffer[]; readonly isIntact: boolean }
type Send = (body: Buffer, wire: Wire) => Sent

const type = 'content-type: application/json; charset=utf-8'
const head = (status: number, ...lines: string[]): Buffer =>
  Buffer.from([`HTTP/1.1 ${status} Any`, ...lines, 'connection: close', '', ''].join('\r\n'), 'latin1')
const withLength = (body: Buffer, ...lines: string[]): Buffer[] => [
  head(200, type, `content-length: ${body.length}`, ...lines),
  body,
]
const zipped = (body: Buffer): Buffer => gzipSync(body, { level: 1 })
const intact = (pieces: readonly Buffer[]): Sent => ({ pieces, isIntact: true })
const broken = (pieces: readonly Buffer[]): Sent => ({ pieces, isIntact: false })
const chunk = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
const flipped = (bytes: Buffer, share: number): Buffer => {
  const copy = Buffer.from(bytes)
  const at = Math.min(copy.length - 1, Math.floor(share * copy.length))
  copy[at] = (copy[at] ?? 0) ^ (1 << (Math.floor(share * 8e6) % 8))
  return copy
}
const cutAt = (bytes: Buffer, share: number): [Buffer, Buffer] => {
  const at = Math.floor(share * bytes.length)
  return [bytes.subarray(0, at), bytes.subarray(at)]
}

const ways: Readonly<Record<string, Send>> = {
  plain: body => intact(withLength(body)),
  zipped: body => intact(withLength(zipped(body), 'content-encoding: gzip')),
  'in chunks': (body, { share }) =>
    intact([
      head(200, type, 'transfer-encoding: chunked'),
      ...cutAt(body, share)
        .filter(({ length }) => length > 0)
        .map(chunk),
      Buffer.from('0\r\n\r\n'),
    ]),
  'until the close': body => intact([head(200, type), body]),
  'in two pieces': (body, { share }) =>
    intact([head(200, type, `content-length: ${body.length}`), ...cutAt(body, share)]),
  'zip cut off': (body, { share }) => {
    const [cut] = cutAt(zipped(body), share)
    return broken(withLength(cut, 'content-encoding: gzip'))
  },
  'zip damaged': (body, { share }) =>
    broken(withLength(flipped(zipped(body), share), 'content-encoding: gzip')),
  'zipped twice': body => broken(withLength(zipped(zipped(body)), 'content-encoding: gzip')),
  'two zips': body =>
    broken(withLength(Buffer.concat([zipped(body), zipped(body)]), 'content-encoding: gzip')),
  'something behind the zip': body =>
    broken(withLength(Buffer.concat([zipped(body), Buffer.from('garbage')]), 'content-encoding: gzip')),
  'said to be zipped': body => broken(withLength(body, 'content-encoding: gzip')),
  'not said to be zipped': body => broken(withLength(zipped(body))),
  brotli: body => broken(withLength(brotliCompressSync(body, { params: { 1: 1 } }), 'content-encoding: br')),
  'an encoding that is none': body => broken(withLength(body, 'content-encoding: zq7')),
  'longer than said': body =>
    broken([head(200, type, `content-length: ${Math.max(0, body.length - 10)}`), body]),
  'shorter than said': body => broken([head(200, type, `content-length: ${body.length + 10}`), body]),
  'cut off': (body, { share }) =>
    broken([head(200, type, `content-length: ${body.length}`), cutAt(body, share)[0]]),
  'a chunk that is none': (body, { share }) =>
    broken([
      head(200, type, 'transfer-encoding: chunked'),
      chunk(cutAt(body, share)[0]),
      Buffer.from('zz\r\n'),
    ]),
  'another status': (body, { status }) =>
    broken([
      head(status, type, `content-length: ${body.length}`, 'location: /v1/forecast', 'retry-after: 1'),
      body,
    ]),
  'a page of HTML': (_body, { status }) =>
    broken([
      head(status, 'content-type: text/html'),
      Buffer.from('<html><body>502 Bad Gateway</body></html>'),
    ]),
  'an error of its own': (_body, { status }) =>
    broken([
      head(status, type),
      Buffer.from('{"error":true,"reason":"<script>\\u0000 Something went wrong."}'),
    ]),
  // The other kinds of 429 rightly stop all requests for a minute or a day, which would end the run.
  'too busy': () =>
    broken([head(429, type), Buffer.from('{"error":true,"reason":"Too many concurrent requests"}')]),
  nothing: () => broken([head(200, type, 'content-length: 0')]),
  'no head': body => broken([body]),
  'a head that is none': body => broken([Buffer.from('HTTP/1.1 two hundred\r\n\r\n'), body]),
  'a large head': body => broken([head(200, type, `x: ${'y'.repeat(100_000)}`), body]),
  'two lengths': body =>
    broken([head(200, type, `content-length: ${body.length}`, 'content-length: 3'), body]),
  'a reset': () => broken([]),
}

export const wireKinds = Object.keys(ways)
export const rightWires = [
  'plain',
  'plain',
  'zipped',
  'in chunks',
  'until the close',
  'in two pieces',
] as const

export const makeWire = (random: Random, kind: string): Wire => ({
  kind,
  share: random.fraction(),
  status: random.pick([
    201, 204, 206, 301, 302, 304, 307, 400, 401, 403, 404, 408, 413, 418, 500, 502, 503, 504, 599,
  ]),
})

export const sent = (body: Buffer, wire: Wire): Sent =>
  ways[wire.kind]?.(body, wire) ?? intact(withLength(body))
