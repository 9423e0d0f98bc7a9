// Walks over very many keys in parts, with a turn of the event loop after each: no walk that an operator starts may delay consumers.

import { setImmediate as nextTurn } from 'node:timers/promises'

/** Some two milliseconds of the work on a key. */
const keysPerTurn = 1_000

/**
 * Does something with each, with the first part in this turn. What comes or changes meanwhile is the caller's care.
 * @param all an array or a snapshot: collections that change must not be walked over several turns
 */
export const eachInTurns = async <Of>(all: readonly Of[], act: (one: Of) => void): Promise<void> => {
  for (let i = 0; i < all.length; i += keysPerTurn) {
    if (i > 0) await nextTurn()
    for (const one of all.slice(i, i + keysPerTurn)) act(one)
  }
}
