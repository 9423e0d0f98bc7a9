// Without it a request could be checked in the wrong order, or miss a header of its quota or freshness.

import { EventEmitter } from 'node:events'
import t from 'tap'
import type { CellResult } from '../../src/api/answer.ts'
import type { ApiParts } from '../../src/api/api.ts'
import { readCatalogue } from '../../src/catalogue/live-catalogue.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import type { Quota } from '../../src/keys/meter.ts'
import { restrictedBy } from '../../src/keys/restrictions.ts'
import { StoreError } from '../../src/stores/store.ts'
import type { Cell } from '../../src/weather/cell.ts'
import { alwaysFresh, wholeTimeline } from '../scenarios/whole-timeline.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'
import { goodClient, goodKey, startApp } from './api-app.ts'

const weather = '/api/v1/weather/district/3026'

t.test('a hit carries the quota, its freshness and what the cache did', async t => {
  const app = await startApp(t)
  const { status, headers, body } = await app.inject(weather)
  t.equal(status, 200)
  t.equal(body.location.id, '3026')
  t.match(headers, {
    'content-type': 'application/json; charset=utf-8',
    'x-ratelimit-limit': '10',
    'x-ratelimit-remaining': '9',
    'x-ratelimit-reset': String(Date.parse('2026-11-21T18:00:00Z') / 1000),
    'ratelimit-policy': '"daily";q=10;w=86400',
    ratelimit: '"daily";r=9;t=42900',
    'cache-control': 'private, max-age=600',
    'cache-status': /^abohawa; hit; ttl=86400; detail=memory; key="/,
    etag: /^W\/"/,
    'x-request-id': /./,
    date: 'Sat, 21 Nov 2026 06:05:00 GMT',
  })
  t.strictSame(app.decisions, ['allowed'])
  t.match(app.answered, [
    { endpoint: 'weather', status: 200, keyId: 'key_1', method: 'GET', url: weather, cache: /^hit/ },
  ])
})

t.test('key, quota, method and path are checked in this order', async t => {
  const app = await startApp(t)
  const none = await app.inject('/nowhere', {}, 'POST')
  t.match(none, { status: 401, headers: { 'x-ratelimit-limit': '0', 'www-authenticate': /^ApiKey/ } })
  const unknown = await app.inject(weather, { 'x-api-key': 'svc_live_other' })
  t.hasStrict(unknown, { status: 401, body: { error: 'the API key is invalid: it is not known' } })
  const method = await app.inject('/nowhere', { 'x-api-key': goodKey }, 'POST')
  t.hasStrict(method, { status: 405, headers: { allow: 'GET, HEAD', 'x-ratelimit-remaining': '9' } })
  t.hasStrict(await app.inject('/nowhere'), { status: 404, headers: { 'x-ratelimit-remaining': '8' } })
  for (let i = 0; i < 8; i++) await app.inject(weather)
  const exhausted = await app.inject('/nowhere', { 'x-api-key': goodKey }, 'POST')
  t.hasStrict(exhausted, {
    status: 429,
    headers: {
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '0',
      'ratelimit-policy': '"daily";q=10;w=86400',
      ratelimit: '"daily";r=0;t=42900',
      'retry-after': '42900',
    },
    body: { limit: 10, reset_at: '2026-11-21T18:00:00.000Z' },
  })
  t.equal(app.reads(), 8, 'weather is read for nobody else')
  t.strictSame(app.decisions.slice(0, 3), ['missing', 'unknown', 'allowed'])
  t.equal(app.decisions.at(-1), 'exhausted')
})

t.test('HEAD has the headers of GET and no body, right or wrong', async t => {
  const app = await startApp(t)
  for (const url of [weather, '/api/v1/nothing']) {
    const [got, head] = [await app.inject(url), await app.inject(url, { 'x-api-key': goodKey }, 'HEAD')]
    t.equal(head.status, got.status)
    t.equal(head.bytes.length, 0)
    for (const name of ['content-type', 'content-length', 'etag', 'cache-control'])
      t.equal(head.headers[name], got.headers[name], `${name} of ${url}`)
  }
})

