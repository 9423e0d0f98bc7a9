// How long the API waits for a client, whenever the settings were applied: before it listens, while it does, and while it stops.

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { goodKey, startApp, type TestApp } from '../support/api-app.ts'
import { until } from '../support/until.ts'

const host = '127.0.0.1'
const request = (more = '') =>
  `GET /api/v1/locations?type=union&limit=100 HTTP/1.1\r\nhost: x\r\nx-api-key: ${goodKey}\r\n${more}\r\n`

type Teardown = { teardown(fn: () => unknown): void }

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
  const requests = 600
  socket.write(request().repeat(requests))
  let before = 0
  await until(
    'it is owed answers, and no more of them are written',
    () => {
      const was = before
      before = api.answered.length
      return before > 0 && before === was && api.connections().queuedRequests > 0
    },
    20_000,
    50,
  )
}

const many = { consume: async () => ({ allowed: true, remaining: 1 }) as const }
const startTimed = (t: Teardown, parts = {}) =>
  startApp(t, parts, { writeTimeoutMs: 300, requestTimeoutMs: 500, maxUnauthenticated: 2 })

t.test('settings that are applied before it listens leave its timeouts in force', async t => {
  const api = await startTimed(t, { quota: { now: Date.now, resetAfter: Date.now, ...many } })
  api.apply(api.options)
  await api.listen({ host, port: 0 })
  t.teardown(api.close)
  await openStuck(t, api)
  await until('the stuck client is closed', () => api.closed.includes('write_timeout'))
  t.strictSame(api.closed, ['write_timeout'])

  const silent = await Promise.all([1, 2, 3].map(() => open(t, api)))
  await until('one more than may be unauthenticated has made room', () => api.closed.length === 2)
  t.equal(api.closed.at(-1), 'unauthenticated')
  t.equal(silent.length, 3)
})

t.test('settings that are applied while it stops do not keep it from ending', async t => {
  const api = await startTimed(t, { quota: { now: Date.now, resetAfter: Date.now, ...many } })
  await api.listen({ host, port: 0 })
  await openStuck(t, api)
  const closing = api.close()
  api.apply(api.options)
  await closing
  t.strictSame(api.closed, ['write_timeout'])
})

t.test(
  'a body that does not come has the time of a request, before and after settings are applied',
  async t => {
    const api = await startTimed(t)
    await api.listen({ host, port: 0 })
    t.teardown(api.close)
    const held = async (): Promise<number> => {
      const socket = (await open(t, api)).resume()
      const began = performance.now()
      socket.write(`${request('content-length: 5\r\n')}he`)
      await once(socket, 'close')
      return performance.now() - began
    }
    for (const when of ['at first', 'after settings were applied']) {
      const ms = await held()
      t.ok(ms >= 450, `${when}: not before ${Math.round(ms)} ms`)
      t.ok(ms < 20_000, `${when}: far before the minute that Node has by itself`)
      api.apply(api.options)
    }
  },
)
