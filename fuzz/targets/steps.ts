// The steps of a client on one raw connection: whole requests, requests with one fault each, bodies in every framing, and noise.
// Each says which responses it may get; sockets.ts sends and checks them, streams.ts does over TLS.

import fc, { type Arbitrary } from 'fast-check'
import type { Ending } from '../http/conversation.ts'
import { keyPlaceholder, marker, type RequestText, requestText } from '../http/request-text.ts'
import { indexAt, joined, noise, parts, pick, repeated, share, upTo, words } from '../target.ts'

/** What may come last on a connection. */
export type Step = {
  readonly kind: string
  /** In Latin-1. */
  readonly text: string
  /** The allowed statuses of its response; undefined where any status of the contract is allowed, or none. */
  readonly statuses?: readonly number[]
  /** The maximum number of responses. */
  readonly most: number
  readonly ending: Ending
  /** Whether a response may have no body because the request was HEAD. */
  readonly isHead?: boolean
}

const wrongKey = 'x-api-key: svc_live_00000000000000000000000000000000000000'
const weather = '/api/v1/weather/district/3026'
const detail = '/api/v1/locations/district/3026'
const headersOf = (...headers: string[]) => ({ target: detail, headers })

/** Requests that leave the connection open, and the one status of each. */
export const requests: Readonly<Record<string, readonly [RequestText, number]>> = {
  weather: [{ target: weather }, 200],
  forecast: [{ target: '/api/v1/forecast/division/10?days=1' }, 200],
  list: [{ target: '/api/v1/locations?type=division&limit=2' }, 200],
  point: [{ target: '/api/v1/weather/coords/23.7/90.4?lang=en' }, 200],
  zipped: [{ target: weather, headers: ['accept-encoding: gzip'] }, 200],
  brotli: [headersOf('accept-encoding: br'), 200],
  known: [headersOf('if-none-match: *'), 304],
  head: [{ method: 'HEAD', target: weather }, 200],
  'head of nothing': [{ method: 'HEAD', target: '/nothing' }, 404],
  'wrong key': [{ key: wrongKey }, 401],
  'no key': [{ key: null }, 401],
  'bad path': [{ target: '/api/v1/nothing/%E0%A6%A2' }, 404],
  'bad encoding': [{ target: '/api/v1/weather/%zz/1' }, 400],
  'bad parameter': [{ target: '/api/v1/forecast/district/3026?days=8' }, 400],
  'no place': [{ target: '/api/v1/weather/district/1' }, 404],
  post: [{ method: 'POST', target: '/api/v1/locations' }, 405],
}

type Parts = { readonly [Name in keyof RequestText]: Arbitrary<RequestText[Name]> | RequestText[Name] }
/** A request with some parts that are given or generated; all else is right. */
const request = (given: Parts = {}): Arbitrary<string> => {
  const target = pick(detail, '/api/v1/locations?type=division', `${weather}?lang=en`)
  const all = Object.entries({ target, ...given }).map(([name, part]) => [
    name,
    part instanceof fc.Arbitrary ? part : fc.constant(part),
  ])
  return fc.record(Object.fromEntries(all)).map(made => requestText(made as RequestText))
}

type Shape = Arbitrary<Omit<Step, 'kind'>>
/** @param statuses what it may be answered; undefined where that is open */
const shape = (text: Arbitrary<string>, statuses?: readonly number[], more: Partial<Step> = {}): Shape =>
  text.map(text =>
    statuses
      ? { text, statuses, most: 1, ending: 'answers', ...more }
      : { text, most: 2, ending: 'quiet', ...more },
  )
const ok = (given?: Parts, more?: Partial<Step>): Shape => shape(request(given), [200], more)
/** What HTTP does not allow. */
const refused = (given: Parts): Shape => shape(request(given), [400])
/** What has one response, or none. */
const once = (text: Arbitrary<string>): Shape => shape(text, undefined, { most: 1 })
const headers = (name: string, ...values: string[]): Arbitrary<string[]> =>
  pick(...values).map(value => [`${name}: ${value}`])

