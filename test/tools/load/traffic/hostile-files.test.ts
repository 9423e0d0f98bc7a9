// Without it one crafted line could hang a command that reads traffic, or hide the other lines.

import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { gorSeparator } from '../../../../tools/load/traffic/gor.ts'
import { readTraffic } from '../../../../tools/load/traffic/read-traffic.ts'
import { lineOf, requestOf } from '../../../../tools/load/traffic/traffic-request.ts'
import { readAll } from './read-all.ts'

const read = async (t: Test, content: string | Buffer, format?: string) => {
  const path = join(t.testdir(), 'file')
  writeFileSync(path, content)
  const { requests, faults } = await readAll([path], { ...(format && { format }) })
  return { requests, reasons: faults.map(({ reason }) => reason) }
}

const har = (...entries: string[]) => `{"log":{"version":"1.2","entries":[${entries.join(',')}]}}`
const entry = (more: string) => `{"startedDateTime":"2026-11-21T06:00:00Z",${more}}`
const good = entry('"request":{"method":"GET","url":"http://x/good"}')
const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

t.test('a faulty entry of HAR is told with its number, and the others are read', async t => {
  const request = '"request":{"method":"GET","url":"/x"}'
  const withHeaders = (list: string) => entry(`"request":{"method":"GET","url":"/x","headers":${list}}`)
  const method = 'expected a method such as "GET"'
  const instant = 'expected an instant such as "2026-11-21T06:00:00.000Z", from 2000 to 2099'
  const path = 'expected one such as "/api/v1/weather/district/3026"'
  const entries: [entry: string, sentence: string][] = [
    ['null', 'it is null, expected an object'],
    ['5', 'it is 5, expected an object'],
    ['"]},{"', 'it is "]},{", expected an object'],
    ['[null]', 'it is a list, expected an object'],
    [entry('"request":null'), 'request is null, expected an object'],
    [entry('"request":[]'), 'request is a list, expected an object'],
    [withHeaders('null'), 'request.headers is null, expected a list'],
    [withHeaders('[{},null]'), 'request.headers[1] is null, expected an object with name and value'],
    [entry(`${request},"response":null`), 'response is null, expected an object'],
    [entry(`${request},"response":{"headers":7}`), 'response.headers is 7, expected a list'],
    [entry(`${request},"response":{"content":7}`), 'response.content is 7, expected an object'],
    [entry('"request":{"method":null,"url":"/x"}'), `method is null, ${method}`],
    [entry(`"request":{"method":${deep(125_000)}}`), `method is a list, ${method}`],
    [entry('"request":{"method":{"toString":null},"url":"/x"}'), `method is an object, ${method}`],
    [entry('"request":{"method":"GET","url":null}'), `the path is null, ${path}`],
    [`{${request},"startedDateTime":null}`, `startedDateTime is null, ${instant}`],
  ]
  const { requests, reasons } = await read(t, har(good, ...entries.flatMap(([text]) => [text, good])))
  t.equal(requests.length, 1 + entries.length)
  t.strictSame(
    reasons,
    entries.map(([, sentence], i) => `entry ${2 * i + 2}: ${sentence}`),
  )
  for (const entries of ['null', '{"entries":[]}', '"entries"'])
    t.strictSame(
      (await read(t, `{"log":{"entries":${entries}}}`)).reasons,
      ['log has no list of entries, expected entries such as a browser exports'],
      entries,
    )
  t.match(await read(t, '{"log":null}'), { requests: [], reasons: [/^log has no list of entries/] })
  t.strictSame((await read(t, har())).reasons, [], 'an empty list is one')
})

