// Without it a badly framed response could count as the response to another request.

import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { gorSeparator } from '../../../../tools/load/traffic/gor.ts'
import { until } from '../../../support/until.ts'
import { readAll } from '../traffic/read-all.ts'
import { ok, startTarget } from './scripted-target.ts'
import { arriving, sendSome } from './send-some.ts'

const head = (...fields: string[]): string => ['HTTP/1.1 200 OK', ...fields, '', ''].join('\r\n')
const coded = 'transfer-encoding: chunked'
const chunks = (bytes: string): string => head(coded) + bytes
const whole = chunks('2\r\n{}\r\n0\r\n\r\n')
/** An answer for nobody; with a status that no answer of the target has. */
const surplus = ok('{}').replace('200 OK', '418 Surplus')

const refused: Record<string, string> = {
  'an answer behind the last chunk': whole + surplus,
  'the beginning of one behind the last chunk': `${whole}HTT`,
  'an answer behind trailers': chunks(`0\r\nx: y\r\n\r\n${surplus}`),
  'an answer behind a length': ok() + surplus,
  'a size with letters': chunks('5zz\r\nhello\r\n0\r\n\r\n'),
  'a size in C': chunks('0x5\r\nhello\r\n0\r\n\r\n'),
  'a size with a sign': chunks('+5\r\nhello\r\n0\r\n\r\n'),
  'a size below 0': chunks('-5\r\nhello\r\n0\r\n\r\n'),
  'a size with blanks': chunks(' 5 \r\nhello\r\n0\r\n\r\n'),
  'a size beyond measure': chunks('fffffffffffffffff\r\nhello'),
  'no size': chunks('\r\nhello\r\n0\r\n\r\n'),
  'an extension with a line feed': chunks('5;x\ny\r\nhello\r\n0\r\n\r\n'),
  'a chunk that is too long': chunks('5\r\nhello!\r\n0\r\n\r\n'),
  'a chunk that is too short': chunks('5\r\nhell\r\n0\r\n\r\n0\r\n\r\n'),
  'a chunk that ends otherwise': chunks('5\r\nhelloxx0\r\n\r\n'),
  'a trailer that is none': chunks('0\r\nnothing\r\n\r\n'),
  'a trailer with a line feed': chunks('0\r\nx: y\nz\r\n\r\n'),
  'a length below 0': `${head('content-length: -5')}{}`,
  'a length in C': `${head('content-length: 0x2')}{}`,
  'a length as a power': `${head('content-length: 2e0')}{}`,
  'a length with a sign': `${head('content-length: +2')}{}`,
  'a length with a fraction': `${head('content-length: 2.0')}{}`,
  'no length': `${head('content-length:')}{}`,
  'a list of lengths': `${head('content-length: 2, 2')}{}`,
  'a length with a space of Unicode': `${head('content-length: 2\xa0')}{}`,
  'two lengths': `${head('content-length: 20', 'content-length: 2')}{}`,
  'a length before chunks': `${head('content-length: 12', coded)}2\r\n{}\r\n0\r\n\r\n`,
  'a length behind chunks': `${head(coded, 'content-length: 12')}2\r\n{}\r\n0\r\n\r\n`,
  'another coding': `${head('transfer-encoding: xchunked')}2\r\n{}\r\n0\r\n\r\n`,
  'a second coding': `${head('transfer-encoding: gzip, chunked')}2\r\n{}\r\n0\r\n\r\n`,
  'a coding twice': `${head(coded, coded)}2\r\n{}\r\n0\r\n\r\n`,
  'a coding with a control character': `${head('transfer-encoding: chunked\x0b')}2\r\n{}\r\n0\r\n\r\n`,
  'chunks of HTTP/1.0': whole.replace('1.1', '1.0'),
  'a folded line': `${head('x: y', ` ${coded}`, 'content-length: 2')}{}`,
  'a blank before a colon': `${head('content-length : 2')}{}`,
  'a line without a name': `${head(': x', 'content-length: 2')}{}`,
  'a line without a colon': `${head('x', 'content-length: 2')}{}`,
  'a line feed by itself': `${head(`x: y\n${coded}`, 'content-length: 2')}{}`,
  'a carriage return by itself': `${head('x: y\rz', 'content-length: 2')}{}`,
  'a NUL': `${head('x: \0', 'content-length: 2')}{}`,
  'a status as a power': ok().replace('200', '2e2'),
  'a status of 99': ok().replace('200', '099'),
  'another version': ok().replace('HTTP/1.1', 'HTTP/1.9'),
  'another protocol': ok().replace('HTTP/1.1', 'HTTP/1x1'),
  'another protocol from here on': `HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n${ok()}`,
}

