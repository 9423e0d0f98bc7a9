// The framings of the target `operators`: requests of outsiders whose bodies look like requests, framed in every way that software
// disagrees about, and those of operators, framed in every way that HTTP allows. Generates text alone.

import type { Random } from '../random.ts'

export const tokenPlaceholder = '<TOKEN>'
// As long as an id of a key: lengths and chunks are worked out before the ids are known.
export const victimPlaceholder = 'key_<<<VICTIM>>>'
export const ownPlaceholder = 'key_<<<<<OWN>>>>'

type Framed = {
  readonly headers: readonly string[]
  readonly body: string
  /** Whether every reader of HTTP agrees where it ends; otherwise it may get a 400 and the end of the connection. */
  readonly isWhole: boolean
  readonly version?: string
}

type Framing = (body: string, random: Random) => Framed

const length = (body: string): string => `content-length: ${body.length}`
const coded = 'transfer-encoding: chunked'

/** In up to 4 chunks. */
const chunks = (body: string, random: Random, extension = '', trailers = ''): string => {
  const at = Array.from({ length: random.between(0, 3) }, () => random.between(0, body.length))
  const places = [0, ...at, body.length].toSorted((one, other) => one - other)
  const parts = places.slice(1).map((to, i) => body.slice(places[i], to))
  const lines = parts
    .filter(part => part !== '')
    .map(part => `${hex(part.length)}${extension}\r\n${part}\r\n`)
  return `${lines.join('')}0${extension}\r\n${trailers}\r\n`
}
const hex = (value: number): string => value.toString(16)

const whole = (headers: readonly string[], body: string): Framed => ({ headers, body, isWhole: true })
const odd = (headers: readonly string[], body: string): Framed => ({ headers, body, isWhole: false })

/** What every reader understands alike. */
export const wholeFramings: Readonly<Record<string, Framing>> = {
  length: body => whole([length(body)], body),
  chunked: (body, random) => whole([coded], chunks(body, random)),
  'chunked, in other letters': (body, random) => whole(['Transfer-Encoding: CHUNKED'], chunks(body, random)),
  'extensions of chunks': (body, random) => whole([coded], chunks(body, random, ';x=y')),
  trailers: (body, random) =>
    whole([coded, 'trailer: authorization'], chunks(body, random, '', 'authorization: Bearer x\r\n')),
  'expect 100-continue': (body, random) =>
    random.chance(0.5)
      ? whole([length(body), 'expect: 100-continue'], body)
      : whole([coded, 'expect: 100-continue'], chunks(body, random)),
  'expect something': body => whole([length(body), 'expect: something'], body),
  'connection names a header': (body, random) =>
    whole(
      [
        length(body),
        `connection: ${random.pick(['x', 'x, keep-alive', 'content-length', 'host', 'authorization', 'transfer-encoding', 'x-forwarded-for'])}`,
        'x: y',
      ],
      body,
    ),
  'connection names the coding': (body, random) =>
    whole([coded, 'connection: transfer-encoding, te', 'te: trailers'], chunks(body, random)),
}

/** What readers disagree about. */
const oddFramings: Readonly<Record<string, Framing>> = {
  both: (body, random) =>
    random.chance(0.5)
      ? odd([length(body), coded], chunks(body, random))
      : odd([coded, `content-length: ${random.between(0, 9)}`], `0\r\n\r\n${body}`),
  'two lengths': (body, random) =>
    odd(random.some([length(body), 'content-length: 0', length(body)], 2), body),
  'odd coding': (body, random) =>
    odd(
      [
        `transfer-encoding: ${random.pick([
          'xchunked',
          'identity',
          'gzip',
          'gzip, chunked',
          'chunked, identity',
          'chunked, chunked',
          'chunked;q=1',
          '"chunked"',
          ' chunked',
          'chunked\x0b',
          '',
          ',',
        ])}`,
        ...(random.chance(0.3) ? [coded] : []),
      ],
      chunks(body, random),
    ),
  'odd length': (body, random) =>
    odd(
      [
        `content-length: ${random.pick(['+', '-', '0x', '0', '0,', `${body.length}, `, `${body.length} `])}${body.length}`,
      ],
      body,
    ),
  folded: (body, random) =>
    odd(
      [
        random.pick([
          'transfer-encoding:\r\n chunked',
          'transfer-encoding: x\r\n chunked',
          'x: y\r\n transfer-encoding: chunked',
          'content-length:\r\n 5',
        ]),
      ],
      chunks(body, random),
    ),
  'a blank in a name': (body, random) =>
    odd(
      [
        random.pick([
          'transfer-encoding : chunked',
          'transfer-encoding\t: chunked',
          ' transfer-encoding: chunked',
        ]),
      ],
      chunks(body, random),
    ),
  'bare line feeds': (body, random) => odd([`x: y\n${coded}`], chunks(body, random)),
  'odd chunks': (body, random) =>
    odd(
      [coded],
      random.pick([
        `${hex(body.length)}\n${body}\n0\n\n`,
        `0x${hex(body.length)}\r\n${body}\r\n0\r\n\r\n`,
        `-1\r\n${body}\r\n0\r\n\r\n`,
        `fffffffffffffffff\r\n${body}`,
        `${hex(body.length + 2)}\r\n${body}0\r\n\r\n`,
        `1\r\nxx${body}`,
        `0\r\n${body}`,
      ]),
    ),
  upgrade: (body, random) =>
    odd(
      [
        ...(random.chance(0.5) ? [coded] : [length(body)]),
        `connection: upgrade${random.pick(['', ', http2-settings'])}`,
        `upgrade: ${random.pick(['websocket', 'h2c', 'x'])}`,
        'http2-settings: AAMAAABkAAQAAP__',
      ],
      body,
    ),
  'http/1.0': (body, random) => ({
    ...(random.chance(0.5)
      ? odd([length(body)], body)
      : odd([coded, 'connection: keep-alive'], chunks(body, random))),
    version: 'HTTP/1.0',
  }),
  'not all of it': body => odd([`content-length: ${body.length + 50}`], body),
}

export const framings: Readonly<Record<string, Framing>> = { ...wholeFramings, ...oddFramings }

/** Bytes that do something if they are read as a request, by themselves or with the token of the next caller. */
export const payload = (random: Random): string => {
  const line = random.pick([
    `POST /keys/${victimPlaceholder}/revoke HTTP/1.1`,
    `POST /keys/${victimPlaceholder}/revoke HTTP/1.1`,
    'POST /cache/purge HTTP/1.1',
    'GET /livez HTTP/1.1',
    `GET /keys/${ownPlaceholder} HTTP/1.1`,
  ])
  const before = random.pick(['', '', '', '\r\n', '0\r\n\r\n'])
  // A second host would be refused: what comes next has one of its own.
  const end = random.pick([
    '\r\nx: ',
    '\r\nx: ',
    '\r\nhost: 127.0.0.1\r\n\r\n',
    '\r\ncontent-length: 400\r\nhost: 127.0.0.1\r\n\r\n',
  ])
  return `${before}${line}${end}`
}