t.test('what is nested deeply or has no text is told in every format of JSON', async t => {
  const head = '"level":"info","msg":"answered"'
  const reasons = [/ is (?:a list|an object|null|missing)/]
  for (const value of [deep(125_000), '{"toString":null}', 'null'])
    for (const [format, text] of [
      ['access-log', `{${head},"time":"2026-11-21T06:00:00Z","method":${value}}`],
      ['access-log', `{${head},"time":"","method":"GET","url":"/","arrivedAt":${value}}`],
      ['access-log', `{${head},"time":"2026-11-21T06:00:00Z","method":"GET","url":${value}}`],
      ['ndjson', `{"at":"2026-11-21T06:00:00Z","method":"GET","path":${value}}`],
      ['ndjson', `{"at":${value}}`],
    ] as const)
      t.match(await read(t, `${text}\n`, format), { requests: [], reasons }, format)
})

t.test('whatever number stands in a file, each request has a line that can be read again', async t => {
  const nines = '9'.repeat(400)
  const ofX = '"request":{"method":"GET","url":"/x"}'
  const gor = (head: string, line = 'GET /x HTTP/1.1') => `${head}\n${line}\r\n\r\n${gorSeparator}`
  const files: [format: string, text: string][] = [
    ['combined', `- - - [21/Nov/2026:12:00:00 +0600] "GET /x HTTP/1.1" 200 ${nines} "-" "-" 86399.999\n`],
    ['combined', '- - - [21/Nov/2026:12:00:00 +0600] "GET /\\😀 HTTP/1.1" 200 1 99999999999999\n'],
    ['nginx', `- [2026-11-21T12:00:00+06:00] GET /x 200 ${nines} 86399.999 x\n`],
    ['access-log', `${logged}"/","ms":-1e999,"bytes":1e300}\n`],
    ['har', har(entry(`"time":-1e999,${ofX},"response":{"status":200.5,"bodySize":1e400}`))],
    ['gor', gor('1 a 1795240800000000000 0') + gor('2 a 1795240799999999999 0', 'HTTP/1.1 200 OK')],
  ]
  for (const [format, text] of files) {
    const { requests, reasons } = await read(t, text, format)
    t.strictSame(reasons, [])
    t.equal(requests.length, 1, format)
    for (const request of requests)
      t.strictSame(requestOf(lineOf(request)), request, `${format}: ${text.slice(0, 90)}`)
  }
})

const common = '203.0.113.7 - - [21/Nov/2026:12:00:00 +0600] "GET /x HTTP/1.1" 200 1'
const own = '203.0.113.7 [2026-11-21T12:00:00+06:00] GET'
const logged = '{"level":"info","time":"2026-11-21T06:00:00Z","msg":"answered","method":"GET","url":'
const payload = (head: string) => `1 a 1439818823587396305 0\n${head}\r\n\r\n${gorSeparator}`
const payloads = (bytes: number, headOf: (size: number) => string) =>
  payload(headOf(Math.min(bytes, 60_000))).repeat(Math.ceil(bytes / 60_000))

