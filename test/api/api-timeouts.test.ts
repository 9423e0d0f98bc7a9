// Without it a client that takes nothing of its answers could keep a connection, or the whole process, open for ever.

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import type { DecisionCallback } from '../../src/keys/count.ts'
import type { Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'
import { goodKey, startApp, type TestApp } from './api-app.ts'

const host = '127.0.0.1'
const request = `GET /api/v1/locations?type=union&limit=100 HTTP/1.1\r\nhost: x\r\nx-api-key: ${goodKey}\r\n\r\n`

const open = async (t: Teardown, { server }: TestApp): Promise<Socket> => {
  const { port } = server.address() as AddressInfo
  const socket = connect({ host, port }).on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

// A client that takes nothing of its answers, of which more come than the buffers of a connection hold.
const openStuck = async (t: Teardown, api: TestApp): Promise<void> => {
  const socket = (await open(t, api)).pause()
  socket.write(request.repeat(600))
  await until('it is owed answers', () => api.answered.length > 0)
}

const many = {
  consume: (_client: object, _at: number, _units: number, callback: DecisionCallback) =>
    callback(undefined, { allowed: true, remaining: 1 }),
}
const startTimed = (t: Teardown, parts = {}, timeouts: object = { requestTimeoutMs: 500 }) =>
  startApp(t, parts, { ...timeouts, maxConnectionsPerAddress: 2 })

t.test('a client that takes nothing of its answers is closed', async t => {
  const api = await startTimed(t, { quota: { now: Date.now, resetAfter: Date.now, ...many } })
  await api.listen({ host, port: 0 })
  t.teardown(api.close)
  t.equal(api.server.timeout, 120_000)
  // Node's own, as far as connections that come from now on are concerned.
  api.server.setTimeout(300)
  await openStuck(t, api)
  await until('the stuck client is closed', () => api.connections().open === 0)
})

t.test('a client that takes nothing of its answers does not keep it from ending', async t => {
  const parts = { quota: { now: Date.now, resetAfter: Date.now, ...many } }
  const api = await startTimed(t, parts, { requestTimeoutMs: 100, takenWithinMs: 100 })
  await api.listen({ host, port: 0 })
  await openStuck(t, api)
  await api.close()
  await until('the stuck client is closed', () => api.connections().open === 0)
})

t.test('settings that are applied before it listens leave its limits in force', async t => {
  const api = await startTimed(t, {}, {})
  api.apply(api.options)
  await api.listen({ host, port: 0 })
  t.teardown(api.close)
  const silent = await Promise.all([1, 2, 3].map(() => open(t, api)))
  await until('one more than an address may have is closed', () => api.closed.length === 1)
  t.strictSame(api.closed, ['address'])
  t.equal(silent.length, 3)
})

t.test('settings that are applied while it stops do not keep it from ending', async t => {
  const api = await startTimed(t, { quota: { now: Date.now, resetAfter: Date.now, ...many } })
  await api.listen({ host, port: 0 })
  api.server.setTimeout(300)
  await openStuck(t, api)
  const closing = api.close()
  api.apply(api.options)
  await closing
  t.strictSame(api.closed, [])
})

t.test('limits that are applied while it listens hold for the connections that come', async t => {
  const api = await startTimed(t, {}, {})
  await api.listen({ host, port: 0 })
  t.teardown(api.close)
  await open(t, api)
  t.match(api.server, { requestTimeout: 60_000, headersTimeout: 60_000, keepAliveTimeout: 60_000 })
  const times = { requestTimeoutMs: 90_000, keepAliveTimeoutMs: 5_000 }
  api.apply({ ...api.options, ...times, maxConnectionsPerAddress: 1, maxConnections: 7 })
  t.match(api.server, { requestTimeout: 90_000, headersTimeout: 60_000, keepAliveTimeout: 5_000 })
  await open(t, api)
  await until('the second is closed', () => api.closed.length === 1)
  t.strictSame([api.closed, api.server.maxConnections], [['address'], 7])
})
