// Walks over very many keys in parts, with a turn of the event loop after each: no walk that an operator starts may delay consumers.

import { setImmediate as nextTurn } from 'node:timers/promises'

/** Some two milliseconds of the least work on a key. */
const workPerTurn = 1_000

/**
 * Does something with each, with the first part in this turn. What comes or changes meanwhile is the caller's care.
 * @param all an array or a snapshot: collections that change must not be walked over several turns
 * @param work how many times the least work each takes
 */
export const eachInTurns = async <Of>(
  all: readonly Of[],
  act: (one: Of) => void,
  work = 1,
): Promise<void> => {
  const perTurn = Math.max(1, Math.floor(workPerTurn / Math.max(1, work)))
  for (let i = 0; i < all.length; i += perTurn) {
    if (i > 0) await nextTurn()
    for (const one of all.slice(i, i + perTurn)) act(one)
  }
}
