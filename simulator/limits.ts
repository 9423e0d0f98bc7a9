// The limits of the free host, per client address: weight by minute, hour and UTC day in windows fixed on the clock, and
// few calls running and waiting. Checked before a call, added after, so that the call which crosses a limit still
// succeeds. The figures are the protocol's.

import pLimit, { type LimitFunction } from 'p-limit'
import { hourMs, minuteMs, utcDayMs } from '../src/calendar.ts'
import type { Clock } from '../src/clock.ts'
import { freeConcurrency, freeLimits, mostWeightPerRequest } from '../src/provider/open-meteo/limits.ts'
import { limitMoods, type Mood } from './moods.ts'

/** What stands between a client address and an answer. */
export type Limits = {
  /** The answer to give instead of serving the address, or undefined when it has room. */
  check(address: string): Mood['answer']
  add(address: string, weight: number): void
  /** The answer to a call that weighs too much to be served at all. */
  checkWeight(weight: number): Mood['answer']
  /** Runs the call when its turn comes, or gives the answer that refuses it at once. */
  inTurn(address: string, call: () => Promise<void>): Promise<Mood['answer']>
  /** Empties all windows, as a restart of the provider does. */
  clear(): void
}

const { running, waiting } = freeConcurrency

/** Limits that let everything pass. */
export const unlimited: Limits = {
  check: () => undefined,
  add: () => {},
  checkWeight: () => undefined,
  inTurn: async (_address, call) => {
    await call()
    return undefined
  },
  clear: () => {},
}

/** The limits of the free host, on the given clock. */
export const createFreeLimits = (clock: Clock): Limits => {
  // The longest wait is told first.
  const windows = [
    createWindow(clock, utcDayMs, freeLimits.day, limitMoods.day),
    createWindow(clock, hourMs, freeLimits.hour, limitMoods.hour),
    createWindow(clock, minuteMs, freeLimits.minute, limitMoods.minute),
  ]
  const queues = new Map<string, LimitFunction>()

  return {
    check: address => windows.find(window => window.used(address))?.answer,
    add: (address, weight) => {
      for (const window of windows) window.add(address, weight)
    },
    checkWeight: weight => (weight > mostWeightPerRequest ? limitMoods.tooMuchData.answer : undefined),
    inTurn: async (address, call) => {
      const queue = queues.get(address) ?? pLimit(running)
      if (queue.activeCount + queue.pendingCount >= running + waiting) return limitMoods.concurrent.answer
      queues.set(address, queue)
      await queue(call)
      return undefined
    },
    clear: () => {
      for (const window of windows) window.clear()
    },
  }
}

const createWindow = (clock: Clock, lengthMs: number, limit: number, { answer }: Mood) => {
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
