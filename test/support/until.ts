// The one way to wait for something that nobody announces: it is looked for again and again until it is there or the
// deadline has passed, and then the error says what was waited for. Without that a test ends as a time-out without a word.

import { setTimeout as pause } from 'node:timers/promises'
import { inspect } from 'node:util'

type Nothing = undefined | null | false | 0 | ''

/**
 * Looks every `everyMs` until `look` finds something, and returns that.
 *
 * @param what is waited for, as a statement: `the circuit is closed`
 * @param look is asked again as long as it returns nothing (undefined, null, false, 0 or '') or throws
 * @throws {Error} that says `what` and what was found last, `withinMs` after the beginning, also while `look` is pending
 */
export const until = async <Found>(
  what: string,
  look: () => Found,
  withinMs = 20_000,
  everyMs = 5,
): Promise<Exclude<Awaited<Found>, Nothing>> => {
  const { promise: late, resolve: onLate } = Promise.withResolvers<'late'>()
  const timer = setTimeout(onLate, withinMs, 'late')
  let last: unknown = 'an answer that never came'
  const attempt = async (): Promise<Exclude<Awaited<Found>, Nothing> | undefined> => {
    try {
      const found = await look()
      last = found
      return (found || undefined) as Exclude<Awaited<Found>, Nothing> | undefined
    } catch (error) {
      last = error
      return undefined
    }
  }
  try {
    while (true) {
      const found = await Promise.race([attempt(), late])
      if (found === 'late') break
      if (found !== undefined) return found
      if ((await Promise.race([pause(everyMs), late])) === 'late') break
    }
  } finally {
    clearTimeout(timer)
  }
  const seen = inspect(last, { depth: 2, breakLength: Number.POSITIVE_INFINITY }).slice(0, 300)
  throw new Error(`not within ${withinMs} ms: ${what}; last: ${seen}`, { cause: last })
}