const headerLine = joined(
  ...['x-', pick('a', 'trace', 'Forwarded-For', 'Real-Ip', marker), ': '],
  fc.oneof(pick('1', marker, '"quoted"', '/%0d%0aSet-Cookie: a=b'), repeated('a', 0, 300)),
)
const oneLine = request({ headers: fc.tuple(headerLine) })
const hello = { headers: ['content-length: 5'], body: 'hello' }
const coded = 'transfer-encoding: chunked'
const chunked = { method: 'POST', headers: [coded] }
const getOrPost = pick('GET', 'POST')

/** A body that would be a request of its own if anyone lost count, in some framings: nothing behind it is answered. */
const framed = (statuses: readonly number[] | undefined, ...framings: string[]): Shape => {
  const text = fc
    .tuple(getOrPost, pick(...framings), share, oneLine)
    .map(([method, framing, place, body]) => {
      const at = indexAt(body.length, place)
      const chunks = [body.slice(0, at), body.slice(at)].filter(chunk => chunk !== '')
      const chunkText = (extension: string, trailer: string) =>
        `${chunks.map(chunk => `${chunk.length.toString(16)}${extension}\r\n${chunk}\r\n`).join('')}0\r\n${trailer}\r\n`
      const sent = framing.includes('#')
        ? body
        : chunkText(framing.includes('trailer') ? ';x=y' : '', framing.includes('trailer') ? 'x: y\r\n' : '')
      const headers = framing.replaceAll('#', String(body.length)).split('\r\n')
      return requestText({ method, target: detail, headers, body: sent }) + requestText({})
    })
  return statuses ? shape(text, statuses) : once(text)
}
const wholeFramings = parts(`content-length: #|${coded}|Transfer-Encoding: CHUNKED|${coded}\r\ntrailer: x|
  content-length: #\r\nexpect: 100-continue|${coded}\r\nconnection: transfer-encoding, te\r\nte: trailers|
  content-length: #\r\nconnection: content-length|content-length: #\r\nconnection: upgrade\r\nupgrade: h2c`)
const oddFramings =
  parts(`content-length: #\r\n${coded}|content-length: 0\r\ncontent-length: #|content-length: +#|
  content-length: #, #|content-length: 0x#|transfer-encoding:\r\n chunked|transfer-encoding: x\r\n chunked|
  transfer-encoding : chunked| ${coded}|x: y\n${coded}|transfer-encoding: chunked\x0b|transfer-encoding: ,|
  ${coded}\r\ntransfer-encoding: identity|${coded}\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c`)

const badChunks =
  parts(`5\r\nhel|zz\r\nhello\r\n|5 \r\nhello\r\n0\r\n\r\n|-5\r\nhello\r\n|5\r\nhelloX\r\n0\r\n\r\n|
  5\nhello\n0\n\n|ffffffffffffffffff\r\n|5;${'e'.repeat(20_000)}\r\nhello\r\n0\r\n\r\n|0\r\nx y: 1\r\n\r\n|
  0x5\r\nhello\r\n0\r\n\r\n|5\r\nhello0\r\n\r\n|\r\n\r\n|5\r\nhello\r\nzz\r\nhello\r\n`)
const badHeaders =
  parts(`no colon at all|x y: 1|: no name|x : 1|${marker}\x00: 1|x\xe4: 1|(x): 1|x: 1\x00|x: \x01|
  x: a\rb|x: \x7f|@: 1`)
const badTargets = parts(`/\xe0\xa6\xa2|/\x80|/a b|/\x00|/a\x7f|/\t||api/v1|\\api\\v1|/<\x01>`)
const badMethods = parts(`get|GE T|G\x00T|BREW|${'M'.repeat(500)}|GET/|"GET"|GET:|\xffGET|PRI`)
const badLengths = parts(`+5|-1|0x5|5, 6|5 5|1e1|five|99999999999999999999|5;|5,|\xd9\xa5`)
const badCodings = parts(`chunked, identity|chunked, chunked|gzip, deflate|identity|gzip|xchunked|chunkedx|
  "chunked"|chunked;q=1`)
