// Requests that clients send several at once: they go on some at a time, so that requests of other connections need not wait
// for all of them.

import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { QuotaDecision } from '../../src/metering/partition.ts'
import { goodKey, startApp } from '../support/api-app.ts'
import { openRaw } from '../support/raw-connection.ts'
import { until } from '../support/until.ts'

const host = '127.0.0.1'
const get = (path: string): string =>
  `GET /api/v1/${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${goodKey}\r\n\r\n`
const [weather, location] = [get('weather/district/3026'), get('locations/district/3026')]
const pipelines = 8
const atOnce = 16
// No connection has more of them in one turn than the tasks that are begun in it.
const mostPerTurn = 16

/** An API whose quota decides when the test says so, all requests of a time together. */
const start = async (t: Test) => {
  const undecided: (() => void)[] = []
  const api = await startApp(
    t,
    {
      quota: {
        now: () => Date.now(),
        resetAfter: instant => instant + 1_000,
        consume: () =>
          new Promise<QuotaDecision>(resolve =>
            undecided.push(() => resolve({ allowed: true, remaining: 1 })),
          ),
      },
    },
    { maxPipelined: atOnce },
  )
  await api.listen({ host, port: 0 })
  t.teardown(api.close)
  const url = `http://${host}:${(api.server.address() as AddressInfo).port}`
  const come = (count: number) => until(`${count} requests came`, () => undecided.length === count)
  const decideAll = (): void => {
    for (const decide of undecided.splice(0)) decide()
  }
  /** Connections that have shown their key, each with so many requests that came at once and are not decided. */
  const openPipelines = async () => {
    const opened = await Promise.all(Array.from({ length: pipelines }, () => openRaw(t, url)))
    for (const raw of opened) raw.send(weather.repeat(1 + atOnce))
    await come(pipelines)
    decideAll()
    await come(pipelines * atOnce)
    return opened
  }
  return { api, url, come, decideAll, openPipelines }
}

t.test('those whose quota is decided together go on over several turns', async t => {
  const { api, decideAll, openPipelines } = await start(t)
  const opened = await openPipelines()
  const all = pipelines * (1 + atOnce)
  let before = api.decisions.length
  decideAll()
  let turns = 0
  for (; before < all && turns < 1_000; turns++) {
    await turn()
    const now = api.decisions.length
    if (now - before > mostPerTurn) t.fail(`${now - before} in one turn`)
    before = now
  }
  t.ok(turns > 1, `${turns} turns`)
  for (const raw of opened)
    for (let i = 0; i <= atOnce; i++) if ((await raw.answer()).status !== 200) t.fail(`answer ${i}`)
  t.equal(api.connections().queuedRequests, 0)
})

t.test('a request that came alone does not wait for those that were decided before it', async t => {
  const { api, url, come, decideAll, openPipelines } = await start(t)
  const alone = await openRaw(t, url)
  alone.send(location)
  await come(1)
  decideAll()
  t.equal((await alone.answer()).status, 200)
  await openPipelines()
  alone.send(location)
  await come(pipelines * atOnce + 1)
  const before = api.answered.length
  decideAll()
  t.equal((await alone.answer()).status, 200)
  const place = api.answered.slice(before).findIndex(({ endpoint }) => endpoint === 'location')
  t.ok(place < pipelines, `${place} of the others were answered before it`)
  await until('the others are too', () => api.connections().queuedRequests === 0)
})

t.test('those of a connection that is gone are taken to their end', async t => {
  const { api, decideAll, openPipelines } = await start(t)
  const opened = await openPipelines()
  for (const { socket } of opened) socket.resetAndDestroy()
  await until('they are gone', () => api.connections().open === 0)
  decideAll()
  const all = pipelines * (1 + atOnce)
  await until('all were admitted', () => api.decisions.length === all)
  t.equal(api.connections().queuedRequests, 0)
})
