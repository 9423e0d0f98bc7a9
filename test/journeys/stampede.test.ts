// Without it many requests for one cold cell could become many provider requests, or wait for a dead process.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { createGrid } from '../../src/weather/cell.ts'
import { type Caller, openCallers } from '../scenarios/callers.ts'
import { createKey, metric, processEnv, startProcess } from '../scenarios/set-up.ts'
import { startProvider, startProviderHere } from '../support/provider.ts'
import { testRedis } from '../support/redis-server.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

const provider = await startProviderHere(t)

// The paths of all places in the cell with the most of them, and of a point in it.
const callersOfOneCell = (): string[] => {
  const grid = createGrid(0.1)
  const { locations } = JSON.parse(readFileSync(usualCatalogue, 'utf8')) as { locations: Place[] }
  const cells = Map.groupBy(locations, ({ latitude, longitude }) => grid.cellOf(latitude, longitude).id)
  const [id, places] = [...cells].sort(([, a], [, b]) => b.length - a.length)[0] ?? ['', []]
  return [...places.map(place => `${place.type}/${place.id}`), `coords/${id.replace(',', '/')}`]
}
type Place = { type: string; id: string; latitude: number; longitude: number }

t.test('200 requests for cold places in one cell are one provider call, and 200 right answers', async t => {
  const env = { ABOHAWA_TEST_CACHE__WAIT_FOR: '3m' }
  const gateway = await startGateway(t, { providerUrl: provider.url, env })
  const callers = callersOfOneCell()
  t.ok(callers.length > 8, `${callers.length} different paths`)
  const { calls } = await provider.steer({ hold: true })
  const pending = Array.from({ length: 200 }, (_, i) =>
    gateway.get(`/weather/${callers[i % callers.length]}?lang=en`),
  )
  await until('the provider has a request', async () => (await provider.state()).inFlight > 0)
  // A unit is counted before the cache is read, so once all are counted all of them wait for the one load.
  const id = gateway.keyIds.enterprise ?? ''
  const counted = async () => (await gateway.administration.usage(id, 1)).days[0]?.used
  await until('all are counted', async () => (await counted()) === 200)
  await provider.steer({ hold: false })
  const answers = await Promise.all(pending)
  t.equal((await provider.state()).calls - calls, 1)
  t.strictSame(new Set(answers.map(({ status }) => status)), new Set([200]))
  t.equal(new Set(answers.map(({ body }) => JSON.stringify(body.current))).size, 1)
  t.equal(new Set(answers.map(({ headers }) => headers['x-ratelimit-remaining'])).size, 200)
  answers.forEach(({ body }, i) => {
    const [type, id] = (callers[i % callers.length] ?? '').split('/')
    t.equal(body.location.type, type)
    if (type !== 'coords') t.equal(body.location.id, id, 'each got its own place')
  })
  t.equal(answers.filter(({ headers }) => /collapsed/.test(headers['cache-status'] ?? '')).length, 199)
})

t.test('a cell that a whole fleet needs is one request, or two', async t => {
  const redis = await testRedis(t)
  const provider = await startProvider(t, ['--runs', 'none'], null)
  const state = () => provider.state()
  // Long timeouts: a busy machine must not look like an outage of the provider, or a dead process.
  const env = processEnv(provider.url, {
    ...redis.env,
    ABOHAWA_TEST_CACHE__LEASE_FOR: '5s',
    ABOHAWA_TEST_CACHE__WAIT_FOR: '3m',
    ABOHAWA_TEST_PROVIDER__CONNECT_TIMEOUT: '100s',
    ABOHAWA_PROVIDER__TIMEOUT: '100s',
    ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '100s',
  })
  const key = await createKey(env)
  const fleet = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const { child, urls } = await startProcess(t, env)
      return { child, urls, callers: await openCallers(t, urls.api ?? '', key, 40) }
    }),
  )
  type Gateway = (typeof fleet)[number]
  const admitted = ({ urls }: Gateway) =>
    metric(urls.ops ?? '', 'abohawa_admissions_total{decision="allowed"}')
  /** All callers request a cell, in turn at each gateway, and wait. */
  const sendAll = async (gateways: readonly Gateway[], path: string) => {
    const before = await Promise.all(gateways.map(admitted))
    const order = Array.from({ length: 40 }, (_, i) => gateways.flatMap(({ callers }) => callers[i] ?? []))
    const answers = order.flat().map(caller => caller.send(path))
    await until('all are admitted', async () => {
      const now = await Promise.all(gateways.map(admitted))
      return now.every((count, i) => count - (before[i] ?? 0) === 40)
    })
    return answers
  }
  const statusesOf = async (answers: readonly ReturnType<Caller['send']>[]) =>
    (await Promise.all(answers)).map(({ status }) => status)

  await provider.steer({ hold: true })
  const all = await sendAll(fleet, '/api/v1/weather/coords/23.7/90.4')
  await until('the provider has a request', async () => (await state()).inFlight >= 1)
  await provider.steer({ hold: false })
  t.strictSame(await statusesOf(all), Array(120).fill(200))
  const { calls } = await state()
  t.equal(calls, 1)

  const path = '/api/v1/weather/coords/22.3/91.8'
  const [holder, ...others] = fleet
  await provider.steer({ hold: true })
  const lost = [holder?.callers[0]?.send(path)]
  await until('the provider has a request', async () => (await state()).inFlight === 1)
  lost.push(...(holder?.callers.slice(1) ?? []).map(caller => caller.send(path)))
  const waiting = await sendAll(others, path)
  holder?.child.kill('SIGKILL')
  await until('another takes over', async () => (await state()).calls >= calls + 2)
  await provider.steer({ hold: false })
  t.strictSame(await statusesOf(waiting), Array(80).fill(200), 'all callers of the others are answered')
  t.equal((await state()).calls, calls + 2)
  await Promise.all(lost)
})
