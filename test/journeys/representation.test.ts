// The representations of one body: tags and 304, br and gzip, HEAD; when a tag changes; and what a client's cache makes of it.

import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { Agent, type Dispatcher, interceptors, request } from 'undici'
import { createCalendar, hourMs, minuteMs } from '../../src/common/calendar.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const start = '2026-11-21T06:05:00Z'
const clock = manualClock(start)
const provider = await startProviderHere(t, undefined, start)
const gateway = await startGateway(t, { providerUrl: provider.url, clock })

const [weather, small] = ['/weather/district/3026', '/locations/district/3026']
const raw = async (path: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') => {
  const all = { 'x-api-key': gateway.keys.enterprise ?? '', ...headers }
  const {
    statusCode,
    headers: given,
    body,
  } = await request(`${gateway.apiUrl}/api/v1${path}`, { method, headers: all })
  const bytes = Buffer.from(await body.arrayBuffer())
  const coding = given['content-encoding']
  const plain = () =>
    coding === 'br' ? brotliDecompressSync(bytes) : coding === 'gzip' ? gunzipSync(bytes) : bytes
  return { status: statusCode, headers: given, coding, bytes, plain }
}

// path, accept-encoding → the encoding that is sent
const preferences: [path: string, accepted: string | undefined, coding?: string][] = [
  [weather, undefined],
  [weather, ''],
  [weather, 'identity'],
  // Where both are taken, br is for bodies of which it is there already.
  [weather, 'gzip, deflate, br, zstd', 'gzip'],
  [weather, '*', 'gzip'],
  [weather, 'br', 'br'],
  [weather, 'br, gzip', 'br'],
  [weather, 'gzip', 'gzip'],
  [weather, 'gzip;q=1, br;q=0.5', 'gzip'],
  [weather, 'br;q=0, gzip', 'gzip'],
  [weather, 'br;q=0, *', 'gzip'],
  [weather, 'BR', 'br'],
  [weather, 'deflate'],
  [weather, 'gzip;q=0'],
  [weather, 'nonsense;;;q=x'],
  [weather, 'identity;q=0, gzip', 'gzip'],
  // Too small to gain from it, and so compressed for those alone who accept nothing else.
  [small, 'br'],
  [small, 'gzip'],
  [small, 'gzip, identity;q=0', 'gzip'],
  [small, 'br, identity;q=0', 'br'],
  [small, 'gzip, *;q=0', 'gzip'],
  [small, 'identity;q=0'],
]
t.test('a body comes in the form that the consumer prefers, and is the same body', async t => {
  t.ok((await raw(small)).bytes.length < 1024)
  for (const [path, accepted, coding] of preferences) {
    const plain = await raw(path)
    const headers = accepted === undefined ? {} : { 'accept-encoding': accepted }
    const answer = await raw(path, headers)
    t.equal(answer.coding, coding, `${path}, accept-encoding: ${accepted}`)
    t.equal(answer.headers.vary, 'accept-encoding, x-api-key')
    t.equal(answer.headers['content-length'], String(answer.bytes.length))
    t.equal(answer.headers.etag, plain.headers.etag)
    t.strictSame(answer.plain(), plain.bytes)
    if (coding && path === weather) t.ok(answer.bytes.length < plain.bytes.length / 2)
    const head = await raw(path, headers, 'HEAD')
    t.equal(head.bytes.length, 0)
    // A first answer in gzip may be longer than the next.
    const again = await raw(path, headers)
    for (const name of ['content-encoding', 'content-length', 'etag', 'content-type', 'cache-status'])
      t.equal(head.headers[name], again.headers[name], `${name} of HEAD`)
  }
})