const badVersions = parts('HTTP/1.1 x|HTTP/2.0|HTTP/3.0|HTTP/0.9|HTTP/1|HTTP/01.1|HTTP/1.10|http/1.1|ICY/1.1')
const badHosts = words(`x@y x/y x?y x#y <x> x:port [::1 x:1:2 ${marker}\\ x,y "x" x:-1`)
const badIds = parts(`${marker} x|"${marker}"|<${marker}>|${marker};|${'x'.repeat(129)}|${marker}\xe4`)
const otherProtocols = parts(`\x16\x03\x01\x02\x00\x01\x00\x01\xfc|PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n|
  *1\r\n$4\r\nPING\r\n|SSH-2.0-x\r\n|EHLO x\r\n|\x05\x01\x00|PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n`)
const garbage = parts(`hello there\r\n\r\n|GET / HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n|GET /\r\n|GET\r\n`)
const special = parts(`\r|\n|\0| |\t|:|\r\n|\r\n\r\n|%|\xff|HTTP/1.1|${marker}`)

const edits = fc.array(
  fc.tuple(pick(...words('add cut repeat flip noise')), share, upTo(1, 8), pick(...special), noise(1, 8)),
  { minLength: 1, maxLength: 6 },
)
/** A few changes of bytes in a text. */
const damaged = (given: Arbitrary<string>): Shape => {
  const text = fc.tuple(given, edits).map(([whole, all]) =>
    all.reduce((text, [kind, place, length, added, bytes]) => {
      const at = indexAt(text.length + 1, place)
      const [before, behind] = [text.slice(0, at), text.slice(at)]
      if (kind === 'add') return before + added + behind
      if (kind === 'cut') return before + behind.slice(length)
      if (kind === 'repeat') return before + behind.slice(0, length * 4) + behind
      if (kind === 'noise') return before + bytes + behind.slice(bytes.length)
      const flipped = (text.charCodeAt(at) || 0) ^ (1 << (length - 1))
      return before + String.fromCharCode(flipped) + behind.slice(1)
    }, whole),
  )
  return shape(text, undefined, { most: 3 })
}
const cutOff = fc
  .tuple(oneLine, share, pick<Ending[]>('half-close', 'reset', 'close'))
  .map(([text, place, ending]) => ({
    text: text.slice(0, 1 + indexAt(text.length - 2, place)),
    most: 1,
    ending,
  }))
const manyHeaders = upTo(50, 3_000).map(many =>
  Array.from({ length: many }, (_, i) => `${marker}-${i}: ${i % 10}`),
)
const tags = pick('*', '"', `W/"${marker}"`, ','.repeat(2_000), `"${'a'.repeat(5_000)}"`)
const codings = pick('gzip', 'br', '*;q=0', `${marker}, gzip;q=0.5`, 'gzip;q='.repeat(300), 'identity;q=0')
const otherMethods = words('POST PUT DELETE OPTIONS PATCH TRACE PROPFIND PURGE M-SEARCH')

