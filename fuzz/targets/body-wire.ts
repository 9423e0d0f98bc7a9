// How the hostile provider sends a body: as valid HTTP, gzipped or not, or damaged. Returns the whole response in chunks of
// bytes, because a library would not send most of these.

import { brotliCompressSync, gzipSync } from 'node:zlib'
import fc, { type Arbitrary } from 'fast-check'
import { indexAt, share, words } from '../target.ts'

export type Wire = { readonly kind: string; readonly at: number; readonly status: number }
type Send = (body: Buffer, wire: Wire) => readonly (Buffer | string)[]

const json = 'content-type: application/json; charset=utf-8'
const head = (status: number, ...lines: string[]): string =>
  [`HTTP/1.1 ${status} Any`, ...lines, 'connection: close', '', ''].join('\r\n')
const long = (body: Buffer, ...lines: string[]) => [
  head(200, json, `content-length: ${body.length}`, ...lines),
  body,
]
const gzip = 'content-encoding: gzip'
const chunked = head(200, json, 'transfer-encoding: chunked')
const zipped = (body: Buffer): Buffer => gzipSync(body, { level: 1 })
const chunk = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
const flipped = (bytes: Buffer, at: number): Buffer => {
  const index = indexAt(bytes.length, at)
  bytes[index] = (bytes[index] ?? 0) ^ (1 << (Math.floor(at * 2 ** 20) % 8))
  return bytes
}
const cutAt = (bytes: Buffer, at: number): Buffer[] => {
  const index = Math.floor(at * bytes.length)
  return [bytes.subarray(0, index), bytes.subarray(index)].filter(({ length }) => length > 0)
}
const cut = (bytes: Buffer, at: number): Buffer => bytes.subarray(0, indexAt(bytes.length, at))
const failure = '{"error":true,"reason":"<script>\\u0000 Something went wrong."}'
const busy = '{"error":true,"reason":"Too many concurrent requests"}'

const intact: Readonly<Record<string, Send>> = {
  plain: body => long(body),
  zipped: body => long(zipped(body), gzip),
  'in chunks': (body, { at }) => [chunked, ...cutAt(body, at).map(chunk), '0\r\n\r\n'],
  'until the close': body => [head(200, json), body],
  'in two pieces': (body, { at }) => [head(200, json, `content-length: ${body.length}`), ...cutAt(body, at)],
}
const broken: Readonly<Record<string, Send>> = {
  'zip cut off': (body, { at }) => long(cut(zipped(body), at), gzip),
  'zip damaged': (body, { at }) => long(flipped(zipped(body), at), gzip),
  'zipped twice': body => long(zipped(zipped(body)), gzip),
  'two zips': body => long(Buffer.concat([zipped(body), zipped(body)]), gzip),
  'something behind the zip': body => long(Buffer.concat([zipped(body), Buffer.from('garbage')]), gzip),
  'said to be zipped': body => long(body, gzip),
  'not said to be zipped': body => long(zipped(body)),
  brotli: body => long(brotliCompressSync(body, { params: { 1: 1 } }), 'content-encoding: br'),
  'an encoding that is none': body => long(body, 'content-encoding: zq7'),
  'longer than said': body => [head(200, json, `content-length: ${body.length - 10}`), body],
  'shorter than said': body => [head(200, json, `content-length: ${body.length + 10}`), body],
  'cut off': (body, { at }) => [head(200, json, `content-length: ${body.length}`), cut(body, at)],
  'a chunk that is none': (body, { at }) => [chunked, chunk(cut(body, at)), 'zz\r\n'],
  'another status': (body, { status }) => [
    head(status, json, `content-length: ${body.length}`, 'location: /v1/forecast', 'retry-after: 1'),
    body,
  ],
  'a page of HTML': (_, { status }) => [
    head(status, 'content-type: text/html'),
    '<html><body>502</body></html>',
  ],
  'an error of its own': (_, { status }) => [head(status, json), failure],
  // The other kinds of 429 rightly stop all requests for a minute or a day, which would end the run.
  'too busy': () => [head(429, json), busy],
  nothing: () => long(Buffer.alloc(0)),
  'no head': body => [body],
  'a head that is none': body => ['HTTP/1.1 two hundred\r\n\r\n', body],
  'a large head': body => [head(200, json, `x: ${'y'.repeat(100_000)}`), body],
  'two lengths': body => long(body, 'content-length: 3'),
  'a reset': () => [],
}

const statuses = words('201 204 206 301 302 304 307 400 401 403 404 408 413 418 500 502 503 504 599')
const wiresOf = (kinds: readonly string[]): Arbitrary<Wire> =>
  fc.record({ kind: fc.constantFrom(...kinds), at: share, status: fc.constantFrom(...statuses.map(Number)) })
export const rightWires = wiresOf(Object.keys(intact))
export const badWires = wiresOf(Object.keys(broken))

/** Whether the body arrives unchanged; if not, only correct weather may be served. */
export const isIntact = ({ kind }: Wire): boolean => kind in intact
export const sent = (body: Buffer, wire: Wire): readonly Buffer[] =>
  ((intact[wire.kind] ?? broken[wire.kind])?.(body, wire) ?? []).map(part => Buffer.from(part as string))