t.test('a failure after the admission is 500, with its cause in the log alone', async t => {
  const app = await startApp(t, {
    authenticate: () => {
      throw new AbohawaError('store_unavailable', 'Redis failed: secret detail')
    },
  })
  const { status, headers, body } = await app.inject(weather)
  t.equal(status, 500)
  t.match(body.error, /^the key or its quota could not be checked/)
  t.equal(headers['retry-after'], '10')
  t.match(app.failures, [{ message: /secret detail/ }])
  t.strictSame(app.decisions, ['unavailable'])
})

const uncounted: Quota = {
  now: () => 0,
  resetAfter: () => 1,
  refund: () => 0,
  isExact: () => true,
  consume: (_client, _at, _units, callback) =>
    callback(new AbohawaError('store_unavailable', 'Redis failed')),
}

t.test('a request that could not be counted has no figures of the draft, as of a used-up day', async t => {
  const app = await startApp(t, { quota: uncounted })
  const { status, headers } = await app.inject(weather)
  t.equal(status, 500)
  t.hasStrict(headers, { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '0' })
  t.strictSame([headers.ratelimit, headers['ratelimit-policy']], [undefined, undefined])
})

t.test('a refusal by the second is said while the store is away', async t => {
  const client = { ...goodClient, rates: { perSecond: 1, burst: null, perMinute: null } }
  const app = await startApp(t, {
    authenticate: () => ({ client }),
    quota: {
      ...uncounted,
      consume: (_client, _at, _units, callback) =>
        callback(undefined, {
          ...{ allowed: false, remaining: 0 },
          tooSoon: { policy: 'second', limit: 1, waitMs: 1_000 },
        }),
    },
  })
  t.hasStrict(await app.inject(weather), { status: 429, headers: { 'x-ratelimit-remaining': '0' } })
  t.strictSame(app.decisions, ['rate_limited'])
})

t.test('a draining process closes connections', async t => {
  const app = await startApp(t)
  app.drain()
  for (const url of [weather, '/nowhere']) t.equal((await app.inject(url)).headers.connection, 'close', url)
})

t.test("certificates that can't be used stop the start", async t => {
  const ticketKey = null
  const [cert, key] = ['test/fixtures/localhost.crt', 'test/fixtures/localhost.key']
  await t.rejects(startApp(t, {}, { tls: { cert: 'none.pem', key, ticketKey, http2: true } }), {
    name: 'InputError',
    message: /^server\.tls\.cert is none\.pem, which can't be read: ENOENT/,
  })
  await t.rejects(startApp(t, {}, { tls: { cert: key, key: cert, ticketKey, http2: true } }), {
    name: 'InputError',
    message: /no certificate and key in PEM form that belong together/,
  })
  const app = await startApp(t, {}, { tls: { cert, key, ticketKey, http2: true } })
  t.ok('setSecureContext' in app.app.server, 'the server speaks TLS')
  let ended = 0
  const stalled = Object.assign(new EventEmitter(), { destroy: () => (ended += 1) })
  app.app.server.emit('session', stalled)
  stalled.emit('timeout')
  t.equal(ended, 1, 'a session of HTTP/2 that stalls is ended, though it takes no further requests')
})

