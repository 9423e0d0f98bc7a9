// Without it a response could lack what its client reads of limits, instants, languages or the path of a slug, or have an outdated one.

import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import type { CellResult } from '../../src/api/answer.ts'
import type { ApiParts } from '../../src/api/api.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import type { Client } from '../../src/keys/authentication.ts'
import { newRate } from '../../src/keys/rates.ts'
import { alwaysFresh, wholeTimeline } from '../scenarios/whole-timeline.ts'
import { goodClient, goodKey, startApp } from './api-app.ts'

const weather = '/api/v1/weather/district/3026'
const now = Date.parse('2026-11-21T06:05:00Z')
const unlimited: ApiParts['quota'] = {
  ...{
    now: () => now,
    resetAfter: createCalendar('Asia/Dhaka').nextMidnight,
    refund: () => 0,
    isExact: () => true,
  },
  consume: (_client, _at, _units, callback) => callback(undefined, { allowed: true, remaining: 7 }),
}

t.test(
  'limits by the second and minute follow that of the day, with what is left and when there is more',
  async t => {
    const limits = { perSecond: 4, burst: 9, perMinute: 30 }
    const rate = newRate('key_1', limits, now)
    const [second, minute] = rate.buckets
    if (!second || !minute) return t.fail('no buckets')
    const client = { ...goodClient, rates: limits, rate }
    const { inject } = await startApp(t, { authenticate: () => ({ client }), quota: unlimited })
    const left = async () => (await inject(weather)).headers.ratelimit
    t.equal(await left(), '"daily";r=7;t=42900, "second";r=9;t=1, "minute";r=30;t=1')
    Object.assign(second, { tokens: 1.5, at: now - 250 })
    minute.tokens = 0.25
    t.equal(await left(), '"daily";r=7;t=42900, "second";r=2;t=2, "minute";r=0;t=2')
    minute.tokens = -3
    t.match(await left(), /, "minute";r=0;t=8$/)
    const policies = '"daily";q=10;w=86400, "second";q=4;w=1, "minute";q=30;w=60'
    t.equal((await inject(weather)).headers['ratelimit-policy'], policies)
  },
)

t.test('the headers of a limit are those of its key and of its instant', async t => {
  let client: Client = goodClient
  const clockOf = { now: () => app.clock.now() }
  const app = await startApp(t, { authenticate: () => ({ client }), quota: { ...unlimited, ...clockOf } })
  const headers = async (limit: number) => {
    client = { ...goodClient, limit }
    const { headers } = await app.inject(weather)
    const names = ['x-ratelimit-limit', 'x-ratelimit-reset', 'ratelimit-policy', 'ratelimit', 'date']
    return names.map(name => headers[name])
  }
  const day = (at: string) => String(Date.parse(at) / 1_000)
  const of = (limit: number, seconds: number, time: string, reset = '2026-11-21T18:00:00Z') => [
    ...[`${limit}`, day(reset), `"daily";q=${limit};w=86400`, `"daily";r=7;t=${seconds}`, time],
  ]
  t.strictSame(await headers(10), of(10, 42_900, 'Sat, 21 Nov 2026 06:05:00 GMT'))
  t.strictSame(await headers(20), of(20, 42_900, 'Sat, 21 Nov 2026 06:05:00 GMT'))
  app.clock.advance(999)
  t.strictSame(await headers(10), of(10, 42_900, 'Sat, 21 Nov 2026 06:05:00 GMT'))
  app.clock.advance(1)
  t.strictSame(await headers(20), of(20, 42_899, 'Sat, 21 Nov 2026 06:05:01 GMT'))
  app.clock.advance(86_400_000)
  t.strictSame(await headers(20), of(20, 42_899, 'Sun, 22 Nov 2026 06:05:01 GMT', '2026-11-22T18:00:00Z'))
})

t.test('a key that ends soon is told when', async t => {
  let client: Client = { ...goodClient, endsSoon: true, endsAt: now + 1_000 }
  const { inject } = await startApp(t, { authenticate: () => ({ client }) })
  const ends = async () => (await inject('/api/v1/key')).headers['x-key-expires']
  t.equal(await ends(), '2026-11-21T06:05:01.000Z')
  client = { ...client, endsSoon: false }
  t.equal(await ends(), undefined)
  t.equal((await inject('/api/v1/key')).body.expires_at, '2026-11-21T06:05:01.000Z')
})

