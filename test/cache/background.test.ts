// Without it refreshes could stop or run all the time, and nobody would hear that loads go to another upstream.

import t from 'tap'
import { startBackground } from '../../src/cache/background.ts'
import { createDemand } from '../../src/cache/demand.ts'
import type { Accounts } from '../../src/provider/accounts.ts'
import { type Cell, createGrid } from '../../src/weather/cell.ts'
import { manualClock } from '../support/manual-clock.ts'
import { policyOf } from './cache-set-up.ts'

const [dhaka, sylhet] = [createGrid(0.1).cellOf(23.7, 90.4), createGrid(0.1).cellOf(24.9, 91.9)]
const minute = 60_000

/** The background work of a cache with these upstreams; `events` has all that it does, and `tick` runs it once. */
const setUp = (...names: string[]) => {
  const clock = manualClock()
  const events: string[] = []
  const state = {
    runs: 0,
    pinned: [sylhet] as readonly Cell[],
    started: 0,
    next: names[0] as string | undefined,
    isProbeDue: false,
    leadMs: minute / 2,
    gate: undefined as Promise<void> | undefined,
  }
  let everyMs = 0
  let work = async (): Promise<unknown> => undefined
  const all = names.map(name => ({
    name,
    account: {
      breaker: { isProbeDue: () => state.isProbeDue },
      provider: {
        probe: async (cells: readonly Cell[]) =>
          void events.push(`probe ${name} ${cells.map(({ id }) => id)}`),
      },
    },
  }))
  const accounts = {
    all,
    runsOf: () => [{ availableAt: state.runs }],
    next: () => ({ upstream: all.find(({ name }) => name === state.next) }),
  } as unknown as Accounts
  const demand = createDemand<Cell>()
  const { passSoon } = startBackground({
    accounts,
    demand,
    pinned: () => state.pinned,
    policy: {
      ...policyOf(),
      get leadMs() {
        return state.leadMs
      },
    },
    readPurges: async () => {
      events.push('purges')
      await state.gate
    },
    sendHeartbeatIfDue: async () => void events.push('heartbeat'),
    refreshAhead: () => {
      events.push('pass')
      return state.started
    },
    reload: async ({ id }) => void events.push(`reload ${id}`),
    renewStretch: () => events.push('stretch'),
    onNextUpstream: ({ upstream }) => void events.push(`next ${upstream?.name}`),
    clock: {
      ...clock,
      timers: {
        after: () => () => {},
        every: (ms, each) => {
          everyMs = ms
          work = async () => each()
          return () => {}
        },
      },
    },
  })
  const tick = async (afterMs = 500): Promise<string[]> => {
    clock.advance(afterMs)
    events.length = 0
    await work()
    return [...events]
  }
  return { state, tick, demand, passSoon, clock, everyMs }
}
const idle = ['purges', 'heartbeat']
const withPass = [...idle, 'pass']

t.test('purges are read first, and a pass runs within a sixth of the lead', async t => {
  const { tick, state, passSoon } = setUp('one')
  t.strictSame(await tick(), withPass)
  t.strictSame(await tick(), idle)
  t.strictSame(await tick(4_499), idle)
  t.strictSame(await tick(1), withPass)
  state.runs = 1
  t.strictSame(await tick(), withPass, 'a new run makes many cells due')
  t.strictSame(await tick(), idle)
  state.pinned = [sylhet]
  t.strictSame(await tick(), withPass, 'and so do new pinned cells')
  t.strictSame(await tick(), idle)
  passSoon()
  t.strictSame(await tick(), withPass)
  state.started = 1
  t.strictSame(await tick(5_000), withPass)
  state.started = 0
  t.strictSame(await tick(), withPass, 'what did not fit comes next')
  t.strictSame(await tick(), idle)
  t.strictSame(await tick(-60_000), withPass, 'the clock was set back')
})

t.test('twice a second there is work, and none while the last takes longer', async t => {
  const { tick, state, everyMs } = setUp('one')
  t.equal(everyMs, 500)
  const { promise, resolve } = Promise.withResolvers<void>()
  state.gate = promise
  const slow = tick()
  t.strictSame(await tick(), [])
  resolve()
  t.strictSame(await slow, ['heartbeat', 'pass'])
  t.strictSame(await tick(), idle)
})

t.test('passes stay in step after a late one, and are never more than ten seconds apart', async t => {
  const { tick, state } = setUp('one')
  await tick()
  t.strictSame(await tick(5_700), withPass)
  t.strictSame(await tick(4_299), idle)
  t.strictSame(await tick(1), withPass)
  t.strictSame(await tick(-61_234), withPass, 'the clock was set back')
  t.strictSame(await tick(4_999), idle)
  t.strictSame(await tick(1), withPass)
  state.leadMs = 2 * minute
  t.strictSame(await tick(9_999), idle)
  t.strictSame(await tick(1), withPass)
})

t.test('a change of the upstream that loads next is reported once, where there are several', async t => {
  const { tick, state } = setUp('one', 'two')
  t.strictSame(await tick(), [...withPass, 'stretch'])
  state.next = 'two'
  t.strictSame(await tick(), [...idle, 'stretch', 'next two'])
  t.strictSame(await tick(), [...idle, 'stretch'])
  state.next = undefined
  t.strictSame(await tick(), [...idle, 'stretch', 'next undefined'])
})

t.test('an open circuit is probed with the latest cell in demand, or a pinned one', async t => {
  const { tick, state, clock } = setUp('one')
  await tick()
  state.isProbeDue = true
  t.strictSame(await tick(), [...idle, `reload ${sylhet.id}`])
  t.strictSame(await tick(), idle, 'not again at once')
  const several = setUp('one', 'two')
  several.demand.record(dhaka.id, dhaka, clock.now())
  several.state.isProbeDue = true
  t.strictSame(await several.tick(), [
    ...withPass,
    `probe one ${dhaka.id}`,
    `probe two ${dhaka.id}`,
    'stretch',
  ])
  const idleFleet = setUp('one', 'two')
  Object.assign(idleFleet.state, { pinned: [sylhet, dhaka], isProbeDue: true })
  const probes = ['one', 'two'].map(name => `probe ${name} ${sylhet.id}`)
  t.strictSame(await idleFleet.tick(), [...withPass, ...probes, 'stretch'], 'with one cell, the first')
})