const taken: Record<string, string> = {
  'a length': ok(),
  'a length with blanks around it': `${head('Content-Length: \t2 ')}{}`,
  'a length of 0': head('content-length: 0'),
  chunks: whole,
  'chunks in other letters': `${head('Transfer-Encoding: CHUNKED ')}A;x="y"\r\n0123456789\r\n0;z\r\nx: y\r\nz:\r\n\r\n`,
  'leading zeros': chunks('0002\r\n{}\r\n00\r\n\r\n'),
  'an answer after another one of its own': `HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${ok()}`,
  'no reason': ok().replace('200 OK', '200'),
  'letters beyond ASCII': ok('{}', 'x: \xe9\xff\t"\r\n'),
}

const inOnePart = (text: string) => [text]
const byteByByte = (text: string) => [...text]

/** An answer to /odd, and sound ones around it, on one connection at a time. */
const replayed = async (t: Test, bytes: string, parts: (text: string) => string[]) => {
  const target = await startTarget(t, ({ path }, socket) => {
    if (path !== '/odd') return ok('{}', `etag: "${path}"\r\n`)
    const queue = parts(bytes)
    const write = (): void => {
      const part = queue.shift()
      if (part === undefined || socket.destroyed) return
      socket.write(part, 'latin1')
      setImmediate(write)
    }
    write()
    return undefined
  })
  const paths = ['/1', '/odd', '/2', '/3']
  const requests = paths.flatMap((path, i) => arriving([i], { path }))
  const options = { connections: 1, pace: { mode: 'closed' } } as const
  const { ended, answers, failures } = await sendSome(target.url, requests, options)
  await ended
  return { statuses: answers.map(({ status }) => status), failures: failures.map(([reason]) => reason) }
}

t.test('an answer whose end is in doubt is no answer, and those behind it are their own', async t => {
  const expected = { statuses: [200, 200, 200], failures: ['protocol'] }
  for (const [what, bytes] of Object.entries(refused)) {
    t.strictSame(await replayed(t, bytes, inOnePart), expected, what)
    // Byte by byte too, unless only what follows a whole answer is at fault.
    if (what.includes('behind') && !what.includes('chunks')) continue
    t.strictSame(await replayed(t, bytes, byteByByte), expected, `${what}, byte by byte`)
  }
})

t.test('what every reader understands alike is taken, in one part and byte by byte', async t => {
  for (const [what, bytes] of Object.entries(taken))
    for (const parts of [inOnePart, byteByByte])
      t.strictSame(await replayed(t, bytes, parts), { statuses: [200, 200, 200, 200], failures: [] }, what)
})

t.test('a surplus that comes while no request is in flight ends the connection', async t => {
  let first: Socket | undefined
  const target = await startTarget(t, (_request, socket) => {
    first ??= socket
    return ok()
  })
  const { ended, answers, recorder } = await sendSome(target.url, arriving([0, 2_500, 2_501]), {
    connections: 1,
  })
  await until('the first is answered', () => answers.length === 1)
  first?.write(surplus)
  await ended
  t.strictSame([recorder.counts.statuses, recorder.counts.failed], [{ 200: 3 }, {}])
  t.equal(target.connections, 2)
})