t.test('the reference is for everybody, 300 times a minute from one address', async t => {
  const { inject } = await startApp(t)
  for (let i = 0; i < 300; i++)
    if ((await inject('/docs/icon.svg', {})).status !== 200) t.fail(`request ${i}`)
  const refused = await inject('/docs/icon.svg', {})
  t.equal(refused.status, 429)
  t.hasStrict(refused.body, {
    error: 'the reference may be requested 300 times a minute from one address',
    code: 'reference_busy',
  })
  const { 'retry-after': retryAfter, ...headers } = refused.headers
  t.ok(Number(retryAfter) > 0 && Number(retryAfter) <= 60)
  t.equal(headers['x-ratelimit-limit'], '0', 'that of the contract')
  t.equal((await inject('/api/v1/locations?type=division')).status, 200, 'the API itself is not concerned')

  // The clock is set back by an hour.
  const wall = Date.now
  t.teardown(() => {
    Date.now = wall
  })
  Date.now = () => wall() - 3_600_000
  t.ok(Number((await inject('/docs/icon.svg', {})).headers['retry-after']) <= 60, 'the minute is no longer')
  const { now } = performance
  t.teardown(() => {
    performance.now = now
  })
  performance.now = () => now.call(performance) + 60_000
  t.equal((await inject('/docs/icon.svg', {})).status, 200, 'and it ends')
})

t.test('what is logged and counted of a request is that of its key, its body and its refusal', async t => {
  const app = await startApp(t)
  const { headers, bytes } = await app.inject(weather, { 'x-api-key': goodKey, 'accept-encoding': 'gzip' })
  const of = { endpoint: 'weather', url: weather, method: 'GET', httpVersion: '1.1', address: '127.0.0.1' }
  const known = { keyId: 'key_1', keyNumber: 1, tier: 'free', isTest: false }
  t.match(app.answered.at(-1), {
    ...{ ...of, ...known, status: 200, bytes: bytes.length, encoding: 'gzip', cell: /^23\.\d,90\.\d$/ },
    ...{ cost: undefined, notModified: undefined, reason: undefined, connectionRequest: 1 },
    requestId: headers['x-request-id'],
  })
  const unchanged = { 'x-api-key': goodKey, 'if-none-match': headers.etag ?? '', 'x-request-id': 'mine' }
  t.equal((await app.inject(weather, unchanged)).status, 304)
  t.hasStrict(app.answered.at(-1), { ...known, status: 304, bytes: 0, notModified: true, requestId: 'mine' })
  await app.inject(weather, { ...unchanged, 'if-none-match': 'W/"other"' })
  t.match(app.answered.at(-1), { status: 200, notModified: false, encoding: undefined })
  await app.inject(weather, { 'x-api-key': 'svc_live_other' })
  const unknown = { keyId: undefined, keyNumber: undefined, tier: undefined, cell: undefined }
  t.hasStrict(app.answered.at(-1), { ...of, ...unknown, status: 401, reason: 'unknown' })
  await app.inject('/api/v1/weather?places=district/3026,coords/23.8/90.4', { 'x-api-key': goodKey })
  t.match(app.answered.at(-1), { endpoint: 'weather_places', cost: 2, status: 200, cache: /2 hit/ })
})

t.test('weather of a test key is made once its quota has allowed it, and then kept', async t => {
  const calendar = createCalendar('Asia/Dhaka')
  let made = 0
  let isUsedUp = true
  const parts: Partial<ApiParts> = {
    authenticate: () => ({ client: { ...goodClient, isTest: true } }),
    calendar: {
      ...calendar,
      // Each timeline and each body begins with it.
      offsetSecondsAt: instant => {
        made += 1
        return calendar.offsetSecondsAt(instant)
      },
    },
    quota: {
      ...uncounted,
      consume: (_client, _at, units, callback) =>
        callback(undefined, { allowed: units === 0 || !isUsedUp, remaining: 0 }),
    },
  }
  const app = await startApp(t, parts, { notModifiedCost: 0 })
  const list = '/api/v1/weather?places=coords/23.1/90.1,coords/23.3/90.3,coords/23.5/90.5'
  const get = (etag: string) => app.inject(list, { 'x-api-key': goodKey, 'if-none-match': etag })
  made = 0
  t.equal((await get('W/"other"')).status, 429)
  t.equal(made, 0, 'nothing for who is refused')
  isUsedUp = false
  const { status, headers } = await get('W/"other"')
  t.equal(status, 200)
  t.ok(made >= 3, `${made} looks at the calendar`)
  made = 0
  isUsedUp = true
  const free = await get(headers.etag ?? '')
  t.hasStrict(free, { status: 304, headers: { 'x-ratelimit-cost': '0' } }, 'a free one needs no unit')
  t.equal(made, 0, 'nor is anything made')
})

