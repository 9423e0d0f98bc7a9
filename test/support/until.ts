// The one way to wait for a condition without an event: polls until the condition holds or the deadline has passed. The
// error then says what it waited for; otherwise the test would end with a bare timeout.

import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { inspect } from 'node:util'

type Nothing = undefined | null | false | 0 | ''
type Something<Found> = Exclude<Awaited<Found>, Nothing>

/**
 * Calls `look` every `everyMs` until it finds something, and returns that.
 *
 * @param what the awaited condition, as a statement: `the circuit is closed`
 * @param look is called again as long as it returns nothing (undefined, null, false, 0 or '') or throws
 * @param everyMs 0 for once per turn of the event loop
 * @throws {Error} with `what` and the last result, `withinMs` after the beginning, also while `look` is pending
 */
export const until = async <Found>(
  what: string,
  look: () => Found,
  withinMs = 60_000,
  everyMs = 5,
): Promise<Something<Found>> => {
  const { found, last } = await poll(look, withinMs, everyMs)
  if (found !== undefined) return found
  const seen = inspect(last, { depth: 2, breakLength: Number.POSITIVE_INFINITY }).slice(0, 300)
  throw new Error(`not within ${withinMs} ms: ${what}; last: ${seen}`, { cause: last })
}

/** The same, but returns undefined when the deadline passes. */
export const foundWithin = async <Found>(
  withinMs: number,
  look: () => Found,
  everyMs = 5,
): Promise<Something<Found> | undefined> => (await poll(look, withinMs, everyMs)).found

const poll = async <Found>(look: () => Found, withinMs: number, everyMs: number) => {
  const { promise: late, resolve: onLate } = Promise.withResolvers<'late'>()
  const timer = setTimeout(onLate, withinMs, 'late')
  let last: unknown = 'no answer yet'
  const attempt = async (): Promise<Something<Found> | undefined> => {
    try {
      const found = await look()
      last = found
      return (found || undefined) as Something<Found> | undefined
    } catch (error) {
      last = error
      return undefined
    }
  }
  try {
    for (;;) {
      const found = await Promise.race([attempt(), late])
      if (found === 'late') return { last }
      if (found !== undefined) return { found, last }
      if ((await Promise.race([everyMs > 0 ? pause(everyMs) : turn(), late])) === 'late') return { last }
    }
  } finally {
    clearTimeout(timer)
  }
}
