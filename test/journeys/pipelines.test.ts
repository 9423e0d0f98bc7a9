// Without it pipelined requests could be answered twice, out of order, not at all, or under another key.

import t from 'tap'
import { openHttp2, startTlsGateway } from '../support/http2-client.ts'
import { startProviderHere } from '../support/provider.ts'
import { openRaw } from '../support/raw-connection.ts'
import { startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProviderHere(t)
const gateway = await startGateway(t, { providerUrl: provider.url })
const secure = await startTlsGateway(t, provider)
const open = ({ apiUrl }: TestGateway = gateway) => openRaw(t, apiUrl)
const keyOf = ({ keys }: TestGateway) => keys.enterprise ?? ''
const good = keyOf(gateway)

const place = '/locations/district/3026'
const [cold, garbage] = ['/weather/coords/25.5/89.5', 'hello there\r\n\r\n']
let sent = 0
const request = (path = place, { method = 'GET', more = '', key = good, version = '1.1' } = {}) => {
  sent += 1
  return `${method} /api/v1${path} HTTP/${version}\r\nhost: x\r\nx-request-id: r${sent}\r\nx-api-key: ${key}\r\n${more}\r\n`
}
const many = (count: number, key = good) =>
  Array.from({ length: count }, () => request(place, { key })).join('')
const statusesOf = (answers: readonly { status: number }[]) => answers.map(({ status }) => status)
const chunked = () => request('/locations', { method: 'POST', more: 'transfer-encoding: chunked\r\n' })

t.test('garbage behind whole requests gets one 400 after all of their answers', async t => {
  for (const [bytes, status, sentence] of [
    [garbage, 400, 'the request is not valid HTTP'],
    [`GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`, 400, /^the URL and headers must have at most 16/],
    ['CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n', 405, 'the method must be GET or HEAD, got CONNECT'],
  ] as const)
    for (const point of ['25.5/89.5', '24.5/89.5']) {
      const raw = await open()
      // The first needs the provider, so that all responses are outstanding when the garbage is parsed.
      raw.send(request(`/weather/coords/${point}`) + request() + request('/forecast/district/3026') + bytes)
      const answers = await raw.answersToTheEnd()
      t.strictSame(
        answers.map(({ status, headers }) => [status, headers.get('connection')]),
        [...Array(3).fill([200, 'keep-alive']), [status, 'close']],
      )
      t.match(JSON.parse(answers.at(-1)?.body ?? ''), { error: sentence })
    }
  const later = await open()
  later.send(request())
  t.equal((await later.answer()).status, 200)
  later.send(garbage)
  t.strictSame(statusesOf(await later.answersToTheEnd()), [400], 'and so does what comes later')
})

t.test('a body that turns bad belongs to its request, which is not answered twice', async t => {
  for (const before of ['', request()]) {
    // Together with the request, and after its response.
    const together = await open()
    together.send(`${before}${chunked()}5\r\nhello\r\nnonsense\r\n\r\n`)
    const later = await open()
    later.send(`${before}${chunked()}5\r\nhello\r\n`)
    if (before) t.equal((await later.answer()).status, 200)
    t.equal((await later.answer()).status, 405)
    later.send('nonsense\r\n\r\n')
    t.strictSame(await later.answersToTheEnd(), [], 'nothing behind the 405')
    t.strictSame(statusesOf(await together.answersToTheEnd()), before ? [200, 405] : [405])
  }
})

t.test('nothing is answered behind a request with a body, or with an offer to upgrade', async t => {
  const raw = await open()
  // Far more than one read.
  raw.send(`${chunked()}5\r\nhello\r\n0\r\n\r\n${many(10_000)}`)
  const [refused, ...behind] = await raw.answersToTheEnd()
  t.strictSame([refused?.status, refused?.headers.get('connection'), behind], [405, 'close', []])
  await until('the connection is closed', () => raw.socket.closed)
  t.equal(raw.socket.errored, null, 'and it is not reset')
  // Node's parser loses what follows an offer on the connection.
  for (const each of [gateway, secure])
    for (const key of ['none', keyOf(each)])
      for (const protocol of ['h2c', 'websocket', 'x/1, h2c'])
        for (const body of ['', 'content-length: 5\r\n\r\nhello']) {
          const offer = `connection: upgrade, http2-settings\r\nupgrade: ${protocol}\r\nhttp2-settings: AAMAAABk\r\n`
          const offering = request(place, { key, more: `${offer}${body}` })
          const upgraded = await open(each)
          upgraded.send(
            request(cold, { key }) + (body ? offering.slice(0, -2) : offering) + request(place, { key }),
          )
          const answers = await upgraded.answersToTheEnd()
          t.strictSame(statusesOf(answers), Array(2).fill(key === 'none' ? 401 : 200), `${protocol} ${body}`)
          t.equal(answers[1]?.headers.get('connection'), 'close')
        }
})

t.test('thousands of requests at once are answered in their order', async t => {
  for (const each of [gateway, secure]) {
    const raw = await open(each)
    const first = sent + 1
    const count = 3_000
    raw.send(many(count, keyOf(each)))
    for (let i = 0; i < count; i++) {
      const { status, headers } = await raw.answer()
      const id = headers.get('x-request-id')
      if (status !== 200 || id !== `r${first + i}`) t.fail(`answer ${i} is ${status} to ${id}`)
    }
    raw.send(request(place, { key: keyOf(each) }) + garbage)
    t.strictSame(statusesOf(await raw.answersToTheEnd()), [200, 400])
  }
})

t.test('cold and warm, with and without bodies, each answer is in its place', async t => {
  const { headers } = await gateway.get('/weather/district/3026')
  const requests: [path: string, status: number, more?: { method?: string; more?: string }][] = [
    ['/weather/coords/26.5/89.5', 200],
    ['/weather/district/3026', 200],
    ['/weather/district/3026', 200, { method: 'HEAD' }],
    ['/weather/district/3026', 304, { more: `if-none-match: ${headers.etag}\r\n` }],
    ['/weather/district/9', 404],
    ['/forecast/district/3026?days=2', 200],
  ]
  const raw = await open()
  raw.send(requests.map(([path, , more]) => request(path, more)).join(''))
  const answers = []
  for (const [, , more] of requests) answers.push(await raw.answer(more?.method))
  t.strictSame(
    statusesOf(answers),
    requests.map(([, status]) => status),
  )
  const [point, weather, head, , , forecast] = answers
  t.equal(JSON.parse(point?.body ?? '').location.type, 'coords')
  t.equal(JSON.parse(weather?.body ?? '').location.id, '3026')
  t.equal(head?.headers.get('content-length'), weather?.headers.get('content-length'))
  t.equal(JSON.parse(forecast?.body ?? '').daily.time.length, 2)
  for (const { headers } of answers) t.equal(headers.get('connection'), 'keep-alive')
})

t.test('keys that take turns on a connection are each counted for themselves', async t => {
  const { free = '', business = '' } = gateway.keys
  const wrong = `${free.slice(0, -1)}${free.endsWith('0') ? '1' : '0'}`
  const raw = await open()
  const turns = [free, business, wrong, free, '', business, free]
  raw.send(turns.map(key => request(place, { key })).join(''))
  const found: unknown[] = []
  for (const _ of turns) {
    const { status, headers } = await raw.answer()
    found.push([status, ...['limit', 'remaining'].map(name => Number(headers.get(`x-ratelimit-${name}`)))])
  }
  t.strictSame(found, [
    [200, 100, 99],
    [200, 10_000, 9_999],
    [401, 0, 0],
    [200, 100, 98],
    [401, 0, 0],
    [200, 10_000, 9_998],
    [200, 100, 97],
  ])
})

t.test('a connection ends where its consumer says so, and with HTTP/1.0 unless it is kept alive', async t => {
  for (const [bytes, kept] of [
    [request(place, { more: 'connection: close\r\n' }), false],
    [request(place, { version: '1.0' }), false],
    [request(place, { version: '1.0', more: 'connection: keep-alive\r\n' }), true],
    [request('/nothing', { more: 'connection: close\r\n' }), false],
  ] as const) {
    const raw = await open()
    raw.send(bytes)
    t.equal((await raw.answer()).headers.get('connection'), kept ? 'keep-alive' : 'close', bytes.slice(0, 60))
    if (!kept) t.strictSame(await raw.answersToTheEnd(), [])
    raw.send(request())
    if (kept) t.equal((await raw.answer()).status, 200)
  }
})

t.test('a client that ends its side still gets all of its answers', async t => {
  for (const key of [good, '']) {
    const raw = await open()
    raw.send(many(50, key))
    raw.socket.end()
    t.equal((await raw.answersToTheEnd()).length, 50)
  }
  // Its end comes while the answer is still to come.
  await provider.steer({ hold: true })
  const raw = await open()
  raw.send(request('/weather/coords/22.5/90.5'))
  raw.socket.end()
  await until('the provider is asked', async () => (await provider.state()).inFlight > 0)
  await provider.steer({ hold: false })
  t.equal((await raw.answersToTheEnd()).length, 1)
})

t.test('eight requests of a connection are begun at once, and lists one after the other', async t => {
  const list = '/weather?places=district/1004,division/10'
  for (const [paths, most, units] of [
    [['/weather/coords/21.5/92.5', '/weather/coords/21.5/92.5'], 8, 1],
    [['/weather/coords/21.5/91.5', '/locations?type=division'], 8, 1],
    [[list, list], 2, 2],
  ] as const)
    for (const each of [gateway, secure]) {
      const key = keyOf(each)
      const other = await open(each)
      const remaining = async () => {
        other.send(request(place, { key }))
        return Number((await other.answer()).headers.get('x-ratelimit-remaining'))
      }
      const before = await remaining()
      await provider.steer({ hold: true })
      const raw = await open(each)
      const count = 500
      raw.send(
        paths
          .map(path => request(path, { key }))
          .join('')
          .repeat(count / 2),
      )
      let asked = 0
      const taken = async () => before - (await remaining()) - ++asked
      await until('some are begun', async () => (await taken()) >= most)
      for (let i = 0; i < 20; i++) t.equal(await taken(), most, 'the others wait')
      await provider.steer({ hold: false })
      for (let i = 0; i < count; i++) if ((await raw.answer()).status !== 200) t.fail(`answer ${i}`)
      t.equal(await taken(), count * units, 'all are answered, and counted once')
    }
})

t.test('eight lists of a session of HTTP/2 are begun at once, and all else beside them', async t => {
  const key = keyOf(secure)
  const { send } = await openHttp2(t, secure.apiUrl)
  const get = (path: string) => send(path, { 'x-api-key': key })
  const remaining = async () => Number((await get(`/api/v1${place}`)).headers['x-ratelimit-remaining'])
  const before = await remaining()
  await provider.steer({ hold: true })
  // The router decodes a path.
  const paths = ['weather?', 'forecast?', 'we%61ther?'].map(
    path => `/api/v1/${path}places=district/1009,division/20`,
  )
  const lists = Array.from({ length: 12 }, (_, i) => get(paths[i % paths.length] ?? ''))
  for (let i = 1; i <= 20; i++) t.equal(before - (await remaining()) - i, 16, 'eight lists are begun')
  for (const path of [
    '/api/v1/key',
    '/api/v1/locations?type=division',
    '/docs',
    '/api/v1/weather/district/9',
  ])
    t.equal((await get(path)).status, path.endsWith('9') ? 404 : 200, path)
  const begun = await remaining()
  await provider.steer({ hold: false })
  t.strictSame(statusesOf(await Promise.all(lists)), Array(12).fill(200))
  t.equal(begun - 1 - (await remaining()), 8, 'the others are answered too, and counted once')
})

t.test('a new connection may pipeline before its key is looked up', async t => {
  const fresh = await startGateway(t, { providerUrl: provider.url })
  const raw = await open(fresh)
  const count = 500
  raw.send(many(count, keyOf(fresh)))
  for (let i = 0; i < count; i++) if ((await raw.answer()).status !== 200) t.fail(`answer ${i}`)
})

t.test('who waits to be asked for a body gets the answer at once, behind all earlier ones', async t => {
  for (const key of ['', good])
    for (let round = 0; round < 10; round++) {
      const raw = await open()
      const more = 'expect: 100-continue\r\ncontent-length: 5\r\n'
      const expecting = request('/nowhere', { method: 'POST', more, key })
      raw.send(`${request('/none', { key })}${request('/none', { key })}${expecting}hello`)
      const answers = await raw.answersToTheEnd()
      t.strictSame(statusesOf(answers), key ? [404, 404, 405] : [401, 401, 401])
      for (const { body } of answers) JSON.parse(body)
    }
})