t.test('for a key that is used up no list is searched, whatever tag it sends', async t => {
  const known = await readCatalogue(usualCatalogue)
  let searches = 0
  let isUsedUp = true
  const quota: Quota = {
    ...uncounted,
    consume: (_client, _at, units, callback) =>
      callback(undefined, { allowed: units === 0 || !isUsedUp, remaining: 0 }),
  }
  const current: typeof known = {
    ...known,
    list: given => {
      searches += 1
      return known.list(given)
    },
  }
  const app = await startApp(t, { quota, catalogue: { current } }, { notModifiedCost: 0 })
  const get = (etag: string) =>
    app.inject('/api/v1/locations?type=union&q=ka', { 'x-api-key': goodKey, 'if-none-match': etag })
  t.equal((await get('*')).status, 429)
  t.equal(searches, 0)
  isUsedUp = false
  const { headers } = await get('W/"other"')
  t.equal(searches, 1)
  isUsedUp = true
  t.equal((await get(headers.etag ?? '')).status, 304, 'what is kept costs nothing')
  t.equal(searches, 1)
})

t.test('what a 304 costs follows the settings that are applied', async t => {
  const given: [taken: number, refunded: number][] = []
  const quota: Quota = {
    ...uncounted,
    refund: (_client, _at, units) => {
      given[0] = [given[0]?.[0] ?? 0, units]
      return units
    },
    consume: (_client, _at, units, callback) => {
      given.unshift([units, 0])
      callback(undefined, { allowed: true, remaining: 5 })
    },
  }
  const app = await startApp(t, { quota })
  const path = '/api/v1/locations/district/3026'
  const { headers } = await app.inject(path)
  const unchanged = { 'x-api-key': goodKey, 'if-none-match': headers.etag ?? '' }
  for (const [notModifiedCost, wanted, remaining] of [
    [0, [0, 0], '5'],
    [1, [1, 0], '5'],
    [0.25, [1, 0.75], '5.75'],
    [0, [0, 0], '5'],
  ] as const) {
    app.apply({ ...app.options, notModifiedCost })
    const { status, headers } = await app.inject(path, unchanged)
    t.strictSame([status, headers['x-ratelimit-remaining']], [304, remaining])
    t.strictSame(given[0], wanted, `at ${notModifiedCost}`)
  }
  app.apply({ ...app.options, notModifiedCost: 0.25 })
  const list = '/api/v1/weather?places=district/3026,coords/23.8/90.4'
  const tag = (await app.inject(list)).headers.etag ?? ''
  const again = await app.inject(list, { ...unchanged, 'if-none-match': tag })
  t.hasStrict(again, { status: 304, headers: { 'x-ratelimit-cost': '0.5', 'x-ratelimit-remaining': '6.5' } })
  t.strictSame(given[0], [2, 1.5])
  t.equal((await app.inject('/docs', { 'if-none-match': '*' })).status, 304, 'open pages have no key')
})

