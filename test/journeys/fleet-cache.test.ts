// The guarantees of a fleet's cache on a small scale: one provider request for a cell that everybody requests, even if a
// process or Redis dies meanwhile, and right weather through an outage. bench/cache.ts measures the same on a large scale.

import t from 'tap'
import { measureProviderOutage } from '../scenarios/provider-outage.ts'
import { killLeaseHolder, killRedis, measureStampede, startFleet } from '../scenarios/stampede.ts'
import { withoutOwnRedis } from '../support/redis-server.ts'

const size = { processes: 3, callersEach: 40 }
const path = '/api/v1/weather/coords/23.7/90.4'
const answered = (answers: readonly { status: number }[]) =>
  answers.filter(({ status }) => status === 200).length
const skip = withoutOwnRedis
// Long timeouts: a busy machine must not look like an outage of Redis or a dead process.
const patient = { ABOHAWA_REDIS__COMMAND_TIMEOUT: '10s', ABOHAWA_CACHE__LEASE_FOR: '5s' }

t.test('a cell that all processes need at once is one provider request', { skip }, async t => {
  const { calls, answers } = await measureStampede(await startFleet(t, size, patient), path)
  t.equal(calls, 1)
  t.equal(answered(answers), 120)
})

t.test(
  'when the process that fetches is killed another fetches, and all callers of the others are answered',
  {
    skip,
  },
  async t => {
    const { calls, answers } = await killLeaseHolder(await startFleet(t, size, patient), path)
    t.equal(calls, 2)
    t.equal(answered(answers), 80)
  },
)

t.test(
  'when Redis ends while everybody waits, each process fetches for itself at most once',
  {
    skip,
  },
  async t => {
    const { calls, answers } = await killRedis(await startFleet(t, size), path)
    t.ok(calls >= 1 && calls <= size.processes, `${calls} requests`)
    t.equal(answered(answers), 120)
  },
)

t.test(
  'through an outage every cell answers for the right time, and the provider is left in peace',
  async t => {
    const found = await measureProviderOutage(t, { cells: 20, hours: 6, stepMinutes: 120, tickMs: 0 })
    t.equal(found.requests, 60)
    t.equal(found.failed, 0)
    t.equal(found.wrong, 0)
    t.ok(found.calls <= found.allowed, `${found.calls} requests, ${found.allowed} allowed`)
    t.equal(found.notBack, 0, 'all are fresh again')
  },
)
