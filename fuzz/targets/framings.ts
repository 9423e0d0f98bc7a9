// The framings of the target `operators`: bodies framed in every way that HTTP allows, and in every way that software disagrees
// about. Each is a function of the body, whose length is known when it is sent.

import fc, { type Arbitrary } from 'fast-check'
import { indexAt, parts, pick, share } from '../target.ts'

type Framed = { readonly headers: readonly string[]; readonly body: string; readonly version?: string }
type Frame = (body: string) => Framed
export type Framing = { readonly name: string; readonly frame: Frame }

const coded = 'transfer-encoding: chunked'
const lengthOf = (body: string): string => `content-length: ${body.length}`

/** In up to 4 chunks. */
const chunking = fc
  .array(share, { maxLength: 3 })
  .map(cuts => (body: string, extension = '', trailers = '') => {
    const places = [0, ...cuts.map(cut => indexAt(body.length, cut)), body.length].sort(
      (one, other) => one - other,
    )
    const chunks = places.slice(1).map((to, i) => body.slice(places[i], to))
    const lines = chunks
      .filter(chunk => chunk !== '')
      .map(chunk => `${chunk.length.toString(16)}${extension}\r\n${chunk}\r\n`)
    return `${lines.join('')}0${extension}\r\n${trailers}\r\n`
  })

/** `#` is the length of the body. */
const plain = (...headers: string[]): Arbitrary<Frame> =>
  fc.constant(body => ({ headers: headers.map(line => line.replaceAll('#', String(body.length))), body }))
const inChunks = (...headers: string[]): Arbitrary<Frame> =>
  chunking.map(chunk => body => ({ headers, body: chunk(body) }))
const withLength = (...headers: string[]): Arbitrary<Frame> => plain('content-length: #', ...headers)
/** One of some headers before a body in chunks. */
const oddChunked = (...lines: string[]): Arbitrary<Frame> => fc.oneof(...lines.map(line => inChunks(line)))

const named = (all: Readonly<Record<string, Arbitrary<Frame>>>): Arbitrary<Framing> =>
  fc.oneof(...Object.entries(all).map(([name, of]) => of.map(frame => ({ name, frame }))))

const hopNames = parts('x|x, keep-alive|content-length|host|authorization|transfer-encoding|x-forwarded-for')
/** What every reader understands alike. */
export const wholeFramings: Arbitrary<Framing> = named({
  length: withLength(),
  chunked: inChunks(coded),
  'chunked, in other letters': inChunks('Transfer-Encoding: CHUNKED'),
  'extensions of chunks': chunking.map(chunk => body => ({ headers: [coded], body: chunk(body, ';x=y') })),
  trailers: chunking.map(chunk => body => ({
    headers: [coded, 'trailer: authorization'],
    body: chunk(body, '', 'authorization: Bearer x\r\n'),
  })),
  'expect 100-continue': fc.oneof(
    withLength('expect: 100-continue'),
    inChunks(coded, 'expect: 100-continue'),
  ),
  'expect something': withLength('expect: something'),
  'connection names a header': fc.oneof(...hopNames.map(name => withLength(`connection: ${name}`, 'x: y'))),
  'connection names the coding': inChunks(coded, 'connection: transfer-encoding, te', 'te: trailers'),
})

const oddCodings = parts(
  `xchunked|identity|gzip|gzip, chunked|chunked, identity|chunked, chunked|chunked;q=1|
  "chunked"| chunked|chunked\x0b||,`,
)
const lengths = parts('+#|-#|0x#|0#|0,#|#, #|# #').map(form => `content-length: ${form}`)
const folded = parts(
  `transfer-encoding:\r\n chunked|transfer-encoding: x\r\n chunked|
  x: y\r\n transfer-encoding: chunked|content-length:\r\n 5`,
)
const blanks = parts('transfer-encoding : chunked|transfer-encoding\t: chunked| transfer-encoding: chunked')
const upgrades = parts('upgrade: websocket|upgrade: h2c|upgrade: x')

/** What readers disagree about: it may get a 400 and the end of the connection. */
export const oddFramings: Arbitrary<Framing> = named({
  both: fc.oneof(
    chunking.map(
      (chunk): Frame =>
        body => ({ headers: [lengthOf(body), coded], body: chunk(body) }),
    ),
    fc.nat(9).map(
      (length): Frame =>
        body => ({
          headers: [coded, `content-length: ${length}`],
          body: `0\r\n\r\n${body}`,
        }),
    ),
  ),
  'two lengths': fc.oneof(
    withLength('content-length: 0'),
    plain('content-length: 0', 'content-length: #'),
    withLength('content-length: #'),
  ),
  'odd coding': fc.oneof(
    ...oddCodings.flatMap(coding =>
      [[], [], [coded]].map(more => inChunks(`transfer-encoding: ${coding}`, ...more)),
    ),
  ),
  'odd length': fc.oneof(...lengths.map(line => plain(line))),
  folded: oddChunked(...folded),
  'a blank in a name': oddChunked(...blanks),
  'bare line feeds': oddChunked(`x: y\n${coded}`),
  'odd chunks': pick<((body: string, size: string) => string)[]>(
    (body, size) => `${size}\n${body}\n0\n\n`,
    (body, size) => `0x${size}\r\n${body}\r\n0\r\n\r\n`,
    body => `-1\r\n${body}\r\n0\r\n\r\n`,
    body => `fffffffffffffffff\r\n${body}`,
    body => `${(body.length + 2).toString(16)}\r\n${body}0\r\n\r\n`,
    body => `1\r\nxx${body}`,
    body => `0\r\n${body}`,
  ).map(write => body => ({ headers: [coded], body: write(body, body.length.toString(16)) })),
  upgrade: fc.oneof(
    ...upgrades.flatMap(line => [
      plain(coded, 'connection: upgrade, http2-settings', line, 'http2-settings: AAMAAABkAAQAAP__'),
      withLength('connection: upgrade', line),
    ]),
  ),
  'http/1.0': fc
    .oneof(withLength(), inChunks(coded, 'connection: keep-alive'))
    .map(frame => body => ({ ...frame(body), version: 'HTTP/1.0' })),
  'not all of it': fc.constant(body => ({ headers: [`content-length: ${body.length + 50}`], body })),
})