t.test(
  'a free 304 is answered from memory alone, and asks for its weather like any other answer',
  async t => {
    const now = Date.parse('2026-11-21T06:05:00Z')
    const timeline = wholeTimeline(now, createCalendar('Asia/Dhaka'))
    const changed = { ...timeline, values: timeline.values.map(value => value + 1) }
    const held = (cell: Cell) => alwaysFresh(timeline, () => now).read(cell) as CellResult
    let [isHeld, isUsedUp] = [true, false]
    let read: ApiParts['timelines']['read'] = held
    let reads = 0
    const parts: Partial<ApiParts> = {
      inMemory: cell => (isHeld ? held(cell) : undefined),
      timelines: {
        read: cell => {
          reads += 1
          return read(cell)
        },
      },
      quota: {
        ...uncounted,
        consume: (_client, _at, units, callback) =>
          callback(undefined, { allowed: units === 0 || !isUsedUp, remaining: 3 }),
      },
    }
    const app = await startApp(t, parts, { notModifiedCost: 0 })
    const { headers } = await app.inject(weather)
    isUsedUp = true
    const ask = async (tag = headers.etag) => {
      reads = 0
      const { status } = await app.inject(weather, {
        'x-api-key': goodKey,
        ...(tag && { 'if-none-match': tag }),
      })
      return [status, reads]
    }
    t.strictSame(await ask(), [304, 1])
    t.match(app.answered.at(-1), { notModified: true, cache: /^hit; /, cell: /^23\.\d,/, bytes: 0 })
    t.strictSame(await ask('"other"'), [429, 0])
    t.strictSame(await ask(''), [429, 0])
    read = () => Promise.reject(new AbohawaError('provider_failing', 'down'))
    t.strictSame(await ask(), [304, 1], 'as it is in memory')
    read = cell => ({ ...held(cell), value: changed, derived: { data: undefined, setBytes: () => {} } })
    t.strictSame(await ask(), [429, 1], 'it has changed meanwhile')
    isHeld = false
    t.strictSame(await ask(), [429, 0])
  },
)

t.test('a bound key is refused elsewhere, and takes no unit for it', async t => {
  const restrictions = { origins: null, addresses: null, endpoints: ['weather'] }
  const client = { ...goodClient, restrictedBy: restrictedBy(restrictions) }
  const app = await startApp(t, { authenticate: () => ({ client }) })
  const places = '/api/v1/weather?places=district/3026,coords/23.8/90.4'
  const refused = await app.inject(places)
  t.hasStrict(refused, { status: 403, body: { code: 'key_endpoint_not_allowed' } })
  t.equal(refused.headers['x-ratelimit-remaining'], '10')
  t.hasStrict(app.answered.at(-1), { cost: 0, reason: 'endpoint-not-allowed', status: 403 })
  await app.inject('/api/v1/locations?type=union')
  t.match(app.answered.at(-1), { cost: undefined, status: 403 })
  t.equal((await app.inject(weather)).headers['x-ratelimit-remaining'], '9')
  t.strictSame(app.decisions, ['endpoint-not-allowed', 'endpoint-not-allowed', 'allowed'])
  const away = await startApp(t, { authenticate: () => ({ client }), quota: uncounted })
  const unknown = await away.inject(places)
  t.hasStrict(unknown, { status: 403, headers: { 'x-ratelimit-remaining': '0' } })
  t.equal(unknown.headers.ratelimit, undefined, 'a client would wait for midnight')
})

t.test('a missing key is looked for where it may have been sent instead', async t => {
  const app = await startApp(t)
  const sentence = async (url: string, headers = {}) => (await app.inject(url, headers)).body.error
  const missing = 'the API key is missing: send it in the header x-api-key'
  t.equal(await sentence(weather), missing)
  for (const key of [goodKey, 'svc_test_1'])
    t.equal(await sentence(`${weather}?key=${key}`), `${missing}, not in the URL`)
  t.equal(
    await sentence(weather, { authorization: `Bearer ${goodKey}` }),
    `${missing}, not in the header authorization`,
  )
})

