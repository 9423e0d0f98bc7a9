// The kinds of bytes for a raw socket: valid requests, requests with one fault each, and noise. Each says how many responses
// it may get and which; sockets.ts sends and checks them. Longer than 300 lines, because it is a list of shapes.

import { keyLength } from '../../src/keys/key-form.ts'
import { marker } from '../http/answer-rules.ts'
import { keyPlaceholder, type RequestText, requestText } from '../http/request-text.ts'
import type { Random } from '../random.ts'

/** A generated shape: chunks in Latin-1 that can be left out one by one, and the responses that are allowed. */
export type Shaped = {
  readonly pieces: readonly string[]
  /** The allowed statuses of each response in turn; undefined where any status of the contract is allowed. */
  readonly statuses?: readonly (readonly number[])[]
  /** The maximum number of responses, where `statuses` does not give it. */
  readonly most?: number
  readonly ending?: 'answers' | 'close' | 'quiet' | 'half-close' | 'reset'
  /** Whether a response may have no body because the request was HEAD. */
  readonly isHead?: boolean
}

type Shape = (random: Random) => Shaped

const targets = [
  '/api/v1/locations/district/3026',
  '/api/v1/locations?type=division',
  '/api/v1/weather/district/3026?lang=en',
  '/api/v1/forecast/district/3026?days=2',
] as const

const someTarget = (random: Random): string => random.pick(targets)
const good = (random: Random, more: Partial<RequestText> = {}): string =>
  requestText({ target: someTarget(random), ...more })
const ok = [200] as const
const refused = [400] as const

const one = (text: string, statuses: readonly number[] | undefined, more: Partial<Shaped> = {}): Shaped => ({
  // Split by lines, so that shrinking keeps the lines that matter.
  pieces: text.split(/(?<=\r\n)/),
  ...(statuses
    ? { statuses: [statuses], ending: 'answers' as const }
    : { most: 2, ending: 'quiet' as const }),
  ...more,
})

const headerLine = (random: Random): string =>
  `x-${random.pick(['a', 'trace', 'Forwarded-For', 'Real-Ip', marker])}: ${random.pick(['1', marker, 'a'.repeat(random.between(0, 300)), '"quoted"', '/%0d%0aSet-Cookie: a=b'])}`

/** A method, target, version or header that HTTP does not allow; the request is refused. */
const refusedAs =
  (make: (random: Random) => Partial<RequestText>): Shape =>
  random =>
    one(good(random, make(random)), refused)

const badHosts = [
  'a b',
  'x@y',
  'x/y',
  'x?y',
  'x#y',
  '<x>',
  'x:port',
  '[::1',
  'x:1:2',
  `${marker}\\`,
  'x,y',
  '"x"',
  'x:-1',
]
const badVersions = [
  'HTTP/2.0',
  'HTTP/3.0',
  'HTTP/0.9',
  'HTTP/1',
  'HTTP/01.1',
  'HTTP/1.10',
  'http/1.1',
  'HTTP/9.9',
  'ICY/1.1',
  'HTTP/1.1 x',
]
const badCodings = [
  'identity',
  'gzip',
  'chunked, identity',
  'chunked, chunked',
  'xchunked',
  'chunkedx',
  '"chunked"',
  'gzip, deflate',
  'chunked;q=1',
]
/** Text as its UTF-8 bytes, because the socket is written in Latin-1. */
const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

const badLengths = [
  '+5',
  '-1',
  '0x5',
  '5, 6',
  '5 5',
  '1e1',
  'five',
  '99999999999999999999',
  '5;',
  '5,',
  utf8('٥'),
]
const badHeaders = [
  'no colon at all',
  'x y: 1',
  ': no name',
  'x : 1',
  `${marker}\x00: 1`,
  'x\xe4: 1',
  '(x): 1',
  'x: 1\x00',
  'x: \x01',
  'x: a\rb',
  'x: \x7f',
  '@: 1',
]
const badTargets = [
  utf8('/ঢাকা'),
  '/\x80',
  '/a b',
  '/\x00',
  '/a\x7f',
  '/\t',
  '',
  'api/v1',
  '\\api\\v1',
  '/<\x01>',
]
const badMethods = [
  'get',
  'GE T',
  'G\x00T',
  'BREW',
  'M'.repeat(500),
  'GET/',
  '"GET"',
  'GET:',
  '\xffGET',
  'PRI',
]

const chunkEnds = [
  '5\r\nhel',
  'zz\r\nhello\r\n',
  '5 \r\nhello\r\n0\r\n\r\n',
  '-5\r\nhello\r\n',
  '5\r\nhelloX\r\n0\r\n\r\n',
  '5\nhello\n0\n\n',
  'ffffffffffffffffff\r\n',
  `5;${'e'.repeat(20_000)}\r\nhello\r\n0\r\n\r\n`,
  '0\r\nx y: 1\r\n\r\n',
  '0x5\r\nhello\r\n0\r\n\r\n',
  '5\r\nhello0\r\n\r\n',
  '\r\n\r\n',
] as const

