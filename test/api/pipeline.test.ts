// Without it a flood of waiting requests could take memory without end, or lock out a client with a good key.

import type { AddressInfo } from 'node:net'
import t from 'tap'
import type { Authentication } from '../../src/keys/authentication.ts'
import { openRaw } from '../support/raw-connection.ts'
import { until } from '../support/until.ts'
import { startApp } from './api-app.ts'

const request = (key: string): string =>
  `GET /api/v1/weather?places=district/3026 HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\n\r\n`

for (const [who, presented, isCharged] of [
  ['a client whose key is still looked up', 'svc_live_late', false],
  ['a client with a refused key', 'svc_live_other', true],
] as const)
  t.test(`${who} is ended in a flood of others; it counts on for its address: ${isCharged}`, async t => {
    const flooding = 20
    const looked = Promise.withResolvers<Authentication>()
    const app = await startApp(
      t,
      {
        authenticate: (key, memo) => {
          if (memo) memo.presented = {} as never
          return key === 'svc_live_other' ? { refusal: 'unknown' } : looked.promise
        },
      },
      { maxConnectionsPerAddress: flooding + 1 },
    )
    await app.listen({ host: '127.0.0.1', port: 0 })
    t.teardown(app.close)
    t.teardown(() => looked.resolve({ refusal: 'unknown' }))
    const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
    let came = 0
    app.server.on('request', () => {
      came += 1
    })
    // One is begun, and a hundred wait.
    for (let i = 0; i < flooding; i++) (await openRaw(t, url)).send(request('svc_live_flood').repeat(101))
    await until('two thousand wait', () => came === flooding * 101)
    const client = await openRaw(t, url)
    client.send(request(presented) + request('svc_live_late').repeat(2))
    await until('it is closed', () => client.socket.destroyed && app.connections().open === flooding)
    t.strictSame(app.closed, ['pipeline'])
    const next = await openRaw(t, url)
    if (isCharged) await until('it may not come back', () => next.socket.destroyed)
    next.send(request('svc_live_late'))
    await until('it is accepted, or refused', () => isCharged || app.connections().open === flooding + 1)
    t.strictSame(app.closed, isCharged ? ['pipeline', 'address'] : ['pipeline'])
  })
