// Without it strangers could keep their connections, a good client could lose its own, or a stop could cut off a response.

import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { CellResult } from '../../src/api/answer.ts'
import type { ApiOptions, ApiParts } from '../../src/api/api.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import { AbohawaError } from '../../src/common/errors.ts'
import { alwaysFresh, wholeTimeline } from '../scenarios/whole-timeline.ts'
import { openRaw } from '../support/raw-connection.ts'
import { until } from '../support/until.ts'
import { goodKey, startApp } from './api-app.ts'

const request = (key = goodKey, path = '/api/v1/locations/district/3026') =>
  `GET ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\n\r\n`
const now = Date.parse('2026-11-21T06:05:00Z')
const quota: ApiParts['quota'] = {
  ...{ now: () => now, resetAfter: () => now + 1, refund: () => 0, isExact: () => true },
  consume: (_client, _at, _units, callback) => callback(undefined, { allowed: true, remaining: 1 }),
}

const listen = async (t: Test, parts: Partial<ApiParts> = {}, options: Partial<ApiOptions> = {}) => {
  const app = await startApp(t, { quota, ...parts }, options)
  await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(app.close)
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  const accepted: Socket[] = []
  app.server.on('connection', socket => accepted.push(socket))
  return { ...app, accepted, open: () => openRaw(t, url) }
}
const isClosed = ({ socket }: Awaited<ReturnType<typeof openRaw>>) =>
  until('it is closed', () => socket.destroyed || socket.readableEnded)

t.test(
  'a connection has a hundred requests without a good key, and one with it as many as it sends',
  async t => {
    const app = await listen(t, {}, { keepAliveTimeoutMs: 7_999 })
    const stranger = await app.open()
    stranger.send(request('svc_live_other').repeat(99))
    for (let i = 0; i < 99; i++) {
      const { headers } = await stranger.answer()
      if (headers.get('connection') !== 'keep-alive') t.fail(`request ${i}`)
      t.equal(headers.get('keep-alive'), 'timeout=7')
    }
    t.strictSame(app.closed, [])
    stranger.send(request('svc_live_other').repeat(5))
    const { status, headers } = await stranger.answer()
    if (!t.strictSame([status, headers.get('connection')], [401, 'close'])) return
    t.strictSame(await stranger.answersToTheEnd(), [])
    t.strictSame(app.closed, ['refusals'])
    await until('all are logged', () => app.answered.length === 100)
    t.has(app.answered.at(-1), { connectionRequest: 100, connection: { number: 1 }, httpVersion: '1.1' })

    const good = await app.open()
    good.send(request() + request('svc_live_other').repeat(110) + request())
    const statuses = []
    for (let i = 0; i < 112; i++) statuses.push((await good.answer()).status)
    t.strictSame(statuses, [200, ...Array(110).fill(401), 200])
    t.strictSame(app.closed, ['refusals'])
    app.apply({ ...app.options, keepAliveTimeoutMs: 9_000 })
    good.send(request())
    t.equal((await good.answer()).headers.get('keep-alive'), 'timeout=9')
  },
)

t.test('open pages count as requests without a good key, and failures of the store do not', async t => {
  const app = await listen(t, {
    authenticate: () => Promise.reject(new AbohawaError('store_unavailable', 'away')),
  })
  const stranger = await app.open()
  const icon = 'GET /docs/icon.svg HTTP/1.1\r\nhost: x\r\n\r\n'
  for (const [one, status] of [
    [request(), 500],
    [request(), 500],
    [icon, 200],
  ] as const) {
    stranger.send(one.repeat(90))
    for (let i = 0; i < 90; i++) {
      const { status: given, headers } = await stranger.answer()
      if (given !== status || headers.get('connection') !== 'keep-alive') return t.fail(`${given} to ${i}`)
    }
  }
  stranger.send(icon.repeat(15))
  for (let i = 0; i < 9; i++) await stranger.answer()
  const { headers } = await stranger.answer()
  if (!t.equal(headers.get('connection'), 'close')) return
  t.strictSame(await stranger.answersToTheEnd(), [])
  t.strictSame(app.closed, ['refusals'])
})

t.test('an address has so many connections without a good key, and others of it as they need', async t => {
  const app = await listen(t, {}, { maxConnectionsPerAddress: 2 })
  /** Opens another one; what is counted then. */
  const openOne = async () => {
    const client = await app.open()
    const { length } = await until('it came', () => app.accepted.length === opened + 1 && app.accepted)
    opened = length
    return {
      ...client,
      accepted: app.accepted[length - 1],
      counts: app.connections(),
      closed: app.closed.length,
    }
  }
  let opened = 0
  const leave = async ({ socket, accepted }: Awaited<ReturnType<typeof openOne>>) => {
    socket.destroy()
    await until('it is gone', () => accepted?.closed)
    return app.connections()
  }
  const [one, two] = [await openOne(), await openOne()]
  t.strictSame([two.counts, two.closed], [{ open: 2, unauthenticated: 2 }, 0])
  const refused = await openOne()
  t.strictSame([refused.accepted?.destroyed, refused.closed], [true, 1])
  for (let i = 0; i < 2; i++) {
    one.send(request())
    await one.answer()
    t.strictSame(app.connections(), { open: 2, unauthenticated: 1 })
  }
  const three = await openOne()
  t.strictSame([three.counts, three.closed], [{ open: 3, unauthenticated: 2 }, 1])
  t.equal((await openOne()).closed, 2)
  t.strictSame(await leave(three), { open: 2, unauthenticated: 1 })
  t.strictSame(await leave(one), { open: 1, unauthenticated: 1 })
  const four = await openOne()
  t.strictSame([four.counts, four.closed], [{ open: 2, unauthenticated: 2 }, 2])
  t.equal((await openOne()).closed, 3)
  t.strictSame(await leave(two), { open: 1, unauthenticated: 1 })
  t.strictSame(await leave(four), { open: 0, unauthenticated: 0 })
  t.strictSame(app.closed, ['address', 'address', 'address'])
})