const noise = (random: Random): string => random.bytes(random.between(1, 400)).toString('latin1')

/** A few random byte changes in a text. */
const damaged = (text: string, random: Random): string => {
  let now = text
  for (let i = random.between(1, 6); i > 0; i--) {
    const at = random.between(0, now.length)
    const run = random.between(1, 8)
    const special = random.pick([
      '\r',
      '\n',
      '\0',
      ' ',
      '\t',
      ':',
      '\r\n',
      '\r\n\r\n',
      '%',
      '\xff',
      'HTTP/1.1',
      marker,
    ])
    now = random.pick([
      () => now.slice(0, at) + special + now.slice(at),
      () => now.slice(0, at) + now.slice(at + run),
      () => now.slice(0, at) + now.slice(at, at + run * 4) + now.slice(at),
      () =>
        now.slice(0, at) +
        String.fromCharCode((now.charCodeAt(at) || 0) ^ (1 << random.between(0, 7))) +
        now.slice(at + 1),
      () => now.slice(0, at) + noise(random).slice(0, run) + now.slice(at + run),
    ])()
  }
  return now
}

export const shapes: Readonly<Record<string, Shape>> = {
  good: random =>
    one(
      good(random, { headers: Array.from({ length: random.between(0, 8) }, () => headerLine(random)) }),
      ok,
    ),
  'good, with blank lines before': random => one(`${'\r\n'.repeat(random.between(1, 2))}${good(random)}`, ok),
  'names in any case': random =>
    one(good(random, { host: 'HoSt: x', key: `X-API-KEY:${keyPlaceholder}` }), ok),
  'absolute target': random => one(good(random, { target: `http://x${someTarget(random)}` }), ok),
  'HTTP/1.0': random =>
    one(good(random, { version: 'HTTP/1.0', host: random.pick([null, 'host: x']) }), ok, { ending: 'close' }),
  'connection close': random =>
    one(good(random, { headers: ['connection: close'] }), ok, { ending: 'close' }),
  upgrade: random =>
    one(
      good(random, {
        headers: [
          `connection: upgrade${random.pick(['', ', HTTP2-Settings'])}`,
          `upgrade: ${random.pick(['websocket', 'h2c', 'TLS/1.3', marker])}`,
        ],
      }),
      ok,
    ),
  'expect with a body': random =>
    one(
      good(random, {
        headers: [
          `expect: ${random.pick(['100-continue', '100-Continue', 'miracles', marker])}`,
          'content-length: 5',
        ],
        body: 'hello',
      }),
      ok,
    ),
  'a body that looks like a request': random => {
    const body = good(random)
    return {
      pieces: [
        good(random, {
          headers: [`content-length: ${body.length - keyPlaceholder.length + keyLength}`],
          body,
        }),
        good(random),
      ],
      // Neither what the body looks like nor what follows it is answered.
      statuses: [ok],
    }
  },
  'other methods': random => {
    const method = random.pick([
      'POST',
      'PUT',
      'DELETE',
      'OPTIONS',
      'PATCH',
      'TRACE',
      'PROPFIND',
      'PURGE',
      'M-SEARCH',
      'QUERY',
    ])
    return one(
      good(random, { method, headers: ['content-length: 5'], body: 'hello' }),
      method === 'QUERY' ? [405, 400] : [405],
    )
  },
  'OPTIONS *': random => one(good(random, { method: 'OPTIONS', target: '*' }), [405, 404, 400]),
  connect: random =>
    one(good(random, { method: 'CONNECT', target: random.pick(['x:443', '/', 'x']) }), [405, 400], {
      ending: 'close',
    }),
  head: random => one(good(random, { method: 'HEAD' }), ok, { isHead: true }),
  'half-closed': random => one(good(random), undefined, { most: 1, ending: 'half-close' }),
  'cut off': random => {
    const text = good(random, { headers: [headerLine(random)] })
    return one(text.slice(0, random.between(1, text.length - 1)), undefined, {
      most: 1,
      ending: random.pick(['half-close', 'reset', 'close']),
    })
  },
  reset: random =>
    one(
      random.pick([good(random), noise(random), good(random, { method: 'CONNECT', target: 'x:1' })]),
      undefined,
      { ending: 'reset' },
    ),
  noise: random => one(noise(random) + random.pick(['', '\r\n\r\n']), undefined, { ending: 'quiet' }),
  'TLS and others': random =>
    one(
      random.pick([
        '\x16\x03\x01\x02\x00\x01\x00\x01\xfc',
        'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
        '*1\r\n$4\r\nPING\r\n',
        'SSH-2.0-x\r\n',
        'EHLO x\r\n',
        '\x05\x01\x00',
        'PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n',
      ]),
      undefined,
      { most: 1 },
    ),
  damaged: random =>
    one(damaged(good(random, { headers: [headerLine(random), headerLine(random)] }), random), undefined, {
      most: 3,
    }),
  'damaged with a body': random =>
    one(
      damaged(
        good(random, {
          method: 'POST',
          headers: ['transfer-encoding: chunked'],
          body: '5\r\nhello\r\n0\r\n\r\n',
        }),
        random,
      ),
      undefined,
      { most: 3 },
    ),
  'two hosts': random =>
    one(good(random, { headers: [`host: ${random.pick(['x', 'y', marker])}`] }), refused),
  'a host that is none': refusedAs(random => ({ host: `host: ${random.pick(badHosts)}` })),
  'no host': refusedAs(random => ({ host: random.pick([null, 'host:', 'host:  ']) })),
  'a version that is none': refusedAs(random => ({ version: random.pick(badVersions) })),
  'HTTP/0.9': random =>
    one(random.pick(['GET /\r\n', 'GET /api/v1/locations\r\n\r\n', 'GET\r\n\r\n']), refused),
  'a coding that is none': refusedAs(random => ({
    method: random.pick(['GET', 'POST']),
    headers: [`transfer-encoding: ${random.pick(badCodings)}`],
  })),
  'chunked in HTTP/1.0': refusedAs(random => ({
    method: random.pick(['GET', 'POST']),
    version: 'HTTP/1.0',
    headers: ['transfer-encoding: chunked'],
    body: '0\r\n\r\n',
  })),
  'a length and a coding': refusedAs(random => ({
    headers: random.chance(0.5)
      ? ['content-length: 5', 'transfer-encoding: chunked']
      : ['transfer-encoding: chunked', 'content-length: 5'],
    body: '0\r\n\r\n',
  })),
  'a length that is none': refusedAs(random => ({ headers: [`content-length: ${random.pick(badLengths)}`] })),
  'two lengths': refusedAs(() => ({ headers: ['content-length: 5', 'content-length: 6'], body: 'hello!' })),
  'a header that is none': refusedAs(random => ({ headers: [headerLine(random), random.pick(badHeaders)] })),
  'a target that is none': refusedAs(random => ({ target: random.pick(badTargets) })),
  'a method that is none': refusedAs(random => ({ method: random.pick(badMethods) })),
  'folded header': random =>
    one(good(random, { headers: ['x-long: a', random.pick([' b', '\tb', ` ${marker}`])] }), [200, 400]),
  'bare line feeds': random =>
    one(good(random, { headers: [headerLine(random)] }).replaceAll('\r\n', '\n'), undefined, { most: 1 }),
  'one bare carriage return': random =>
    one(good(random).replace('\r\nhost', '\rhost'), undefined, { most: 1 }),
  'bad chunks': random =>
    // Answered before its body is read, or refused because of it; one response in either case.
    one(
      good(random, { method: 'POST', headers: ['transfer-encoding: chunked'], body: random.pick(chunkEnds) }),
      undefined,
      { most: 1 },
    ),
  'many headers': random =>
    one(
      good(random, {
        headers: Array.from({ length: random.between(50, 3_000) }, (_, i) => `${marker}-${i}: ${i % 10}`),
      }),
      undefined,
      { most: 1 },
    ),
  'large header': random =>
    one(good(random, { headers: [`x: ${marker.repeat(random.between(100, 20_000))}`] }), undefined, {
      most: 1,
    }),
  'large target': random =>
    one(good(random, { target: `/api/v1/${marker.repeat(random.between(100, 20_000))}` }), undefined, {
      most: 1,
    }),
  'large key': random =>
    one(good(random, { key: `x-api-key: svc_live_${'a'.repeat(random.between(1, 14_000))}` }), [401]),
  'two keys': random =>
    one(good(random, { headers: [`x-api-key: ${random.pick([keyPlaceholder, marker, ''])}`] }), [401, 400]),
  'an id that is a key': random => one(good(random, { headers: [`x-request-id: ${keyPlaceholder}`] }), ok),
  'an id that is none': random =>
    one(
      good(random, {
        headers: [
          `x-request-id: ${random.pick([`${marker} x`, `"${marker}"`, `<${marker}>`, `${marker};`, 'x'.repeat(129), `${marker}\xe4`])}`,
        ],
      }),
      [200, 400],
    ),
  'blanks around values': random => one(good(random, { key: `x-api-key:\t ${keyPlaceholder} \t` }), ok),
  'tag and encoding': random =>
    one(
      good(random, {
        headers: [
          `if-none-match: ${random.pick(['*', '"', `W/"${marker}"`, ','.repeat(2_000), `"${'a'.repeat(5_000)}"`])}`,
          `accept-encoding: ${random.pick(['gzip', 'br', '*;q=0', `${marker}, gzip;q=0.5`, 'gzip;q='.repeat(300), 'identity;q=0'])}`,
        ],
      }),
      [200, 304],
    ),
}
