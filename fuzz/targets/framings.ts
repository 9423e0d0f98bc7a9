// The framings of the target `operators`: bodies framed in every way that HTTP allows, and in every way that software disagrees
// about. Each is a function of the body, whose length is known when it is sent.

import fc, { type Arbitrary } from 'fast-check'
import { chance, indexAt, share } from '../target.ts'

type Framed = { readonly headers: readonly string[]; readonly body: string; readonly version?: string }
type Frame = (body: string) => Framed
export type Framing = { readonly name: string; readonly frame: Frame }

const pick = fc.constantFrom
const coded = 'transfer-encoding: chunked'
const lengthOf = (body: string): string => `content-length: ${body.length}`
const hex = (value: number): string => value.toString(16)

type Chunk = (body: string, extension?: string, trailers?: string) => string
/** In up to 4 chunks. */
const chunking: Arbitrary<Chunk> = fc
  .array(share, { maxLength: 3 })
  .map(cuts => (body, extension = '', trailers = '') => {
    const places = [0, ...cuts.map(cut => indexAt(body.length, cut)), body.length].sort(
      (one, other) => one - other,
    )
    const parts = places.slice(1).map((to, i) => body.slice(places[i], to))
    const lines = parts
      .filter(part => part !== '')
      .map(part => `${hex(part.length)}${extension}\r\n${part}\r\n`)
    return `${lines.join('')}0${extension}\r\n${trailers}\r\n`
  })

const plain = (...more: string[]): Arbitrary<Frame> =>
  fc.constant(body => ({ headers: [lengthOf(body), ...more], body }))
const inChunks = (...headers: string[]): Arbitrary<Frame> =>
  chunking.map(chunk => body => ({ headers, body: chunk(body) }))
/** One of some headers before a body in chunks. */
const oddChunked = (...lines: string[]): Arbitrary<Frame> =>
  fc.tuple(pick(...lines), chunking).map(([line, chunk]) => body => ({ headers: [line], body: chunk(body) }))

const named = (all: Readonly<Record<string, Arbitrary<Frame>>>): Arbitrary<Framing> =>
  fc.oneof(...Object.entries(all).map(([name, of]) => of.map(frame => ({ name, frame }))))

/** What every reader understands alike. */
export const wholeFramings: Arbitrary<Framing> = named({
  length: plain(),
  chunked: inChunks(coded),
  'chunked, in other letters': inChunks('Transfer-Encoding: CHUNKED'),
  'extensions of chunks': chunking.map(chunk => body => ({ headers: [coded], body: chunk(body, ';x=y') })),
  trailers: chunking.map(chunk => body => ({
    headers: [coded, 'trailer: authorization'],
    body: chunk(body, '', 'authorization: Bearer x\r\n'),
  })),
  'expect 100-continue': fc.oneof(plain('expect: 100-continue'), inChunks(coded, 'expect: 100-continue')),
  'expect something': plain('expect: something'),
  'connection names a header': pick(
    ...[
      'x',
      'x, keep-alive',
      'content-length',
      'host',
      'authorization',
      'transfer-encoding',
      'x-forwarded-for',
    ],
  ).chain(name => plain(`connection: ${name}`, 'x: y')),
  'connection names the coding': inChunks(coded, 'connection: transfer-encoding, te', 'te: trailers'),
})

const oddCodings = [
  ...[
    'xchunked',
    'identity',
    'gzip',
    'gzip, chunked',
    'chunked, identity',
    'chunked, chunked',
    'chunked;q=1',
  ],
  ...['"chunked"', ' chunked', 'chunked\x0b', '', ','],
]

/** What readers disagree about: it may get a 400 and the end of the connection. */
export const oddFramings: Arbitrary<Framing> = named({
  both: fc.tuple(chunking, fc.nat(9), fc.boolean()).map(([chunk, length, isRight]) => body => ({
    headers: isRight ? [lengthOf(body), coded] : [coded, `content-length: ${length}`],
    body: isRight ? chunk(body) : `0\r\n\r\n${body}`,
  })),
  'two lengths': pick([0, 1], [1, 0], [1, 1]).map(which => body => ({
    headers: which.map(one => (one === 1 ? lengthOf(body) : 'content-length: 0')),
    body,
  })),
  'odd coding': fc
    .tuple(pick(...oddCodings), chance(30), chunking)
    .map(([coding, isTwice, chunk]) => body => ({
      headers: [`transfer-encoding: ${coding}`, ...(isTwice ? [coded] : [])],
      body: chunk(body),
    })),
  'odd length': pick('+#', '-#', '0x#', '0#', '0,#', '#, #', '# #').map(form => body => ({
    headers: [`content-length: ${form.replaceAll('#', String(body.length))}`],
    body,
  })),
  folded: oddChunked(
    'transfer-encoding:\r\n chunked',
    'transfer-encoding: x\r\n chunked',
    'x: y\r\n transfer-encoding: chunked',
    'content-length:\r\n 5',
  ),
  'a blank in a name': oddChunked(
    'transfer-encoding : chunked',
    'transfer-encoding\t: chunked',
    ' transfer-encoding: chunked',
  ),
  'bare line feeds': oddChunked(`x: y\n${coded}`),
  'odd chunks': pick<((body: string) => string)[]>(
    body => `${hex(body.length)}\n${body}\n0\n\n`,
    body => `0x${hex(body.length)}\r\n${body}\r\n0\r\n\r\n`,
    body => `-1\r\n${body}\r\n0\r\n\r\n`,
    body => `fffffffffffffffff\r\n${body}`,
    body => `${hex(body.length + 2)}\r\n${body}0\r\n\r\n`,
    body => `1\r\nxx${body}`,
    body => `0\r\n${body}`,
  ).map(write => body => ({ headers: [coded], body: write(body) })),
  upgrade: fc
    .tuple(fc.boolean(), pick('', ', http2-settings'), pick('websocket', 'h2c', 'x'))
    .map(([isCoded, more, to]) => body => ({
      headers: [
        isCoded ? coded : lengthOf(body),
        `connection: upgrade${more}`,
        `upgrade: ${to}`,
        'http2-settings: AAMAAABkAAQAAP__',
      ],
      body,
    })),
  'http/1.0': fc
    .oneof(plain(), inChunks(coded, 'connection: keep-alive'))
    .map(frame => body => ({ ...frame(body), version: 'HTTP/1.0' })),
  'not all of it': fc.constant(body => ({ headers: [`content-length: ${body.length + 50}`], body })),
})
