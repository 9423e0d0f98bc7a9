// Without it a clock that is set back could drop the demand of a gateway from the store.

import t from 'tap'
import { createDemand } from '../../src/cache/demand.ts'
import { createHeartbeat } from '../../src/cache/heartbeat.ts'
import { type Cell, createGrid } from '../../src/weather/cell.ts'
import { manualClock } from '../support/manual-clock.ts'
import { testRedis } from '../support/redis-server.ts'
import { redisStores } from '../support/redis-store.ts'

type Parts = Parameters<typeof createHeartbeat>[0]
const demandForMs = 7_200_000

/** A heartbeat of a gateway to a store, with its demand, by a clock that stands still. */
const heartbeatTo = (given: Pick<Parts, 'store' | 'onHeartbeat' | 'onHeartbeatFailure'>) => {
  const clock = manualClock()
  const demand = createDemand<Cell>()
  const heartbeat = createHeartbeat({
    ...{ demand, clock, namespace: 'q', settings: () => 'a', demandForMs, report: () => '{}' },
    ...given,
  })
  const ask = (latitude: number): string => {
    const cell = createGrid(0.1).cellOf(latitude, 90.4)
    demand.record(cell.id, cell, clock.now())
    return cell.id
  }
  return { clock, heartbeat, ask }
}

t.test('what was in demand before the clock was set back is in demand after it', async t => {
  const { store, refused } = await redisStores(await testRedis(t))(t)
  const requested: unknown[] = []
  const { clock, heartbeat, ask } = heartbeatTo({
    store: {
      heartbeat: given => {
        requested.push(given.requested.toSorted())
        return store.heartbeat(given)
      },
    },
    onHeartbeat: () => {},
    onHeartbeatFailure: () => t.fail('the store takes it'),
  })
  for (const latitude of [23.7, 22.3]) ask(latitude)
  const both = ['22.3,90.4', '23.7,90.4']
  for (const moveMs of [1_000, -6 * 3_600_000]) {
    clock.advance(moveMs)
    await heartbeat.sendIfDue()
    t.strictSame((await store.wanted('q', clock.now() - demandForMs)).sort(), both)
  }
  t.strictSame(requested, [both, both], 'nothing is known to be sent after it')
  t.strictSame(refused, [])
})

t.test('a heartbeat that fails is sent again at the next tick, with the same demand', async t => {
  const sent: unknown[] = []
  const events: string[] = []
  let isAway = true
  const { clock, heartbeat, ask } = heartbeatTo({
    store: {
      heartbeat: async ({ requested, report, settings, aliveForMs }) => {
        sent.push([...requested, settings, report])
        t.equal(aliveForMs, 20_000, 'three in a row may be lost')
        if (isAway) throw new Error('away')
        return { instances: 2, variants: 1, wanted: 1 }
      },
    },
    onHeartbeat: ({ instances }) => events.push(`${instances} instances`),
    onHeartbeatFailure: () => events.push('failed'),
  })
  const cellId = ask(23.7)
  await heartbeat.sendIfDue()
  isAway = false
  clock.advance(500)
  await heartbeat.sendIfDue()
  clock.advance(4_999)
  await heartbeat.sendIfDue()
  clock.advance(1)
  await heartbeat.sendIfDue()
  await heartbeat.sendLast()
  t.strictSame(events, ['failed', '2 instances', '2 instances', '2 instances'])
  t.strictSame(sent, [
    [cellId, 'a', '{}'],
    [cellId, 'a', '{}'],
    ['a', '{}'],
    [null, '{"phase":"stopped"}'],
  ])
})

t.test('of two heartbeats that fail at once, the next repeats the demand of both', async t => {
  const sent: (readonly string[])[] = []
  const gates: PromiseWithResolvers<never>[] = []
  let isAway = true
  const { clock, heartbeat, ask } = heartbeatTo({
    store: {
      heartbeat: ({ requested }) => {
        sent.push(requested)
        const gate = Promise.withResolvers<never>()
        if (isAway) gates.push(gate)
        return isAway ? gate.promise : Promise.resolve({ instances: 1, variants: 1, wanted: 1 })
      },
    },
    onHeartbeat: () => {},
    onHeartbeatFailure: () => {},
  })
  const cellId = ask(23.7)
  clock.advance(200)
  const first = heartbeat.sendIfDue()
  clock.advance(200)
  const second = heartbeat.send()
  for (const { reject } of gates) reject(new Error('away'))
  await Promise.all([first, second])
  isAway = false
  clock.advance(500)
  await heartbeat.sendIfDue()
  t.strictSame(sent, [[cellId], [], [cellId]])
})

t.test('heartbeats stay in step after a late one, and begin anew when the clock is set back', async t => {
  let beats = 0
  const { clock, heartbeat } = heartbeatTo({
    store: { heartbeat: async () => ({ instances: 1, variants: 1, wanted: 0 }) },
    onHeartbeat: () => {
      beats += 1
    },
    onHeartbeatFailure: () => t.fail('the store takes it'),
  })
  for (const [ms, expected] of [
    [0, 1],
    [5_700, 2],
    [4_299, 2],
    [1, 3],
    [-61_234, 4],
    [4_999, 4],
    [1, 5],
  ] as const) {
    clock.advance(ms)
    await heartbeat.sendIfDue()
    t.equal(beats, expected, `${ms} ms later`)
  }
})