t.test('a client that has the body gets a 304 with the headers that changed', async t => {
  const { headers } = await raw(weather)
  const tag = String(headers.etag)
  const kept = ['etag', 'cache-control', 'last-modified', 'cache-status', 'content-language', 'x-request-id']
  for (const given of [tag, tag.replace('W/', ''), `"other", ${tag}`, '*']) {
    const answer = await raw(weather, { 'if-none-match': given, 'accept-encoding': 'br' })
    t.strictSame([answer.status, answer.bytes.length], [304, 0], given)
    for (const name of [...kept, 'x-ratelimit-remaining']) t.match(answer.headers[name], /./, name)
    t.strictSame([answer.headers['content-type'], answer.coding], [undefined, undefined])
  }
  const head = await raw(weather, { 'if-none-match': tag }, 'HEAD')
  t.equal(head.status, 304)
  t.equal(head.headers['content-length'], undefined, 'a 304 has no length of its own')
  for (const given of ['"other"', tag.slice(0, -2), 'W/', ''])
    t.equal((await raw(weather, { 'if-none-match': given })).status, 200, given)
  t.equal((await raw(weather, { 'if-modified-since': 'Sat, 21 Nov 2099 00:00:00 GMT' })).status, 200)
})

t.test('a tag names the body: another language, place or quarter-hour has another', async t => {
  t.teardown(() => clock.set(start))
  const tagOf = async (path: string) => String((await raw(path)).headers.etag)
  const tag = await tagOf(weather)
  t.not(await tagOf(`${weather}?lang=en`), tag)
  t.not(await tagOf('/weather/division/30'), tag)
  clock.set('2026-11-21T06:14:59Z')
  t.equal(await tagOf(weather), tag)
  clock.set('2026-11-21T06:15:00Z')
  t.not(await tagOf(weather), tag)
  // 132 bits for the place and as many for the weather.
  for (const path of [weather, '/weather/coords/23.8/90.4', '/forecast/district/3026'])
    t.match(await tagOf(path), /^W\/"[A-Za-z0-9_-]{44}"$/)
  t.match(await tagOf(small), /^W\/"[A-Za-z0-9_-]{22}"$/)
})

t.test('no body or header differs between keys', async t => {
  const one = await gateway.get(weather)
  const other = await gateway.get(weather, { key: gateway.keys.business ?? '' })
  t.equal(one.text, other.text)
  const shared = ({ headers }: typeof one) =>
    Object.entries(headers).filter(([name]) => !/^(?:x-)?ratelimit|^x-request-id|^date/.test(name))
  t.strictSame(shared(one), shared(other))
})

t.test('two points whose bodies begin with the same 48 bits of a hash keep their own', async t => {
  // A collision of short hashes, found among 26 million points of one cell: a cache by such a hash would mix them up.
  const points = ['23.8285/90.38413', '23.81792/90.38667']
  for (const coding of ['br', 'gzip']) {
    const answers = []
    for (const point of points)
      answers.push(await raw(`/weather/coords/${point}`, { 'accept-encoding': coding }))
    t.strictSame(
      answers.map(({ plain }) => JSON.parse(plain().toString()).location.latitude),
      [23.8285, 23.81792],
      coding,
    )
    t.not(answers[0]?.headers.etag, answers[1]?.headers.etag)
  }
})

// A conforming client cache: it keeps weather for its max-age, whatever the age of the weather, and revalidates it after that.

type PassedRequest = { ifNoneMatch: string | undefined; status: number }

/** A caching client, and those of its requests that reached the gateway. */
const cachingClient = (t: Test) => {
  const passed: PassedRequest[] = []
  const record: Dispatcher.DispatcherComposeInterceptor = dispatch => (options, handler) => {
    const given = new Map(Object.entries((options.headers ?? {}) as Record<string, string>))
    return dispatch(options, {
      ...forwarding(handler),
      onResponseStart: (controller, status, headers, message) => {
        passed.push({ ifNoneMatch: given.get('if-none-match'), status })
        handler.onResponseStart?.(controller, status, headers, message)
      },
    })
  }
  const agent = new Agent().compose(record, interceptors.cache({ type: 'private' }))
  t.teardown(() => agent.close())
  const get = async (url: string, key: string | undefined) => {
    const { statusCode, headers, body } = await request(url, {
      dispatcher: agent,
      headers: key === undefined ? {} : { 'x-api-key': key },
    })
    return { status: statusCode, headers, text: await body.text() }
  }
  return { get, passed }
}

