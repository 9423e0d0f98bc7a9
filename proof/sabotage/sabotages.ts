// Faults that are planted in the product, one at a time, to see whether the checker finds them: a text of one file and what
// replaces it, and which promises it breaks.

import type { PromiseNumber } from '../promises.ts'

export type Sabotage = {
  /** What the fault is. */
  readonly name: string
  readonly file: string
  readonly text: string
  readonly replacement: string
  /** The promises of which it breaks at least one. */
  readonly promise: readonly PromiseNumber[]
}

export const sabotages: readonly Sabotage[] = []
