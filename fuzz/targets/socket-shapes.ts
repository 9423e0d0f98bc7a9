// The kinds of bytes for a raw socket: valid requests, requests with one fault each, and noise. Each says how many responses
// it may get and which; sockets.ts sends and checks them, streams.ts does over TLS.

import fc, { type Arbitrary } from 'fast-check'
import type { Ending } from '../http/conversation.ts'
import { keyPlaceholder, marker, type RequestText, requestText } from '../http/request-text.ts'
import { indexAt, joined, noise, parts, pick, repeated, share, upTo, words } from '../target.ts'

export type Shaped = {
  /** In Latin-1. */
  readonly text: string
  /** The allowed statuses of the response; undefined where any status of the contract is allowed. */
  readonly statuses?: readonly number[]
  /** The maximum number of responses. */
  readonly most: number
  readonly ending: Ending
  /** Whether a response may have no body because the request was HEAD. */
  readonly isHead?: boolean
}

/** Text as its UTF-8 bytes, because the socket is written in Latin-1. */
const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

const path = pick(
  '/api/v1/locations/district/3026',
  '/api/v1/locations?type=division',
  '/api/v1/weather/district/3026?lang=en',
  '/api/v1/forecast/district/3026?days=2',
)

type Parts = { readonly [Name in keyof RequestText]: Arbitrary<RequestText[Name]> | RequestText[Name] }
const isArbitrary = (value: unknown): value is Arbitrary<unknown> => value instanceof fc.Arbitrary

/** A request with some parts that are given or generated; all else is right. */
const request = (parts: Parts = {}): Arbitrary<string> =>
  fc
    .record({
      target: path,
      ...Object.fromEntries(
        Object.entries(parts).map(([name, part]) => [name, isArbitrary(part) ? part : fc.constant(part)]),
      ),
    })
    .map(made => requestText(made as RequestText))

/** @param statuses what it may be answered; undefined where that is open */
const shape = (
  text: Arbitrary<string>,
  statuses?: readonly number[],
  more: Partial<Shaped> = {},
): Arbitrary<Shaped> =>
  text.map(text => ({
    text,
    most: statuses ? 1 : 2,
    ending: statuses ? 'answers' : 'quiet',
    ...(statuses && { statuses }),
    ...more,
  }))
const ok = (parts?: Parts, more?: Partial<Shaped>): Arbitrary<Shaped> => shape(request(parts), [200], more)
/** What HTTP does not allow. */
const refused = (parts: Parts): Arbitrary<Shaped> => shape(request(parts), [400])
/** What has one response, or none. */
const once = (text: Arbitrary<string>): Arbitrary<Shaped> => shape(text, undefined, { most: 1 })
const headers = (name: string, ...values: string[]): Arbitrary<string[]> =>
  pick(...values).map(value => [`${name}: ${value}`])

const headerLine = joined(
  ...['x-', pick('a', 'trace', 'Forwarded-For', 'Real-Ip', marker), ': '],
  fc.oneof(pick('1', marker, '"quoted"', '/%0d%0aSet-Cookie: a=b'), repeated('a', 0, 300)),
)
const oneLine = request({ headers: fc.tuple(headerLine) })
const length5 = fc.constant('content-length: 5')
const hello = { headers: ['content-length: 5'], body: 'hello' }
const chunked = { method: 'POST', headers: ['transfer-encoding: chunked'] }
const getOrPost = pick('GET', 'POST')
const otherMethods = words('POST PUT DELETE OPTIONS PATCH TRACE PROPFIND PURGE M-SEARCH')

const badChunks =
  parts(`5\r\nhel|zz\r\nhello\r\n|5 \r\nhello\r\n0\r\n\r\n|-5\r\nhello\r\n|5\r\nhelloX\r\n0\r\n\r\n|
  5\nhello\n0\n\n|ffffffffffffffffff\r\n|5;${'e'.repeat(20_000)}\r\nhello\r\n0\r\n\r\n|0\r\nx y: 1\r\n\r\n|
  0x5\r\nhello\r\n0\r\n\r\n|5\r\nhello0\r\n\r\n|\r\n\r\n`)
const badHeaders =
  parts(`no colon at all|x y: 1|: no name|x : 1|${marker}\x00: 1|x\xe4: 1|(x): 1|x: 1\x00|x: \x01|
  x: a\rb|x: \x7f|@: 1`)
