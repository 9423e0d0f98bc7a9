// The heartbeat of a gateway whose clock is set back: its demand stays in Redis, and nothing of it is taken for damage.

import t from 'tap'
import { createDemand } from '../../src/cache/demand.ts'
import { createHeartbeat } from '../../src/cache/heartbeat.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { type Cell, createGrid } from '../../src/weather/cell.ts'
import { manualClock } from '../support/manual-clock.ts'
import { testRedis } from '../support/redis-server.ts'

t.test('what was in demand before the clock was set back is in demand after it', async t => {
  const { url, prefix } = await testRedis(t)
  const refused: unknown[] = []
  const store = await openRedisStore(
    { url, prefix, connectTimeoutMs: 2_000, commandTimeoutMs: 2_000 },
    { redisAway: () => {}, redisBack: () => {}, recordRefused: record => refused.push(record) },
  )
  t.teardown(() => store.close())
  const clock = manualClock()
  const demand = createDemand<Cell>()
  const heartbeat = createHeartbeat({
    store,
    demand,
    namespace: 'q',
    settings: () => 'a',
    demandForMs: 7_200_000,
    report: () => '{}',
    clock,
    onHeartbeat: () => {},
    onHeartbeatFailure: () => t.fail('the store takes it'),
  })
  const grid = createGrid(0.1)
  const wanted = () => store.wanted('q', clock.now() - 7_200_000)
  for (const latitude of [23.7, 22.3]) {
    const cell = grid.cellOf(latitude, 90.4)
    demand.record(cell.id, cell, clock.now())
  }
  clock.advance(1_000)
  await heartbeat.send()
  t.strictSame((await wanted()).sort(), ['22.3,90.4', '23.7,90.4'])
  clock.advance(-6 * 3_600_000)
  await heartbeat.sendIfDue()
  t.strictSame((await wanted()).sort(), ['22.3,90.4', '23.7,90.4'])
  t.strictSame(refused, [])
})