const forwarding = (handler: Dispatcher.DispatchHandler): Dispatcher.DispatchHandler => ({
  onRequestStart: (...given) => handler.onRequestStart?.(...given),
  onResponseData: (...given) => handler.onResponseData?.(...given),
  onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
  onResponseError: (...given) => handler.onResponseError?.(...given),
})

// The client's cache compares `date` with the machine's clock: an hour ahead of it, nothing seems old.
const hour = (Math.floor(Date.now() / hourMs) + 2) * hourMs
const at = (minute: number, second = 0): number => hour + minute * minuteMs + second * 1_000

const setUp = async (t: Test) => {
  const clock = manualClock(at(5))
  await provider.steer({ now: new Date(at(5)).toISOString() })
  const gateway = await startGateway(t, { providerUrl: provider.url, clock })
  const url = `${gateway.apiUrl}/api/v1/weather/district/3026`
  const { get, passed } = cachingClient(t)
  // Another client loads it first, so that the weather has some age when the cache first sees it.
  await gateway.get('/weather/district/3026')
  return {
    clock,
    passed,
    getWeather: (key: string | undefined = gateway.keys.enterprise ?? '') => get(url, key),
    getWithout: () => get(url, undefined),
    otherKey: gateway.keys.free ?? '',
  }
}

t.test('within max-age a client is answered from its cache, with weather of whatever age', async t => {
  const { clock, passed, getWeather } = await setUp(t)
  clock.set(at(50))
  const first = await getWeather()
  t.match(first.headers, {
    'cache-control': 'private, max-age=600',
    'last-modified': new Date(at(5)).toUTCString(),
  })
  const second = await getWeather()
  t.equal(second.text, first.text)
  t.strictSame(passed, [{ ifNoneMatch: undefined, status: 200 }], 'the gateway got one request')
})

t.test('a cache that keys share answers each from its own responses', async t => {
  const { passed, getWeather, getWithout, otherKey } = await setUp(t)
  const first = await getWeather()
  t.equal(first.status, 200)
  t.equal((await getWithout()).status, 401, 'no key')
  t.equal((await getWeather('svc_live_wrong')).status, 401, 'a wrong one')
  const other = await getWeather(otherKey)
  t.not(other.headers['x-ratelimit-limit'], first.headers['x-ratelimit-limit'], 'the figures of its own tier')
  t.strictSame(
    passed.map(({ status }) => status),
    [200, 401, 401, 200],
  )
})

// Whether the body is still current when the client's cache revalidates, and the expected status.
for (const [isRight, status] of [
  [true, 304],
  [false, 200],
] as const)
  t.test(`after max-age a client revalidates its body, and gets ${status}`, async t => {
    const { clock, passed, getWeather } = await setUp(t)
    clock.set(at(59, 58))
    const first = await getWeather()
    t.equal(first.headers['cache-control'], 'private, max-age=2')
    if (!isRight) clock.set(at(60))
    // The client's cache uses the machine's clock and the gateway a manual one, so this takes two seconds.
    const last = await until(
      'the cache revalidates',
      async () => {
        const answer = await getWeather()
        return passed.length >= 2 && answer
      },
      30_000,
    )
    t.strictSame(passed[1], { ifNoneMatch: String(first.headers.etag), status })
    t.equal(last.status, 200)
    t.equal(last.text === first.text, isRight)
    const quarter = at(isRight ? 45 : 60)
    t.equal(JSON.parse(last.text).current.time, createCalendar('Asia/Dhaka').localMinute(quarter))
  })