t.test('a body of chunks is kept once; one without a length ends with its connection', async t => {
  const size = 8 * 1_048_576
  const target = await startTarget(t, () =>
    chunks(`${size.toString(16)}\r\n${'x'.repeat(size)}\r\n6;x=y\r\n world\r\n0\r\n\r\n`),
  )
  const { ended, answers, kept } = await sendSome(target.url, arriving([0]), { keepBodies: 1 })
  await ended
  t.equal(answers.length, 1)
  t.ok(Buffer.from(kept[0]?.body ?? []).equals(Buffer.from(`${'x'.repeat(size)} world`)))

  const closing = await startTarget(t, (_request, socket) => {
    socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello world')
    return undefined
  })
  const last = await sendSome(closing.url, arriving([0]), { keepBodies: 1 })
  await last.ended
  t.equal(Buffer.from(last.kept[0]?.body ?? []).toString(), 'hello world')
})

const second = 'GET /second HTTP/1.1'
const hostile = [
  `/a HTTP/1.1\r\nhost: x\r\n\r\n${second}\r\n\r\n`,
  `/a\r\nx: y`,
  '/a b',
  '/a\n',
  '/a\r',
  '/a\t',
  '/a\0',
  '/a\u010d\u010a', // Letters whose lower bytes are CR and LF.
  '/a\u560d\u560a',
  '/a\u2028\u0085\u00a0',
  `/a HTTP/1.1\u010d\u010a\u010d\u010a${second}\u010d\u010a\u010d\u010a`,
]
const at = '2026-11-21T06:00:00Z'
const har = (request: object) => JSON.stringify({ log: { entries: [{ startedDateTime: at, request }] } })
const gor = (text: string) => `1 aa 1732168800000000000 0\n${text}\r\n\r\n${gorSeparator}`
const combined = (path: string) =>
  `1.2.3.4 - - [21/Nov/2026:06:00:00 +0000] "GET ${path} HTTP/1.1" 200 2 "-" "-"`
const formats: Record<string, (text: string) => string> = {
  'ndjson: path': path => JSON.stringify({ at, method: 'GET', path }),
  'ndjson: method': method => JSON.stringify({ at, method: method.replace('/a', 'GET'), path: '/m' }),
  'ndjson: accepts': accepts => JSON.stringify({ at, method: 'GET', path: '/h', accepts }),
  'har: path': url => har({ method: 'GET', url }),
  'har: method': method => har({ method, url: '/m' }),
  'har: header': value => har({ method: 'GET', url: '/h', headers: [{ name: 'accept-encoding', value }] }),
  'gor: path': path => gor(`GET ${path} HTTP/1.1\r\nhost: x`),
  'gor: header': value => gor(`GET /h HTTP/1.1\r\nhost: x\r\naccept-encoding: ${value}`),
  'combined: path': combined,
  'combined: escaped': path =>
    combined(
      path.replaceAll(/[^\x21-\x7e]/g, sign => Buffer.from(sign).toString('hex').replace(/../g, '\\x$&')),
    ),
}

t.test('a line break or blank in a traffic file does not begin a header or a second request', async t => {
  const file = join(t.testdir(), 'file')
  const target = await startTarget(t)
  let sent = 0
  for (const [format, lineWith] of Object.entries(formats))
    for (const text of hostile) {
      const what = `${format}: ${encodeURIComponent(text)}`
      writeFileSync(file, `${lineWith(text)}\n`)
      const { requests } = await readAll([file], { format: format.replace(/:.*/, '') })
      const { ended } = await sendSome(target.url, requests)
      await ended
      t.equal(target.received.length - sent, requests.length, what)
      for (const { method, path, headers } of target.received.slice(sent)) {
        t.match(method, /^[A-Z]{1,20}$/, what)
        t.match(path, /^\/[\x21-\x7e]*$/, what)
        for (const name of Object.keys(headers)) t.match(name, /^(host|accept-encoding)$/, what)
      }
      sent += requests.length
    }
  t.ok(sent > 20, `${sent} are sent with their blanks encoded, the others are refused`)
})
