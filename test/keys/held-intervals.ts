// Intervals that run only when a test says so.

import type { Test } from 'tap'

type Held = { readonly work: () => void; readonly ms: number; isOver: boolean; unref(): Held }

/** The intervals that are set until the end of the test, in order. None runs by itself. */
export const heldIntervals = (t: Pick<Test, 'intercept'>): readonly Held[] => {
  const held: Held[] = []
  const clear = globalThis.clearInterval
  t.intercept(globalThis, 'setInterval', {
    value: (work: () => void, ms: number) => {
      const interval: Held = { work, ms, isOver: false, unref: () => interval }
      held.push(interval)
      return interval
    },
  })
  t.intercept(globalThis, 'clearInterval', {
    value: (given: Held | NodeJS.Timeout) => {
      const interval = held.find(each => each === given)
      if (interval) interval.isOver = true
      else clear(given as NodeJS.Timeout)
    },
  })
  return held
}