t.test('strangers of a trusted proxy are not counted by its address', async t => {
  const app = await listen(t, {}, { maxConnectionsPerAddress: 1, trustedProxies: ['127.0.0.1'] })
  for (let i = 0; i < 3; i++) await app.open()
  await until('all came', () => app.accepted.length === 3)
  t.strictSame([app.connections().open, app.closed], [3, []])
})

t.test('one that flooded counts on after its end', async t => {
  const app = await listen(t, {}, { maxConnectionsPerAddress: 1 })
  const flood = await app.open()
  flood.send(request('svc_live_other').repeat(105))
  t.equal((await flood.answersToTheEnd()).length, 100)
  await until('it is gone', () => app.accepted[0]?.closed)
  await app.open()
  await until('another came', () => app.accepted.length === 2)
  t.strictSame(app.closed, ['refusals', 'address'])
})

t.test('a few small requests of a connection are begun together, or one that may be large', async t => {
  const fresh = alwaysFresh(wholeTimeline(now, createCalendar('Asia/Dhaka')), () => now)
  const loads: (() => void)[] = []
  const read: ApiParts['timelines']['read'] = cell => {
    const { promise, resolve } = Promise.withResolvers<CellResult>()
    loads.push(() => resolve(fresh.read(cell) as CellResult))
    return promise
  }
  const app = await listen(t, { timelines: { read } })
  let came = 0
  app.server.on('request', () => {
    came += 1
  })
  const [weather, list] = ['/api/v1/weather/coords/23.8/90.4', '/api/v1/weather?places=coords/23.8/90.4']
  for (const [paths, begun] of [
    [Array(12).fill(weather), 8],
    [[weather, list, weather], 1],
    [[list, weather], 1],
    [[weather, weather, list], 2],
    [[weather, '/docs', weather], 1],
  ] as [string[], number][]) {
    came = 0
    const client = await app.open()
    client.send(paths.map(path => request(goodKey, path)).join(''))
    await until('all have come', () => came === paths.length)
    if (!t.equal(loads.length, begun, `${paths}`)) return void client.socket.resetAndDestroy()
    for (const path of paths) {
      if (path !== '/docs') (await until('the next is begun', () => loads.shift()))()
      const { status, body } = await client.answer()
      t.strictSame(
        [status, body.startsWith('['), body.startsWith('<')],
        [200, path === list, path === '/docs'],
      )
    }
  }
})

t.test('a stop waits for what was asked, and not for who asks nothing', async t => {
  const loads: (() => void)[] = []
  const fresh = alwaysFresh(wholeTimeline(now, createCalendar('Asia/Dhaka')), () => now)
  const read: ApiParts['timelines']['read'] = cell => {
    const { promise, resolve } = Promise.withResolvers<CellResult>()
    loads.push(() => resolve(fresh.read(cell) as CellResult))
    return promise
  }
  const app = await listen(t, { timelines: { read } })
  const [idle, busy, silent] = [await app.open(), await app.open(), await app.open()]
  idle.send(request())
  await idle.answer()
  busy.send(request(goodKey, '/api/v1/weather/coords/23.8/90.4'))
  await until('it is loaded', () => loads.length === 1)
  app.drain()
  idle.send(request())
  t.equal((await idle.answer()).headers.get('connection'), 'close')
  const later = await app.open()
  later.send(request())
  await later.answer()
  app.apply({ ...app.options, requestTimeoutMs: 300 })
  const closed = app.close()
  await isClosed(silent)
  t.equal(busy.socket.readableEnded, false)
  loads[0]?.()
  const { status, headers } = await busy.answer()
  t.strictSame([status, headers.get('connection')], [200, 'close'])
  await closed
})

t.test('a client that leaves before its answer is logged as such', async t => {
  const wait = Promise.withResolvers<CellResult>()
  let reads = 0
  const read = () => {
    reads += 1
    return wait.promise
  }
  const app = await listen(t, { timelines: { read } })
  const client = await app.open()
  client.send(request(goodKey, '/api/v1/weather/coords/23.8/90.4'))
  await until('it is loaded', () => reads === 1)
  // One that only ends its side still gets its answer.
  client.socket.resetAndDestroy()
  await until('it is logged', () => app.answered.length === 1)
  wait.reject(new AbohawaError('provider_timeout', 'late'))
  t.has(app.answered, [{ status: 499, endpoint: 'coords', keyId: 'key_1', bytes: 0, address: '127.0.0.1' }])
})

t.test('an expectation is ignored, and a URL without a path is refused as such', async t => {
  const app = await listen(t)
  const client = await app.open()
  for (const expectation of ['100-continue', 'a miracle']) {
    client.send(request().replace('host: x', `host: x\r\nexpect: ${expectation}`))
    t.equal((await client.answer()).status, 200, expectation)
  }
  client.send(request(goodKey, 'http://x'))
  t.hasStrict(JSON.parse((await client.answer()).body), { code: 'path_missing' })
})

t.test('connections beyond all that may be open are dropped, and said', async t => {
  const app = await listen(t, {}, { maxConnections: 1 })
  const one = await app.open()
  one.send(request())
  await one.answer()
  const two = await app.open()
  await isClosed(two)
  t.strictSame(app.closed, ['connections'])
  one.socket.end()
  await once(one.socket, 'close')
})
