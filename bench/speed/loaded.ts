// What a loader of our own prints: how many responses came, how quickly, and how many were wrong.

import { sorted } from '../row.ts'
import type { Loaded } from './load.ts'

/** @param times in ms, of all responses @param started of the monotonic clock */
export const loadedOf = (times: readonly number[], started: number, wrong: number): Loaded => {
  const inOrder = sorted(times)
  const at = (share: number): number => inOrder[Math.floor(inOrder.length * share)] ?? Number.NaN
  return {
    answers: times.length,
    seconds: (performance.now() - started) / 1000,
    p50: at(0.5),
    p99: at(0.99),
    wrong,
  }
}