// Of each, a text of about so many bytes; what a line may have is 262,144.
const costly: [name: string, format: string, text: (bytes: number) => string][] = [
  ['escaped quotes behind a line', 'combined', n => `${common} ${'\\"'.repeat(n / 2)}`],
  ['escaped quotes in quotes', 'combined', n => `${common} "-" "${'\\"'.repeat(n / 2)}`],
  ['quotes in the target', 'combined', n => `- [21/Nov/2026:12:00:00 +0600] "GET /${'\\"'.repeat(n / 2)}`],
  ['backslashes', 'combined', n => `${common} "${'\\'.repeat(n)}`],
  ['quotes that nothing closes', 'combined', n => `${common} ${'"x'.repeat(n / 2)}`],
  ['begins of lines', 'combined', n => '[21/Nov/2026:12:00:00 +0600] "'.repeat(n / 30)],
  ['digits', 'combined', n => `${common.slice(0, -1)}${'1'.repeat(n)}\u2028`],
  ['numbers', 'combined', n => `${common} ${'1 '.repeat(n / 2)}x`],
  ['blanks', 'combined', n => `${common}${' '.repeat(n)}`],
  ['blanks', 'nginx', n => `${own} ${' '.repeat(n)} 200 1 0.001`],
  ['statuses', 'nginx', n => `${own}${' 200 1'.repeat(n / 6)}`],
  ['digits', 'nginx', n => `${own} /x 200 ${'1'.repeat(n)}`],
  ['names of fields', 'ndjson', n => `{${'"at"  '.repeat(n / 6)}`],
  ['blanks', 'ndjson', n => `{"at"${' '.repeat(n)}`],
  ['lists in lists', 'ndjson', n => `{"at":${'['.repeat(n)}`],
  ['question marks', 'access-log', n => `${logged}"/?key${'?'.repeat(7_900)}"}\n`.repeat(n / 8_000)],
  ['escapes of a path', 'access-log', n => `${logged}"/?key=${'%25'.repeat(2_600)}"}\n`.repeat(n / 8_000)],
  ['signs in a URL', 'har', n => har(entry(`"request":{"method":"GET","url":"/${'é#'.repeat(n / 3)}"}`))],
  ['blanks', 'har', n => `{"log":{"entries":[${' '.repeat(n)}`],
  ['commas', 'har', n => har(','.repeat(n))],
  ['objects in objects', 'har', n => har(`${'{"a":'.repeat(n / 6)}1${'}'.repeat(n / 6)}`)],
  ['versions', 'gor', n => payloads(n, size => `GET ${' HTTP/1.1'.repeat(size / 9)}x`)],
  ['header lines', 'gor', n => payloads(n, size => `GET /x HTTP/1.1${'\r\na: b'.repeat(size / 6)}`)],
  ['separators', 'gor', n => gorSeparator.repeat(n / 14)],
]

t.test('reading ends, whatever stands there', async t => {
  // A pattern that grows by the square takes minutes for this, and so the test its time limit.
  for (const [name, format, textOf] of costly) {
    await read(t, `${textOf(240_000)}\n`, format)
    t.pass(`${format}, ${name}`)
  }
})

t.test('gor whose bodies come in small pieces is read in time', async t => {
  const body = randomBytes(4_900_000)
  // Packed, random bytes come a kilobyte at a time.
  const before = Buffer.from('1 a 1439818823587396305 0\nPOST /x HTTP/1.1\r\n\r\n')
  const behind = Buffer.from(gorSeparator + payload('GET /y HTTP/1.1'))
  const file = gzipSync(Buffer.concat([before, body, behind]), { level: 1 })
  const { copy } = Buffer.prototype
  const { concat } = Buffer
  let copied = 0
  t.teardown(() => {
    Buffer.prototype.copy = copy
    Buffer.concat = concat
  })
  Buffer.prototype.copy = function (...args: Parameters<typeof copy>) {
    const count = copy.apply(this, args)
    copied += count
    return count
  }
  Buffer.concat = (...args) => {
    const whole = concat(...args)
    copied += whole.length
    return whole
  }
  const { requests } = await read(t, file)
  t.equal(requests.length, 2)
  t.ok(copied < 10 * body.length, `${copied} bytes were copied for ${body.length}`)
})

t.test('long paths make the window shorter, and what is late is not held back', async t => {
  const path = `/${'x'.repeat(7_900)}`
  const line = (at: number) => lineOf({ at: Date.parse('2026-11-21T06:00:00Z') + at, method: 'GET', path })
  const folder = t.testdir()
  // Half of them are more text than is held, and far fewer requests than are held of short paths.
  writeFileSync(join(folder, 'file'), `${line(1_000_000)}\n`.repeat(10_000) + `${line(0)}\n`.repeat(10_000))
  const traffic = readTraffic([join(folder, 'file')])
  let [all, largest] = [0, 0]
  for await (const batch of traffic.batches()) {
    all += batch.length
    largest = Math.max(largest, batch.length)
  }
  t.equal(all, 20_000)
  t.ok(largest < 10_000, `${largest} requests at once`)
  t.equal(traffic.summary().late, 10_000)
})
