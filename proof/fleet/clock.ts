// The clock of a fleet: one true instant that is moved by hand, a clock with a skew for each gateway, and timers that follow
// it. A long move goes in a few strides; what is due in one runs once, as after a process was suspended. Periodic work of
// keys that the product leaves to the machine's timers follows this clock too (`followIntervals`). Gateways in processes of
// their own follow it by instant.ts.

import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../../src/common/clock.ts'

export type GatewayClock = Clock & {
  /** Ends all of its timers, as the end of a process does. */
  stop(): void
}

/** The clocks of gateways in one process. */
export type Clocks = {
  clockOf(skewMs: number): GatewayClock
  /** Runs what is due by now. */
  runDue(): Promise<void>
}

/** What moves with the clock in another process. */
type Follower = { moved(now: number): void; runDue(): Promise<void> }

export type FleetClock = {
  now(): number
  clockOf(skewMs: number): GatewayClock
  /** Moves on and runs what is due. */
  advance(ms: number): Promise<void>
  /** Moves this one along from now on. Returns how to end that. */
  follow(follower: Follower): () => void
}

type Timer = { dueAt: number; readonly everyMs: number | null; readonly work: () => unknown }

const mostStrides = 8
const strideMs = 500
// Work that a fault of the schedule holds up goes on beside the moves.
const longestWorkMs = 20
const settleMs = 4

/** The clock that intervals which begin now follow. */
const following = new AsyncLocalStorage<Required<Clock>['timers']>()
// Keys and counts are read again by these; all else that the machine's timers do is about sockets and leases.
const followed = /\/src\/keys\//

type Followed = { end: () => void; unref(): Followed; ref(): Followed }

/** Has intervals of keys that begin in `followIntervals` follow its clock, for the rest of the process. */
const install = (): void => {
  const { setInterval: real, clearInterval: clear } = globalThis
  globalThis.setInterval = ((work: () => unknown, ms: number, ...rest: unknown[]) => {
    const timers = following.getStore()
    if (!timers || !followed.test(new Error('where').stack ?? '')) return real(work, ms, ...(rest as []))
    const interval: Followed = { end: timers.every(ms, work), unref: () => interval, ref: () => interval }
    return interval
  }) as typeof setInterval
  globalThis.clearInterval = ((interval: unknown) => {
    if (interval && typeof interval === 'object' && 'end' in interval) (interval as Followed).end()
    else clear(interval as NodeJS.Timeout)
  }) as typeof clearInterval
}
let isInstalled = false

/** Runs the start of a gateway; the intervals of its keys follow the clock. */
export const followIntervals = <Value>(clock: Clock, start: () => Promise<Value>): Promise<Value> => {
  if (!isInstalled) install()
  isInstalled = true
  return clock.timers ? following.run(clock.timers, start) : start()
}

export const createClocks = (now: () => number): Clocks => {
  const timers = new Set<Timer>()
  return {
    runDue: async () => {
      const at = now()
      const due = [...timers].filter(({ dueAt }) => dueAt <= at)
      const begun = due.map(async timer => {
        if (timer.everyMs === null) timers.delete(timer)
        else timer.dueAt = at + timer.everyMs
        await timer.work()
      })
      if (begun.length === 0) return
      await Promise.race([Promise.allSettled(begun), pause(longestWorkMs)])
      await pause(settleMs)
    },
    clockOf: skewMs => {
      const own = new Set<Timer>()
      let isStopped = false
      const add = (ms: number, everyMs: number | null, work: () => unknown) => {
        if (isStopped) return () => {}
        const timer = { dueAt: now() + ms, everyMs, work }
        own.add(timer)
        timers.add(timer)
        return () => {
          own.delete(timer)
          timers.delete(timer)
        }
      }
      return {
        now: () => now() + skewMs,
        timers: {
          every: (ms, work) => add(ms, ms, work),
          after: (ms, work) => add(ms, null, work),
        },
        stop: () => {
          isStopped = true
          for (const timer of own) timers.delete(timer)
        },
      }
    },
  }
}

export const createFleetClock = (start: number): FleetClock => {
  let now = start
  const { clockOf, runDue } = createClocks(() => now)
  const followers = new Set<Follower>()
  return {
    now: () => now,
    clockOf,
    follow: follower => {
      followers.add(follower)
      follower.moved(now)
      return () => void followers.delete(follower)
    },
    advance: async ms => {
      const end = now + ms
      const stride = Math.max(strideMs, Math.ceil(ms / mostStrides))
      while (now < end) {
        now = Math.min(end, now + stride)
        for (const follower of followers) follower.moved(now)
        await Promise.all([runDue(), ...[...followers].map(follower => follower.runDue())])
      }
    },
  }
}
