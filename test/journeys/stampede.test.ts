// Without it many requests for one cold cell could become many provider requests, or wait for a dead process.

import { readFileSync } from 'node:fs'
import t from 'tap'
import { createGrid } from '../../src/weather/cell.ts'
import { killLeaseHolder, measureStampede, startFleet } from '../scenarios/stampede.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { patientRedisEnv, withoutOwnRedis } from '../support/redis-server.ts'
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

t.test('a cell that a whole fleet needs is one request, or two', { skip: withoutOwnRedis }, async t => {
  // Long timeouts: a busy machine must not look like an outage of Redis or the provider, or a dead process.
  const fleet = await startFleet(
    t,
    { processes: 3, callersEach: 40 },
    {
      ...patientRedisEnv,
      ABOHAWA_TEST_CACHE__LEASE_FOR: '5s',
      ABOHAWA_TEST_CACHE__WAIT_FOR: '3m',
      ABOHAWA_TEST_PROVIDER__CONNECT_TIMEOUT: '100s',
      ABOHAWA_PROVIDER__TIMEOUT: '100s',
      ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '100s',
    },
  )
  const answered = (answers: readonly { status: number }[]) =>
    answers.filter(({ status }) => status === 200).length
  const { calls, answers } = await measureStampede(fleet, '/api/v1/weather/coords/23.7/90.4')
  t.strictSame([calls, answered(answers)], [1, 120])
  const killed = await killLeaseHolder(fleet, '/api/v1/weather/coords/22.3/91.8')
  t.strictSame([killed.calls, answered(killed.answers)], [2, 80], 'all callers of the others are answered')
})