t.test('a list has fifty places by default, and links that lead through it', async t => {
  const consume: Quota['consume'] = (_client, _at, _units, callback) =>
    callback(undefined, { allowed: true, remaining: 1 })
  const app = await startApp(t, { quota: { ...uncounted, consume } })
  const list = async (more: string) => {
    const { body, headers } = await app.inject(`/api/v1/locations?type=upazila${more}`)
    return [body.results.length, headers.link]
  }
  const link = (rel: string, offset: number, limit: number, of = '') =>
    `<?type=upazila${of}&limit=${limit}&offset=${offset}>; rel="${rel}"`
  const all = await app.inject('/api/v1/locations?type=upazila')
  t.equal(all.headers['cache-control'], 'private, max-age=60')
  const { total } = all.body
  t.strictSame(await list(''), [50, link('next', 50, 50)])
  t.strictSame(await list('&limit=20&offset=30'), [20, `${link('next', 50, 20)}, ${link('prev', 10, 20)}`])
  t.strictSame(await list('&offset=10&limit=40'), [40, `${link('next', 50, 40)}, ${link('prev', 0, 10)}`])
  t.strictSame(await list(`&offset=${total}`), [0, link('prev', total - 50, 50)])
  t.strictSame(await list('&district_id=3026&q=sa&limit=1&ignored=1'), [
    1,
    link('next', 1, 1, '&district_id=3026&q=sa'),
  ])
})

t.test('a key is told what it may do and has used, which takes no unit', async t => {
  const taken: number[] = []
  const read: string[] = []
  const used = [0, 40, 5]
  const quota: Quota = {
    ...{ ...uncounted, now: () => app.clock.now(), isExact: () => isExact },
    consume: (_client, _at, units, callback) => {
      taken.push(units)
      callback(undefined, { allowed: true, remaining: 3 })
    },
  }
  let isExact = true
  const usage = {
    usedOn: async (_keyId: string, days: readonly string[]) => {
      read.push(days[0] ?? '')
      return days.map((_, i) => used[i] ?? 0)
    },
  }
  const app = await startApp(t, { quota, usage })
  const { status, body } = await app.inject('/api/v1/key')
  const figures = { limit: 10, used: 7, remaining: 3, reason: null, rates: null, expires_at: null }
  t.hasStrict({ status, body }, { status: 200, body: { id: 'key_1', tier: 'free', ...figures } })
  t.strictSame(body.days.slice(0, 3), [
    { day: '2026-11-21', used: 7 },
    { day: '2026-11-20', used: 40 },
    { day: '2026-11-19', used: 5 },
  ])
  t.equal(body.days.length, 30)
  t.equal((await app.inject('/api/v1/key', undefined, 'HEAD')).bytes.length, 0)
  app.clock.advance(59_999)
  await app.inject('/api/v1/key')
  t.equal(read.length, 1, 'earlier days are read once a minute')
  app.clock.advance(1)
  await app.inject('/api/v1/key')
  t.strictSame(read, ['2026-11-21', '2026-11-21'])
  t.strictSame(taken, [0, 0, 0, 0])
  isExact = false
  const unknown = { used: null, remaining: null, reason: 'store_unavailable' }
  t.hasStrict((await app.inject('/api/v1/key')).body, unknown, 'no figure where it is not known')
})