const shapes: Readonly<Record<string, Shape>> = {
  good: ok({ headers: fc.array(headerLine, { maxLength: 8 }) }),
  'good, with blank lines before': shape(joined(pick('\r\n', '\r\n\r\n'), request()), [200]),
  'names in any case': ok({ host: 'HoSt: x', key: `X-API-KEY:\t ${keyPlaceholder} \t` }),
  'absolute target': ok({ target: `http://x${detail}` }),
  'HTTP/1.0': ok({ version: 'HTTP/1.0', host: pick(null, 'host: x') }, { ending: 'close' }),
  'connection close, then garbage': shape(
    joined(request({ headers: ['connection: close'] }), pick('', 'hello\r\n\r\n')),
    [200],
    { ending: 'close' },
  ),
  upgrade: ok({
    headers: pick('websocket', 'h2c', 'TLS/1.3').map(to => ['connection: upgrade', `upgrade: ${to}`]),
  }),
  expect: ok({
    headers: pick('100-continue', '100-Continue', 'miracles', marker).map(to => [
      `expect: ${to}`,
      ...hello.headers,
    ]),
    body: 'hello',
  }),
  'a framed body': framed([200, 405], ...wholeFramings),
  'an odd framing': framed(undefined, ...oddFramings),
  'other methods': shape(request({ ...hello, method: pick(...otherMethods) }), [405]),
  'query method': shape(request({ ...hello, method: 'QUERY' }), [405, 400]),
  'OPTIONS *': shape(request({ method: 'OPTIONS', target: '*' }), [405, 404, 400]),
  connect: shape(request({ method: 'CONNECT', target: pick('x:443', '/', 'x') }), [405, 400], {
    ending: 'close',
  }),
  head: ok({ method: 'HEAD' }, { isHead: true }),
  'half-closed': shape(request(), undefined, { most: 1, ending: 'half-close' }),
  'cut off': cutOff,
  reset: shape(fc.oneof(request(), noise(1, 400), request({ method: 'CONNECT' })), undefined, {
    ending: 'reset',
  }),
  noise: shape(joined(noise(1, 400), pick('', '\r\n\r\n'))),
  'TLS and others': once(pick(...otherProtocols)),
  damaged: damaged(request({ headers: fc.tuple(headerLine, headerLine) })),
  'damaged with a body': damaged(request({ ...chunked, body: '5\r\nhello\r\n0\r\n\r\n' })),
  garbage: shape(pick(...garbage), [400], { ending: 'close' }),
  'two hosts': refused({ headers: headers('host', 'x', 'y', marker) }),
  'a host that is none': refused({ host: joined('host: ', pick('a b', ...badHosts)) }),
  'no host': refused({ host: pick(null, 'host:', 'host:  ') }),
  'a version that is none': refused({ version: pick(...badVersions) }),
  'a coding that is none': refused({
    method: getOrPost,
    headers: headers('transfer-encoding', ...badCodings),
  }),
  'chunked in HTTP/1.0': refused({ ...chunked, method: getOrPost, version: 'HTTP/1.0', body: '0\r\n\r\n' }),
  'a length and a coding': refused({ headers: pick([...hello.headers, coded], [coded, ...hello.headers]) }),
  'a length that is none': refused({ headers: headers('content-length', ...badLengths) }),
  'two lengths': refused({ headers: ['content-length: 5', 'content-length: 6'], body: 'hello!' }),
  'a header that is none': refused({ headers: fc.tuple(headerLine, pick(...badHeaders)) }),
  'a target that is none': refused({ target: pick(...badTargets) }),
  'a method that is none': refused({ method: pick(...badMethods) }),
  'folded header': shape(request({ headers: pick(['x-long: a', ' b'], ['x-long: a', '\tb']) }), [200, 400]),
  'bare line feeds': once(oneLine.map(text => text.replaceAll('\r\n', '\n'))),
  'one bare carriage return': once(request().map(text => text.replace('\r\nhost', '\rhost'))),
  // Answered before its body is read, or refused because of it; one response in either case.
  'bad chunks': once(request({ ...chunked, body: pick(...badChunks) })),
  'many headers': once(request({ headers: manyHeaders })),
  'large header': once(request({ headers: fc.tuple(joined('x: ', repeated(marker, 100, 20_000))) })),
  'large target': once(request({ target: joined('/api/v1/', repeated(marker, 100, 20_000)) })),
  'large key': shape(request({ key: joined('x-api-key: svc_live_', repeated('a', 1, 14_000)) }), [401]),
  'two keys': shape(request({ headers: headers('x-api-key', keyPlaceholder, marker, '') }), [401, 400]),
  'an id that is a key': ok({ headers: [`x-request-id: ${keyPlaceholder}`] }),
  'an id that is none': shape(request({ headers: headers('x-request-id', ...badIds) }), [200, 400]),
  'tag and encoding': shape(
    request({ headers: fc.tuple(joined('if-none-match: ', tags), joined('accept-encoding: ', codings)) }),
    [200, 304],
  ),
}

/** A step of any kind. */
export const anyStep: Arbitrary<Step> = fc.oneof(
  ...Object.entries(shapes).map(([kind, of]) => of.map(made => ({ kind, ...made }))),
)
