// Without it tags, encodings and ages could make a client's cache show wrong or outdated weather.

import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { Agent, interceptors, request } from 'undici'
import { createCalendar, hourMs, minuteMs } from '../../src/common/calendar.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
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
// It compares `date` with the machine's clock: an hour ahead of it, nothing seems old.
const hour = (Math.floor(Date.now() / hourMs) + 2) * hourMs
const at = (minute: number, second = 0): number => hour + minute * minuteMs + second * 1_000

/** A gateway with weather of some age, a caching client, and the statuses of those of its requests that reached the gateway. */
const setUp = async (t: Test) => {
  const clock = manualClock(at(5))
  await provider.steer({ now: new Date(at(5)).toISOString() })
  const { apiUrl, get, keys, logged } = await startGateway(t, { providerUrl: provider.url, clock })
  await get(weather)
  logged.length = 0
  const agent = new Agent().compose(interceptors.cache({ type: 'private' }))
  t.teardown(() => agent.close())
  const getWeather = async (key = keys.enterprise ?? '') => {
    const sent = { dispatcher: agent, headers: key === '' ? {} : { 'x-api-key': key } }
    const { statusCode: status, headers, body } = await request(`${apiUrl}/api/v1${weather}`, sent)
    return { status, headers, text: await body.text() }
  }
  return { clock, keys, getWeather, passed: () => logged.map(({ status }) => status) }
}

t.test('within max-age a client is answered from its cache, and each key from its own answers', async t => {
  const { clock, keys, getWeather, passed } = await setUp(t)
  clock.set(at(50))
  const first = await getWeather()
  const lastModified = new Date(at(5)).toUTCString()
  t.hasStrict(first.headers, { 'cache-control': 'private, max-age=600', 'last-modified': lastModified })
  t.equal((await getWeather()).text, first.text)
  t.strictSame(passed(), [200], 'the gateway got one request')
  for (const key of ['', 'svc_live_wrong']) t.equal((await getWeather(key)).status, 401, key)
  const other = await getWeather(keys.free)
  t.not(other.headers['x-ratelimit-limit'], first.headers['x-ratelimit-limit'], 'the figures of its own tier')
  t.strictSame(passed(), [200, 401, 401, 200])
})

// Whether the body is still current when the client's cache revalidates, and the expected status.
for (const [isRight, status] of [
  [true, 304],
  [false, 200],
] as const)
  t.test(`after max-age a client revalidates its body, and gets ${status}`, async t => {
    const { clock, getWeather, passed } = await setUp(t)
    clock.set(at(59, 58))
    const first = await getWeather()
    t.equal(first.headers['cache-control'], 'private, max-age=2')
    if (!isRight) clock.set(at(60))
    // The client's cache uses the machine's clock and the gateway a manual one, so this takes two seconds.
    const revalidated = async () => {
      const answer = await getWeather()
      return passed().length >= 2 && answer
    }
    const last = await until('the cache revalidates', revalidated)
    t.equal(passed()[1], status)
    t.strictSame([last.status, last.text === first.text], [200, isRight])
    const quarter = at(isRight ? 45 : 60)
    t.equal(JSON.parse(last.text).current.time, createCalendar('Asia/Dhaka').localMinute(quarter))
  })
