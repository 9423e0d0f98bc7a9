// Without it logs of other servers could be read with wrong instants, hosts or durations.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createKey } from '../../../../src/keys/key-form.ts'
import { gorSeparator } from '../../../../tools/load/traffic/gor.ts'
import type { TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'
import { readAll } from './read-all.ts'

const key = createKey()

const readText = async (t: Test, text: string, format?: string, host?: string) => {
  const path = join(t.testdir({ file: text }), 'file')
  const { requests, faults, summary } = await readAll([path], { host, ...(format && { format }) })
  const { files, ...others } = summary
  return { requests, faults, format: files[0]?.format, host: files[0]?.host, summary: others }
}
const at = (iso: string): number => Date.parse(iso)

t.test('our access log by arrival; other lines and test keys hold no request', async t => {
  const path = '/api/v1/weather/district/3026?lang=en'
  const line = (fields: object) =>
    JSON.stringify({
      ...{ level: 'info', time: '2026-11-21T06:00:00.030Z', method: 'GET', url: path, endpoint: 'weather' },
      ...{ status: 200, ms: 12.5, arrivedAt: '2026-11-21T06:00:00.010Z', bytes: 1834, ...fields },
      msg: 'answered',
    })
  const keyId = 'key_9hK2mPq4XyZa'
  const cell = '23.7,90.4'
  const { requests, format, summary, faults } = await readText(
    t,
    [
      '{"level":"info","time":"2026-11-21T06:00:00.000Z","msg":"listening"}',
      line({
        ...{ encoding: 'br', notModified: false, cell, cache: 'hit; ttl=2911; detail=memory', keyId },
        client: '203.0.113.7',
      }),
      line({ cache: 'fwd=stale; ttl=-3; detail=redis', cell, share: 0.25 }),
      line({ cache: 'hit; ttl=-3; detail=redis' }),
      line({ cache: 'hit; ttl=3600; detail=test', keyId, tier: 'test_key' }),
      line({ cache: 'fwd=miss; collapsed; stored; ttl=3600' }),
      line({ status: 401, url: '/api/v1/…', reason: 'key-revoked', keyId, arrivedAt: undefined }),
      `gateway-1  | ${line({ url: 'http://weather.example/x?a=1' })}`,
      line({ arrivedAt: 'soon' }),
    ].join('\n'),
  )
  t.equal(format, 'access-log')
  const common = { at: at('2026-11-21T06:00:00.010Z'), method: 'GET', status: 200, bytes: 1834, ms: 12.5 }
  const first = { key: keyId, accepts: 'br', conditional: true, outcome: 'hit', tier: 'memory', cell }
  const refused = { path: '/api/v1/%E2%80%A6', status: 401, outcome: 'none' }
  t.strictSame(requests, [
    { ...common, path, ...first },
    { ...common, path, outcome: 'stale', tier: 'redis', cell },
    { ...common, path, outcome: 'stale', tier: 'redis' },
    { ...common, path, outcome: 'miss', tier: 'provider' },
    { ...common, path: '/x?a=1', outcome: 'none' },
    { ...common, at: at('2026-11-21T06:00:00.018Z'), ...refused },
  ])
  t.match(faults, [{ line: 9, reason: /^arrivedAt is "soon", expected an instant/ }])
  t.match(summary, { skippedLines: 2, share: 0.25 })
  t.notMatch(JSON.stringify(requests), '203.0.113')
})

t.test('nginx and Apache: common, combined, with a host before and durations behind', async t => {
  const { requests, format, faults, summary } = await readText(
    t,
    [
      '203.0.113.7 - bob [21/Nov/2026:12:00:00 +0600] "GET /api/v1/x?lang=en HTTP/1.1" 200 1834',
      '203.0.113.7 - - [21/Nov/2026:12:00:01 +0600] "HEAD / HTTP/1.0" 304 - "-" "curl \\"8\\""',
      'weather.example:443 2001:db8::1 - - [21/Nov/2026:06:00:02 +0000] "GET /\\xe0\\xa6 HTTP/2.0" 200 5 "-" "x" 0.250',
      '203.0.113.7 - - [21/Nov/2026:06:00:03 +0000] "GET /x HTTP/1.1" 200 5 "-" "5.000 7" 250000',
      '203.0.113.7 - - [21/Nov/2026:06:00:04 +0000] "\\x16\\x03\\x01" 400 157 "-" "-"',
      '203.0.113.7 - - [21/Nov/2026:06:00:04 +0000] "-" 408 - "-" "-"',
      '203.0.113.7 - - [31/Foo/2026:06:00:04 +0000] "GET / HTTP/1.1" 200 1',
      'and now for something else',
    ].join('\r\n'),
  )
  t.equal(format, 'combined')
  t.strictSame(requests, [
    { at: at('2026-11-21T06:00:00Z'), method: 'GET', path: '/api/v1/x?lang=en', status: 200, bytes: 1834 },
    { at: at('2026-11-21T06:00:01Z'), method: 'HEAD', path: '/', conditional: true, status: 304, bytes: 0 },
    // nginx logs the end, Apache the arrival.
    { at: at('2026-11-21T06:00:01.750Z'), method: 'GET', path: '/%E0%A6', status: 200, bytes: 5, ms: 250 },
    { at: at('2026-11-21T06:00:03Z'), method: 'GET', path: '/x', status: 200, bytes: 5, ms: 250 },
  ])
  const lines = faults.map(({ line }) => line)
  t.strictSame(lines, [7, 8])
  t.equal(summary.skippedLines, 2)
})

t.test('what a reader of logs would take for another figure is read right or refused', async t => {
  const line = '203.0.113.7 - - [21/Nov/2026:12:00:01 +0600] "GET /a HTTP/1.1" 200'
  const { requests } = await readText(t, `${line} 1.834 5000\n`)
  t.hasStrict(requests, [{ path: '/a', bytes: 5_000, ms: 1_834 }])
  const har = {
    comment: 'of "today"',
    creator: { name: '}', pages: [{ log: 1 }] },
    log: { entries: [entry({}, { url: 'https://a.example/x', headers: [] })] },
  }
  t.hasStrict(await readText(t, JSON.stringify(har)), { format: 'har', requests: [{ path: '/x' }] })
  await t.rejects(readText(t, `${line} 5000\r${line} 5000\r`), /the lines end with CR only; convert them/)
})

t.test('one host is taken of files that name hosts, whatever their format', async t => {
  const line = (before: string, target: string) =>
    `${before}203.0.113.7 - - [21/Nov/2026:12:00:01 +0600] "GET ${target} HTTP/1.1" 200 5000`
  const wanted = 'a.example'
  const log = [line('A.example:443 ', '/1'), line('b.example ', '/2'), line('', 'http://a.example/3')]
  const paths = ({ requests }: { requests: TrafficRequest[] }) => requests.map(({ path }) => path)
  const ofLog = await readText(t, [...log, line('', 'http://a.example:81/4')].join('\n'), undefined, wanted)
  t.strictSame(paths(ofLog), ['/1', '/3'])
  t.hasStrict(ofLog, { host: wanted, summary: { leftOut: { otherHosts: 2 }, skippedLines: 0 } })
  const unnamed = await readText(t, [...log, line('', '/5')].join('\n'), undefined, wanted)
  t.match(unnamed, {
    requests: { length: 2 },
    faults: [{ line: 4, reason: /--host requires requests with a host/ }],
  })

  const payload = (id: string, host: string) =>
    `1 ${id} 1795240800000000000\nGET /${id} HTTP/1.1\r\nHost: ${host}\r\n\r\n${gorSeparator}`
  const gor = await readText(t, payload('a1', 'A.example:80') + payload('b1', 'b.example'), undefined, wanted)
  t.strictSame(paths(gor), ['/a1'])
  t.hasStrict(gor, { host: wanted, summary: { leftOut: { otherHosts: 1 } } })

  const own = '{"at":"2026-11-21T06:00:00Z","method":"GET","path":"/x"}\n'
  const refused = /--host can't be used with .*, because the format ndjson has no hosts/
  await t.rejects(readText(t, own, undefined, wanted), refused)
})

t.test('the format of deploy/nginx, whose paths are decoded', async t => {
  const { requests, format } = await readText(
    t,
    [
      '203.0.113.7 [2026-11-21T12:00:00+06:00] GET /api/v1/weather/district/3026 200 1834 0.005 127.0.0.1:8081 200 4a1c',
      '203.0.113.7 [2026-11-21T12:00:01+06:00] GET /a 200 50% 404 34 0.000 127.0.0.1:8081, 127.0.0.1:8082 502, 404 4a1c',
    ].join('\n'),
  )
  t.equal(format, 'nginx')
  const read = requests.map(({ path, status, ms }) => ({ path, status, ms }))
  t.strictSame(read, [
    { path: '/api/v1/weather/district/3026', status: 200, ms: 5 },
    { path: '/a%20200%2050%25', status: 404, ms: 0 },
  ])
  t.equal(requests[0]?.at, at('2026-11-21T05:59:59.995Z'))
})

const headers = (fields: Record<string, string>) =>
  Object.entries(fields).map(([name, value]) => ({ name, value }))
const sent = headers({ 'X-Api-Key': key, 'Accept-Encoding': 'gzip, br', 'If-None-Match': '"}]"' })
const answer = {
  ...{ status: 200, bodySize: 700, content: { size: 3_000, text: '{"[\\"' } },
  headers: headers({ 'Cache-Status': 'abohawa; hit; ttl=3; detail=memory; key="23.8,90.4"' }),
}
const entry = (more: object = {}, request: object = {}) => ({
  startedDateTime: '2026-11-21T06:00:00.123Z',
  time: 12.5,
  request: { method: 'GET', url: 'https://weather.example/api/v1/x?a=1#here', headers: sent, ...request },
  response: answer,
  ...more,
})

t.test('HAR, entry by entry', async t => {
  const wrong = [entry({ startedDateTime: 'now' }), entry({}, { url: 'wss://x/' })]
  const last = entry({ startedDateTime: '2026-11-21T12:00:01' }, { headers: [] })
  const log = { pages: [{ id: 'entries' }], entries: [entry(), ...wrong, last] }
  const text = JSON.stringify({ log }, null, 1)
  const { requests, format, faults, summary } = await readText(t, text)
  t.equal(format, 'har')
  const [first, second] = requests
  t.match(first, { key: /^anon_[0-9a-f]{12}$/ })
  t.strictSame(first, {
    ...{ at: at('2026-11-21T06:00:00.123Z'), method: 'GET', path: '/api/v1/x?a=1', key: first?.key },
    ...{ accepts: 'gzip, br', conditional: true, status: 200, outcome: 'hit', cell: '23.8,90.4' },
    ...{ tier: 'memory', bytes: 700, ms: 12.5 },
  })
  t.equal(second?.at, at('2026-11-21T12:00:01Z'), 'without a zone it is UTC')
  t.equal(summary.skippedLines, 1)
  t.match(faults, [{ reason: /^entry 2: startedDateTime is "now"/ }])

  const cut = await readText(t, text.slice(0, text.indexOf('"now"')))
  t.equal(cut.requests.length, 0)
  t.hasStrict(cut.faults, [{ reason: 'the HAR is not valid JSON, expected a file as a browser exports it' }])

  const comment = 'x'.repeat(65 * 1024 * 1024)
  const long = await readText(t, text.replace('"pages"', `"comment":"${comment}","pages"`))
  t.equal(long.requests.length, 0)
  t.match(long.faults, [{ reason: /^the HAR is longer than 64 MiB; export fewer requests/ }])
})

t.test('of a HAR, what a browser served itself, blocked or sent to other hosts is left out', async t => {
  const of = (url: string, more: object = {}) => entry(more, { url, headers: [] })
  const api = 'https://api.example/api/v1/weather/district/3026'
  const cached = [
    { _fromCache: 'memory' },
    { _fromCache: 'disk' },
    { _fetchType: 'Disk Cache' },
    { cache: { afterRequest: null } },
    { response: { status: 200, _fetchedViaServiceWorker: true } },
  ]
  const entries = [
    of('https://www.example/'),
    ...cached.map(more => of(api, more)),
    of('https://tracker.example/collect?cid=555.666', { response: { status: 0 } }),
    of(api, { cache: { beforeRequest: null, afterRequest: null }, _fetchType: 'Network Load' }),
    of('https://api.example:8443/other'),
    of('https://API.example:443/api/v1/locations'),
  ]
  const har = JSON.stringify({ log: { entries } })
  const usual = await readText(t, har)
  const paths = usual.requests.map(({ path }) => path)
  t.strictSame(paths, ['/api/v1/weather/district/3026', '/api/v1/locations'], 'of the first host of the API')
  t.match(usual.summary, { leftOut: { cached: 5, blocked: 1, otherHosts: 2 } })
  t.equal(usual.host, 'api.example')
  t.notMatch(JSON.stringify(usual.requests), 'tracker')

  const chosen = await readText(t, har, undefined, 'api.example:8443')
  const ofPort = chosen.requests.map(({ path }) => path)
  t.strictSame(ofPort, ['/other'])
  t.match(chosen.summary, { leftOut: { cached: 5, blocked: 1, otherHosts: 3 } })

  const others = JSON.stringify({ log: { entries: [of('https://a.example/x'), of('https://b.example/y')] } })
  const { requests, host } = await readText(t, others)
  t.strictSame([requests.map(({ path }) => path), host], [['/x'], 'a.example'], 'else the first')
})

t.test('the lines that Docker keeps of a program are read as the lines of that program', async t => {
  const more = { stream: 'stdout', attrs: {}, time: '2026-11-21T06:00:00.020123456Z' }
  const wrapped = (...lines: string[]) =>
    lines.map(line => JSON.stringify({ log: `${line}\n`, ...more })).join('\n')
  const own =
    '{"level":"info","time":"2026-11-21T06:00:00.030Z","msg":"answered","method":"GET","url":"/a","arrivedAt":"2026-11-21T06:00:00.010Z","status":200}'
  const common = '203.0.113.7 - - [21/Nov/2026:06:00:01 +0000] "GET /b HTTP/1.1" 200 5 "-" "x"'
  const request = '{"at":"2026-11-21T06:00:02.000Z","method":"GET","path":"/c"}'
  for (const [text, format, path, instant] of [
    [wrapped('starting', '', own), 'access-log', '/a', '2026-11-21T06:00:00.010Z'],
    [wrapped('starting', common), 'combined', '/b', '2026-11-21T06:00:01Z'],
    [wrapped(request), 'ndjson', '/c', '2026-11-21T06:00:02Z'],
  ] as const) {
    const read = await readText(t, text)
    t.equal(read.format, format)
    t.hasStrict(read.requests, [{ path, at: at(instant) }])
    t.equal(read.requests.length, 1)
    t.match(read.faults, format === 'ndjson' ? [] : [{ line: 1, reason: /^"starting" is no/ }])
  }
})

t.test('figures that are no duration are not taken for one, and impossible ones are faults', async t => {
  const line = (behind: string) =>
    `203.0.113.7 - - [26/Nov/2026:12:00:00 +0600] "GET /a HTTP/1.1" 200 5 "-" "curl/8" ${behind}`
  const { requests, faults } = await readText(
    t,
    [
      // `$msec` and `$request_time` of nginx, either first.
      line('1795672800.123 0.005'),
      line('0.006 1795672800.123'),
      line('1795672800.123'),
      // Traefik: a counter, and the duration at the end.
      line('1048576 "weather@docker" "http://172.18.0.3:8080" 12ms'),
      // combinedio of Apache: bytes received and sent.
      line('412 2210'),
      line('250000'),
      line('1795672999.123 0.005'),
      line('86400.000'),
      line('86400000000'),
    ].join('\n'),
  )
  const read = requests.map(({ ms = -1 }) => ms).sort((a, b) => a - b)
  t.strictSame(read, [-1, -1, 5, 6, 12, 250])
  t.ok(requests.every(request => Math.abs(request.at - at('2026-11-26T06:00:00Z')) < 1_000))
  const reasons = faults.map(({ line, reason }) => [line, reason])
  t.strictSame(reasons, [
    [7, 'the duration is 1795672999123 ms, expected less than a day'],
    [8, 'the duration is 86400000 ms, expected less than a day'],
    [9, 'the duration is 86400000 ms, expected less than a day'],
  ])
})

t.test('an instant beyond 2000 to 2099 and a duration of a day are faults in every format', async t => {
  const logged = { level: 'info', time: '2026-11-21T06:00:00Z', msg: 'answered', method: 'GET', url: '/a' }
  const own = (fields: object) => JSON.stringify({ ...logged, ...fields })
  const gor = (head: string, line = 'GET /z HTTP/1.1') => `${head}\n${line}\r\n\r\n${monkeys}`
  const [early, late] = ['1970-01-01T00:29:55.672Z', '2100-01-01T00:00:00Z']
  const day = 86_400_000
  const har = (more: object) => JSON.stringify({ log: { entries: [entry(more)] } })
  const files: [string, RegExp][] = [
    [own({ arrivedAt: early }), /^arrivedAt is "1970/],
    [own({ arrivedAt: late }), /^arrivedAt is "2100/],
    [own({ ms: day }), /^the duration is 86400000 ms, expected less than a day$/],
    [`{"at":"${early}","method":"GET","path":"/a"}`, /^at is "1970.* from 2000 to 2099$/],
    [`{"at":"2026-11-21T06:00:00Z","method":"GET","path":"/a","ms":${day}}`, /^ms is .* less than a day$/],
    [har({ startedDateTime: late }), /^entry 1: startedDateTime is "2100.* from 2000 to 2099$/],
    [har({ time: day }), /^entry 1: the duration is 86400000 ms/],
    [har({}).replace('12.5', '1e999'), /^entry 1: the duration is Infinity ms/],
    [gor('1 aa 99999999999999999999 0'), /^the instant is 99999999999999999999/],
    ['192.0.2.1 - - [21/Nov/1999:06:00:00 +0000] "GET /a HTTP/1.1" 200 5', /^the time is "1999/],
    ['203.0.113.7 [2026-11-21T12:00:00+06:00] GET /a 200 5 86400.000 - 200 4a1c', /^the duration is/],
    // Days that no month has.
    [
      '192.0.2.1 - - [30/Feb/2026:06:00:00 +0000] "GET /a HTTP/1.1" 200 5',
      /"2026-02-30T.*", expected an instant/,
    ],
    ['{"at":"2026-02-30T06:00:00Z","method":"GET","path":"/a"}', /"2026-02-30T.*", expected an instant/],
    [own({ time: '2026-04-31T06:00:00Z', status: 200 }), /"2026-04-31T.*", expected an instant/],
    // Milliseconds and seconds in place of nanoseconds.
    [gor('1 aa 1795672800123 0'), /^the instant is 1795672800123, expected nanoseconds/],
    [gor('1 aa 1795672800 0'), /^the instant is 1795672800, expected nanoseconds/],
    [
      gor('1 aa 1795240800000000000 0') + gor('2 aa 1795240800000000000 86400000000000', 'HTTP/1.1 200 OK'),
      /^the duration is 86400000 ms/,
    ],
  ]
  for (const [text, reason] of files) {
    const { requests, faults } = await readText(t, text)
    t.match(faults, [{ reason }], text.slice(0, 80))
    t.strictSame([requests.length, faults.length], [0, 1], text.slice(0, 80))
  }
  const leap = '{"at":"2028-02-29T06:00:00Z","method":"GET","path":"/a"}'
  t.equal((await readText(t, leap)).requests[0]?.at, Date.UTC(2028, 1, 29, 6))
})

t.test('the requests of a second are spread evenly over it, though others stand between them', async t => {
  // Apache writes a line when its answer ends, with the second in which it arrived.
  const line = (second: number, path: string) =>
    `192.0.2.1 - - [21/Nov/2026:06:00:0${second} +0000] "GET ${path} HTTP/1.1" 200 5 "-" "x"`
  const log = [line(0, '/a'), line(1, '/e'), line(0, '/b'), line(2, '/g'), line(0, '/c'), line(1, '/f')]
  const begin = at('2026-11-21T06:00:00Z')
  const { requests, summary } = await readText(t, [...log, line(0, '/d')].join('\n'))
  const order = requests.map(request => `${request.path} ${request.at - begin}`)
  t.strictSame(order, ['/a 0', '/c 250', '/b 500', '/d 750', '/e 1000', '/f 1500', '/g 2000'])
  t.equal(summary.late, 0)
})

t.test('secrets of other sites become pseudonyms, wherever in a path they are named', async t => {
  const line = (target: string, second: number) =>
    `192.0.2.1 - - [21/Nov/2026:06:00:${String(second).padStart(2, '0')} +0000] "GET ${target} HTTP/1.1" 200 5 "-" "x"`
  const secret = 's3cr3t'
  const targets = [
    `/w?appid=${secret}&q=Dhaka`,
    `/w?app_id=${secret}`,
    `/w?APPID=${secret}`,
    `/w?q=Dhaka;sid=${secret}`,
    `/w?connect.sid=${secret}`,
    `/w?PHPSESSID=${secret}`,
    `/w?otp=${secret}`,
    `/w?userPin=${secret}`,
    `/w?%6ftp=${secret}`,
    `/w;jsessionid=${secret}/x?q=Dhaka`,
    `/w;v=1;JSESSIONID=${secret}`,
    `/w%3Bjsessionid%3D${secret}`,
    `/w?next=https%3A%2F%2Fa%2F%3Ftoken%3D${secret}`,
    `/w#access_token=${secret}&scope=x`,
    `/live?hdnea=exp=1795672800~acl=/*~hmac=${secret}`,
    `/cb?SAMLResponse=${secret}`,
    // Long and random.
    `/bot123456:${secret}aaaaaaaaaaaaaaaaaaaaaa/getMe`,
    `/services/T000/B000/${secret}XXXXXXXXXXXXXXX`,
    `/join/${secret}-Xa_9bcdefghijklmno`,
    `/d/550e8400-e29b-41d4-a716-44665544000${secret.slice(0, 0)}0/${secret}ABCDEFGHIJKLMN;v=1`,
    `/w?invite=${secret}ABCDEFGHIJKLMN`,
  ]
  const harmless = [
    '/w?spinner=a&basin=b&tang=c&q=pin',
    '/api/v1/search?q=%E0%A6%A2%E0%A6%BE&lang=en',
    '/a;v=1/b',
    '/how-to-read-a-weather-map-in-2026/internationalisation.html?lat=23.81033199999999990000',
    '/api/v1/weather/district/550e8400-e29b-41d4-a716-446655440000',
    '/api/v1/locations?division_id=550e8400-e29b-41d4-a716-446655440000',
  ]
  const { requests } = await readText(t, [...targets, ...harmless].map(line).join('\n'))
  const read = requests.map(({ path }) => path)
  t.equal(read.length, targets.length + harmless.length)
  const leaked = read.filter(path => path.includes(secret))
  t.strictSame(leaked, [])
  t.match(read[0], /^\/w\?appid=anon_[0-9a-f]{12}&q=Dhaka$/)
  t.match(read[9], /^\/w;jsessionid=anon_[0-9a-f]{12}\/x\?q=Dhaka$/)
  t.strictSame(read.slice(targets.length), harmless)
  // Nobody is known by what is of one use.
  const keyed = requests.map(({ key }) => key !== undefined)
  t.strictSame(keyed.slice(0, 10), [true, true, true, true, true, true, false, false, false, true])
})

t.test('HAR and gor in pieces of any size are read alike', async t => {
  const { readHar } = await import('../../../../tools/load/traffic/har.ts')
  const { readGor } = await import('../../../../tools/load/traffic/gor.ts')
  const har = Buffer.from(JSON.stringify({ log: { entries: [entry(), entry({ time: 1 }), entry()] } }))
  for (const [bytes, read, count] of [
    [har, readHar, 3],
    [Buffer.from(gorFile), readGor, 3],
  ] as const) {
    const whole = []
    for (const size of [1, 2, 7, 64, bytes.length]) {
      const pieces = async function* () {
        for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
      }
      const faults: unknown[] = []
      const found: TrafficRequest[] = []
      const leftOut = { cached: 0, blocked: 0, otherHosts: 0 }
      const reading = {
        nameOf: () => 'k',
        onFault: (line: number, fault: unknown) => void faults.push([line, String(fault)]),
        found: { skippedLines: 0, leftOut, host: null, share: null },
      }
      for await (const batch of read(pieces(), reading)) found.push(...batch)
      t.equal(found.length, count)
      whole.push(JSON.stringify([found, faults]))
    }
    t.equal(new Set(whole).size, 1)
  }
})

const monkeys = '\n🐵🙈🙉\n'
const gorFile = [
  `1 aa 1795240800000000000 0\nGET /api/v1/x HTTP/1.1\r\nHost: a\r\nX-Api-Key: ${key}\r\nAccept-Encoding: gzip\r\n\r\n`,
  '2 aa 1795240800009000000 5000000\nHTTP/1.1 200 OK\r\nContent-Length: 12\r\nCache-Status: abohawa; fwd=miss; stored; ttl=3; key="23.8,90.4"\r\n\r\nhello\n\nworld',
  `1 bb 1795240801000000000\nPOST http://a/y?k=${key} HTTP/1.1\r\n\r\nbody`,
  'broken',
  '2 unknown 1795240801000000000 3\nHTTP/1.1 200 OK\r\n\r\n',
  '1 cc 1795240800500000000\nGET /z HTTP/1.1\r\n\r\n',
]
  .map(payload => payload + monkeys)
  .join('')

t.test('goreplay: requests with their responses, by the nanosecond of arrival', async t => {
  const { requests, format, faults, summary } = await readText(t, gorFile)
  t.equal(format, 'gor')
  const name = requests[0]?.key
  t.match(name, /^anon_[0-9a-f]{12}$/)
  const answered = { status: 200, outcome: 'miss', tier: 'provider', cell: '23.8,90.4', bytes: 12, ms: 5 }
  t.strictSame(requests, [
    { at: 1_795_240_800_000, method: 'GET', path: '/api/v1/x', key: name, accepts: 'gzip', ...answered },
    { at: 1_795_240_800_500, method: 'GET', path: '/z' },
    { at: 1_795_240_801_000, method: 'POST', path: `/y?k=${name}`, key: name },
  ])
  t.match(faults, [{ reason: /^"broken" is not the first line of a payload/ }])
  t.equal(faults[0]?.line, gorFile.slice(0, gorFile.indexOf('broken')).split('\n').length)
  t.equal(summary.skippedLines, 1)
})

t.test('goreplay: the last nanosecond of a millisecond and its first are of that millisecond', async t => {
  const instants = ['1795240800003999999', '1795240800004000000', '1795240800000999999']
  const file = instants.map((ns, i) => `1 a${i} ${ns} 0\nGET /z HTTP/1.1\r\n\r\n${monkeys}`).join('')
  const { requests } = await readText(t, file)
  const offsets = requests.map(request => request.at - 1_795_240_800_000)
  t.strictSame(offsets, [0, 3, 4])
})

t.test("a format is named where it can't be found", async t => {
  await t.rejects(readText(t, 'hello\nworld\n'), /file: unknown format, the file begins with "hello/)
  await t.rejects(readText(t, 'x', 'pcap'), /the format must be one of access-log, .*, got "pcap"/)
  const line = '{"at":"2026-11-21T06:00:00Z","method":"GET","path":"/"}'
  t.equal((await readText(t, `\ufeff${line}\r\n`)).requests.length, 1)
  const { requests, faults } = await readText(t, `hello\n${line}`)
  t.equal(requests.length, 1, 'a broken first line does not hide the format')
  t.equal(faults.length, 1)
})
