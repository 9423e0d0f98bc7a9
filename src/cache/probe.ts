// Probes a provider whose circuit is open, so that recovery does not depend on requests: after the breaker's wait it loads
// one cell. The breaker evaluates the outcome; the cache keeps the timeline.

import type { Cell } from '../weather/cell.ts'

export type ProbeParts = {
  /** Whether the breaker would let a probe through and none has been sent. */
  readonly isDue: () => boolean
  readonly cell: () => Cell | undefined
  /** Never rejects. */
  readonly load: (cell: Cell) => Promise<void>
}

// The budget may refuse a probe, which leaves the circuit as it is: wait before the next one.
const againAfterMs = 1_000

/** Sends a probe if one is due; called at short intervals. */
export const createProbe = ({ isDue, cell, load }: ProbeParts): (() => void) => {
  let isOut = false
  let endedAt = Number.NEGATIVE_INFINITY
  return () => {
    if (isOut || !isDue() || performance.now() - endedAt < againAfterMs) return
    const chosen = cell()
    if (!chosen) return
    isOut = true
    void load(chosen).finally(() => {
      isOut = false
      endedAt = performance.now()
    })
  }
}
