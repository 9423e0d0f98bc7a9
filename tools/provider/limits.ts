// The limits of the free host, per client address: weight per minute, hour and UTC day in fixed windows, and a short queue of calls.
// Weight is checked before a call and added after it, so that the call which crosses a limit still succeeds.

import { hourMs, minuteMs, utcDayMs } from 'abohawa/common/calendar.ts'
import type { Clock } from 'abohawa/common/clock.ts'
import pLimit, { type LimitFunction } from 'p-limit'
import { type Fault, limitFaults } from './faults.ts'

/** Weight per window of the free service, for one client address. */
export const freeLimits = { minute: 600, hour: 5_000, day: 10_000 } as const

/** Requests of one client address that run concurrently, and that are queued, before more are refused. */
const freeConcurrency = { running: 1, waiting: 4 } as const

/** A request that weighs more is always refused. */
const maxWeightPerRequest = 5_000

export type Limits = {
  /** The refusal if a window is full, else undefined. */
  check(address: string): Fault['answer']
  add(address: string, weight: number): void
  /** The refusal of a request that is too heavy, else undefined. */
  checkWeight(weight: number): Fault['answer']
  /** Queues and runs the call, or returns the refusal if the queue is full. */
  enqueue(address: string, call: () => Promise<void>): Promise<Fault['answer']>
  /** Empties all windows, as a restart of the provider does. */
  clear(): void
}

const { running, waiting } = freeConcurrency

export const unlimited: Limits = {
  check: () => undefined,
  add: () => {},
  checkWeight: () => undefined,
  enqueue: async (_address, call) => {
    await call()
    return undefined
  },
  clear: () => {},
}

export const createFreeLimits = (clock: Clock): Limits => {
  // The window with the longest wait gives the refusal.
  const windows = [
    createWindow(clock, utcDayMs, freeLimits.day, limitFaults.day),
    createWindow(clock, hourMs, freeLimits.hour, limitFaults.hour),
    createWindow(clock, minuteMs, freeLimits.minute, limitFaults.minute),
  ]
  const queues = new Map<string, LimitFunction>()

  return {
    check: address => windows.find(window => window.used(address))?.answer,
    add: (address, weight) => {
      for (const window of windows) window.add(address, weight)
    },
    checkWeight: weight => (weight > maxWeightPerRequest ? limitFaults.tooMuchData.answer : undefined),
    enqueue: async (address, call) => {
      const queue = queues.get(address) ?? pLimit(running)
      if (queue.activeCount + queue.pendingCount >= running + waiting) return limitFaults.concurrent.answer
      queues.set(address, queue)
      await queue(call)
      return undefined
    },
    clear: () => {
      for (const window of windows) window.clear()
    },
  }
}

const createWindow = (clock: Clock, lengthMs: number, limit: number, { answer }: Fault) => {
  const weights = new Map<string, number>()
  let current = Number.NaN
  const sweep = (): void => {
    const turn = Math.floor(clock.now() / lengthMs)
    if (turn !== current) weights.clear()
    current = turn
  }
  return {
    answer,
    used: (address: string): boolean => {
      sweep()
      return (weights.get(address) ?? 0) >= limit
    },
    add: (address: string, weight: number): void => {
      sweep()
      weights.set(address, (weights.get(address) ?? 0) + weight)
    },
    clear: () => weights.clear(),
  }
}