const badTargets = parts(`${utf8('/ঢাকা')}|/\x80|/a b|/\x00|/a\x7f|/\t||api/v1|\\api\\v1|/<\x01>`)
const badMethods = parts(`get|GE T|G\x00T|BREW|${'M'.repeat(500)}|GET/|"GET"|GET:|\xffGET|PRI`)
const badLengths = parts(`+5|-1|0x5|5, 6|5 5|1e1|five|99999999999999999999|5;|5,|${utf8('٥')}`)
const badCodings = parts(
  'chunked, identity|chunked, chunked|gzip, deflate|identity|gzip|xchunked|chunkedx|"chunked"',
)
const badVersions = parts(
  'HTTP/1.1 x|HTTP/2.0|HTTP/3.0|HTTP/0.9|HTTP/1|HTTP/01.1|HTTP/1.10|http/1.1|HTTP/9.9|ICY/1.1',
)
const badHosts = words(`x@y x/y x?y x#y <x> x:port [::1 x:1:2 ${marker}\\ x,y "x" x:-1`)
const badIds = parts(`${marker} x|"${marker}"|<${marker}>|${marker};|${'x'.repeat(129)}|${marker}\xe4`)
const otherProtocols = parts(`\x16\x03\x01\x02\x00\x01\x00\x01\xfc|PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n|
  *1\r\n$4\r\nPING\r\n|SSH-2.0-x\r\n|EHLO x\r\n|\x05\x01\x00|PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n`)
const special = parts(`\r|\n|\0| |\t|:|\r\n|\r\n\r\n|%|\xff|HTTP/1.1|${marker}`)

type Edit = readonly [kind: string, at: number, length: number, text: string, noise: string]
const edits = fc.array(
  fc.tuple(pick(...words('add cut repeat flip noise')), share, upTo(1, 8), pick(...special), noise(1, 8)),
  { minLength: 1, maxLength: 6 },
)
const edited = (text: string, [kind, place, length, added, bytes]: Edit): string => {
  const at = indexAt(text.length + 1, place)
  const [before, behind] = [text.slice(0, at), text.slice(at)]
  if (kind === 'add') return before + added + behind
  if (kind === 'cut') return before + behind.slice(length)
  if (kind === 'repeat') return before + behind.slice(0, length * 4) + behind
  if (kind === 'noise') return before + bytes + behind.slice(bytes.length)
  return before + String.fromCharCode((text.charCodeAt(at) || 0) ^ (1 << (length - 1))) + behind.slice(1)
}
/** A few changes of bytes in a text. */
const damaged = (text: Arbitrary<string>): Arbitrary<Shaped> =>
  shape(
    fc.tuple(text, edits).map(([text, all]) => all.reduce(edited, text)),
    undefined,
    { most: 3 },
  )

