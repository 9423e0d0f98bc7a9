// Finds out whether a provider whose circuit is open is well again, although nobody asks for anything: once its rest is
// over one cell is loaded. The circuit judges how that went; the cache keeps what came.

import type { Cell } from '../weather/cell.ts'

export type ProbeParts = {
  /** Whether a rest is over and nothing has tried since. */
  readonly isDue: () => boolean
  readonly cell: () => Cell | undefined
  /** Never rejects. */
  readonly load: (cell: Cell) => Promise<void>
}

// A probe that the budget has no room for leaves the circuit as it is: it is not asked at each beat.
const againAfterMs = 1_000

/** A look at whether a probe is due; called at short intervals. */
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