t.test('a day is read again after a failure, on the next day, and by a clock that was set back', async t => {
  let failure: Error | undefined
  let counts = [12, 3]
  let reads = 0
  const usedOn = async () => {
    reads += 1
    if (failure) throw failure
    return counts
  }
  let remaining = 0
  const consume: Quota['consume'] = (_client, _at, _units, callback) =>
    callback(undefined, { allowed: true, remaining })
  const quota = { ...uncounted, now: () => app.clock.now(), consume }
  const rates = { perSecond: 2, burst: null, perMinute: 30 }
  const client = { ...goodClient, rates, endsAt: Date.parse('2026-12-01T00:00:00Z') }
  const app = await startApp(t, { authenticate: () => ({ client }), quota, usage: { usedOn } })
  const ask = () => app.inject('/api/v1/key')
  failure = new StoreError('away')
  const away = await ask()
  t.hasStrict(away.body, { used: null, remaining: null, reason: 'store_unavailable' })
  t.strictSame(away.body.days[1], { day: '2026-11-20', used: null })
  failure = undefined
  const { body, headers } = await ask()
  t.hasStrict(headers, {
    'cache-control': 'private, no-store',
    'content-type': 'application/json; charset=utf-8',
  })
  t.hasStrict(body, {
    ...{ used: 12, remaining: 0, reason: null, rates: { per_second: 2, burst: 2, per_minute: 30 } },
    ...{ created_at: '1970-01-01T00:00:01.000Z', expires_at: '2026-12-01T00:00:00.000Z' },
  })
  t.strictSame(
    body.days.slice(0, 3).map(({ used }: { used: number }) => used),
    [12, 3, 0],
  )
  t.equal(reads, 2)
  app.clock.advance(-1)
  await ask()
  t.equal(reads, 3)
  app.clock.set('2026-11-21T17:59:59.999Z')
  await ask()
  app.clock.advance(1)
  counts = []
  remaining = 1
  t.hasStrict((await ask()).body, { used: 9, remaining: 1, days: [{ day: '2026-11-22', used: 9 }] })
  t.equal(reads, 5)
  remaining = 0
  t.match((await ask()).body, { used: 10 }, 'a day without counts that is used up')
  app.clock.advance(60_000)
  failure = new TypeError('no function')
  t.hasStrict(await ask(), { status: 500, body: { code: 'internal_error' } })
})

t.test('the reference has the type of each file, and the address that it was asked at', async t => {
  const app = await startApp(t, {}, { trustedProxies: ['127.0.0.1'] })
  const https = { 'x-forwarded-proto': 'https' }
  for (const [path, type] of [
    ['/docs', 'text/html; charset=utf-8'],
    ['/docs/reference.css', 'text/css; charset=utf-8'],
    ['/docs/reference.js', 'text/javascript; charset=utf-8'],
    ['/docs/icon.svg', 'image/svg+xml'],
    ['/api/v1/openapi.json', 'application/json; charset=utf-8'],
  ] as const) {
    const { status, headers } = await app.inject(path, https)
    t.strictSame([status, headers['content-type']], [200, type], path)
  }
  const server = async (headers: object) =>
    (await app.inject('/api/v1/openapi.json', { ...https, host: 'inner', ...headers })).body.servers[0].url
  t.match(await server({}), /^https:\/\/inner/)
  t.match(await server({ 'x-forwarded-host': ' outer:8443 , other' }), /^https:\/\/outer:8443/)
  t.match(await server({ 'x-forwarded-host': 'no host' }), /^https:\/\/inner/)
})

t.test('a list says how many places came from where, and one place is a list', async t => {
  const outcomes = ['miss', 'stale', 'hit', 'stale', 'miss', 'hit'] as const
  let reads = 0
  const timelines: ApiParts['timelines'] = {
    read: cell => {
      const outcome = outcomes[reads++ % outcomes.length] ?? 'hit'
      return { ...(fresh.read(cell) as CellResult), outcome, forwarded: outcome !== 'hit' }
    },
  }
  const now = Date.parse('2026-11-21T06:05:00Z')
  const fresh = alwaysFresh(wholeTimeline(now, createCalendar('Asia/Dhaka')), () => now)
  const app = await startApp(t, { timelines })
  const points = Array.from({ length: 6 }, (_, i) => `coords/23.${i}/90.4`)
  const cacheOf = async (places: readonly string[]) =>
    (await app.inject(`/api/v1/weather?places=${places.join()}`)).headers['cache-status']
  t.match(await cacheOf(points), /; fwd=miss; ttl=86400; detail="2 hit, 2 stale, 2 miss"$/)
  const { status, body } = await app.inject('/api/v1/weather?places=coords/23.81034/90.41251')
  t.equal(status, 200)
  t.hasStrict(body, [{ location: { name: '23.810, 90.413' } }])
})