const shapes: Readonly<Record<string, Arbitrary<Shaped>>> = {
  good: ok({ headers: fc.array(headerLine, { maxLength: 8 }) }),
  'good, with blank lines before': shape(joined(pick('\r\n', '\r\n\r\n'), request()), [200]),
  'names in any case': ok({ host: 'HoSt: x', key: `X-API-KEY:${keyPlaceholder}` }),
  'absolute target': ok({ target: joined('http://x', path) }),
  'HTTP/1.0': ok({ version: 'HTTP/1.0', host: pick(null, 'host: x') }, { ending: 'close' }),
  'connection close': ok({ headers: ['connection: close'] }, { ending: 'close' }),
  upgrade: ok({
    headers: fc.tuple(
      pick('connection: upgrade', 'connection: upgrade, HTTP2-Settings'),
      joined('upgrade: ', pick('websocket', 'h2c', 'TLS/1.3', marker)),
    ),
  }),
  'expect with a body': ok({
    headers: fc.tuple(joined('expect: ', pick('100-continue', '100-Continue', 'miracles', marker)), length5),
    body: 'hello',
  }),
  // Neither what the body looks like nor what follows it is answered.
  'a body that looks like a request': shape(
    fc
      .tuple(request(), request())
      .map(([body, next]) => requestText({ headers: [`content-length: ${body.length}`], body }) + next),
    [200],
  ),
  'other methods': shape(request({ ...hello, method: pick(...otherMethods) }), [405]),
  'query method': shape(request({ ...hello, method: 'QUERY' }), [405, 400]),
  'OPTIONS *': shape(request({ method: 'OPTIONS', target: '*' }), [405, 404, 400]),
  connect: shape(request({ method: 'CONNECT', target: pick('x:443', '/', 'x') }), [405, 400], {
    ending: 'close',
  }),
  head: ok({ method: 'HEAD' }, { isHead: true }),
  'half-closed': shape(request(), undefined, { most: 1, ending: 'half-close' }),
  'cut off': fc
    .tuple(oneLine, share, pick<Ending[]>('half-close', 'reset', 'close'))
    .map(([text, place, ending]) => ({
      text: text.slice(0, 1 + indexAt(text.length - 2, place)),
      most: 1,
      ending,
    })),
  reset: shape(fc.oneof(request(), noise(1, 400), request({ method: 'CONNECT', target: 'x:1' })), undefined, {
    ending: 'reset',
  }),
  noise: shape(joined(noise(1, 400), pick('', '\r\n\r\n'))),
  'TLS and others': once(pick(...otherProtocols)),
  damaged: damaged(request({ headers: fc.tuple(headerLine, headerLine) })),
  'damaged with a body': damaged(request({ ...chunked, body: '5\r\nhello\r\n0\r\n\r\n' })),
  'two hosts': refused({ headers: headers('host', 'x', 'y', marker) }),
  'a host that is none': refused({ host: joined('host: ', pick('a b', ...badHosts)) }),
  'no host': refused({ host: pick(null, 'host:', 'host:  ') }),
  'a version that is none': refused({ version: pick(...badVersions) }),
  'HTTP/0.9': shape(pick('GET /\r\n', 'GET /api/v1/locations\r\n\r\n', 'GET\r\n\r\n'), [400]),
  'a coding that is none': refused({
    method: getOrPost,
    headers: headers('transfer-encoding', ...badCodings, 'chunked;q=1'),
  }),
  'chunked in HTTP/1.0': refused({ ...chunked, method: getOrPost, version: 'HTTP/1.0', body: '0\r\n\r\n' }),
  'a length and a coding': refused({
    headers: fc.shuffledSubarray([...hello.headers, ...chunked.headers], { minLength: 2 }),
    body: '0\r\n\r\n',
  }),
  'a length that is none': refused({ headers: headers('content-length', ...badLengths) }),
  'two lengths': refused({ headers: ['content-length: 5', 'content-length: 6'], body: 'hello!' }),
  'a header that is none': refused({ headers: fc.tuple(headerLine, pick(...badHeaders)) }),
  'a target that is none': refused({ target: pick(...badTargets) }),
  'a method that is none': refused({ method: pick(...badMethods) }),
  'folded header': shape(
    request({ headers: fc.tuple(fc.constant('x-long: a'), pick(' b', '\tb')) }),
    [200, 400],
  ),
  'bare line feeds': once(oneLine.map(text => text.replaceAll('\r\n', '\n'))),
  'one bare carriage return': once(request().map(text => text.replace('\r\nhost', '\rhost'))),
  // Answered before its body is read, or refused because of it; one response in either case.
  'bad chunks': once(request({ ...chunked, body: pick(...badChunks) })),
  'many headers': once(
    request({
      headers: upTo(50, 3_000).map(many =>
        Array.from({ length: many }, (_, i) => `${marker}-${i}: ${i % 10}`),
      ),
    }),
  ),
  'large header': once(request({ headers: fc.tuple(joined('x: ', repeated(marker, 100, 20_000))) })),
  'large target': once(request({ target: joined('/api/v1/', repeated(marker, 100, 20_000)) })),
  'large key': shape(request({ key: joined('x-api-key: svc_live_', repeated('a', 1, 14_000)) }), [401]),
  'two keys': shape(request({ headers: headers('x-api-key', keyPlaceholder, marker, '') }), [401, 400]),
  'an id that is a key': ok({ headers: [`x-request-id: ${keyPlaceholder}`] }),
  'an id that is none': shape(request({ headers: headers('x-request-id', ...badIds) }), [200, 400]),
  'blanks around values': ok({ key: `x-api-key:\t ${keyPlaceholder} \t` }),
  'tag and encoding': shape(
    request({
      headers: fc.tuple(
        joined(
          'if-none-match: ',
          pick('*', '"', `W/"${marker}"`, ','.repeat(2_000), `"${'a'.repeat(5_000)}"`),
        ),
        joined(
          'accept-encoding: ',
          pick('gzip', 'br', '*;q=0', `${marker}, gzip;q=0.5`, 'gzip;q='.repeat(300), 'identity;q=0'),
        ),
      ),
    }),
    [200, 304],
  ),
}

/** A shape of any kind, with its name. */
export const anyShape: Arbitrary<Shaped & { readonly kind: string }> = fc.oneof(
  ...Object.entries(shapes).map(([kind, of]) => of.map(shaped => ({ kind, ...shaped }))),
)