t.test('each tag of a list is compared, weakly, and a star is any', async t => {
  const { inject } = await startApp(t, { quota: unlimited })
  const { headers } = await inject(weather)
  const tag = headers.etag?.slice(2)
  t.match(tag, /^"[\w-]{44}"$/, '132 bits of the place, and of its weather')
  for (const [given, status] of [
    [`W/${tag}`, 304],
    [tag, 304],
    [`"a", W/"b",W/${tag}`, 304],
    ['*', 304],
    [' * ', 304],
    ['"*"', 200],
    [tag?.slice(1, -1), 200],
    [`"x${tag?.slice(1)}`, 200],
    ['', 200],
  ] as const)
    t.equal(
      (await inject(weather, { 'x-api-key': goodKey, 'if-none-match': given ?? '' })).status,
      status,
      `${given}`,
    )
})

t.test('the length of a body is that of its coding, also once it is compressed better', async t => {
  const app = await startApp(t, { quota: unlimited })
  for (const url of [weather, '/api/v1/locations?type=union&limit=100', '/docs', '/api/v1/openapi.json']) {
    const plain = await app.inject(url)
    for (const coding of ['gzip', 'identity', 'gzip', 'br', 'gzip', 'gzip;q=0, br']) {
      const { headers, bytes } = await app.inject(url, { 'x-api-key': goodKey, 'accept-encoding': coding })
      t.equal(Number(headers['content-length']), bytes.length, `${coding} of ${url}`)
      t.equal(app.answered.at(-1)?.bytes, bytes.length)
      const made = headers['content-encoding']
      const body = made === 'br' ? brotliDecompressSync(bytes) : made === 'gzip' ? gunzipSync(bytes) : bytes
      t.ok(body.equals(plain.bytes))
      t.equal(headers.etag, plain.headers.etag)
    }
    const head = await app.inject(url, { 'x-api-key': goodKey, 'accept-encoding': 'gzip' }, 'HEAD')
    t.hasStrict(head.headers, { 'content-encoding': 'gzip' })
    t.hasStrict(app.answered.at(-1), { method: 'HEAD', bytes: 0, encoding: 'gzip' })
  }
})

/** The API whose weather is in memory, or comes later. */
const startWith = (t: Test, isLater: boolean) => {
  const fresh = alwaysFresh(wholeTimeline(now, createCalendar('Asia/Dhaka')), () => now)
  const consumers: (string | undefined)[] = []
  const read: ApiParts['timelines']['read'] = (cell, consumer) => {
    consumers.push(consumer)
    const found = fresh.read(cell) as CellResult
    return isLater ? Promise.resolve(found) : found
  }
  return startApp(t, { timelines: { read }, quota: unlimited }).then(app => ({ ...app, consumers }))
}

for (const isLater of [false, true])
  t.test(`a slug is answered like its id, which it names; the weather comes later: ${isLater}`, async t => {
    const { inject, consumers } = await startWith(t, isLater)
    for (const [path, query, named, language] of [
      ['weather', '', '', 'bn'],
      ['weather', '?lang=bn', '', 'bn'],
      ['weather', '?lang=en', '?lang=en', 'en'],
      ['weather', '?include=text', '?include=text', 'bn'],
      ['weather', '?include=text&lang=en', '?lang=en&include=text', 'en'],
      ['forecast', '', '', undefined],
      ['forecast', '?days=7', '', undefined],
      ['forecast', '?days=3&lang=en', '?days=3', undefined],
      ['forecast', '?include=text', '?include=text', 'bn'],
      ['forecast', '?days=2&include=text&lang=en', '?lang=en&days=2&include=text', 'en'],
      ['locations', '', '', undefined],
    ] as const) {
      const [slug, id] = await Promise.all(
        ['dhaka', '3026'].map(name => inject(`/api/v1/${path}/district/${name}${query}`)),
      )
      t.hasStrict(slug, { status: 200, headers: { 'content-location': `3026${named}` } })
      t.has(id, { status: 200, headers: { 'content-location': undefined, 'content-language': language } })
      t.strictSame(slug?.body, id?.body)
      t.equal(slug?.headers.etag, id?.headers.etag)
      t.equal(slug?.headers['content-language'], language)
    }
    t.equal(consumers.length, 20)
    await inject('/api/v1/weather/coords/23.8/90.4?lang=en')
    for (const path of ['weather', 'forecast']) await inject(`/api/v1/${path}?places=district/3026`)
    t.strictSame([...new Set(consumers)], ['key_1'], 'a load counts towards the share of its key')
  })
