// The one way to wait for a condition without an event: polls until it holds, and says what it waited for where it never does. Its
// limit is the one of every wait of the tests.

import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { inspect } from 'node:util'

/**
 * The limit of a wait: only a hang reaches it, however busy the machine is. No test may need a shorter one. Whoever runs tests of
 * programs that are broken on purpose shortens it.
 */
export const patienceMs = Number(process.env.TEST_PATIENCE_MS ?? 180_000)

type Nothing = undefined | null | false | 0 | ''
type Something<Found> = Exclude<Awaited<Found>, Nothing>

/**
 * Calls `look` until it finds something, and returns that: every 5 ms at first, less often the longer it takes.
 *
 * @param what the awaited condition, as a statement: `the circuit is closed`
 * @param look is called again as long as it returns nothing (undefined, null, false, 0 or '') or throws
 * @param everyMs a fixed time between two looks; 0 for once per turn of the event loop
 * @throws {Error} with `what` and the last result, `patienceMs` after the beginning, also while `look` is pending
 */
export const until = async <Found>(
  what: string,
  look: () => Found,
  { everyMs }: { everyMs?: number } = {},
): Promise<Something<Found>> => {
  const { found, last } = await poll(look, patienceMs, everyMs)
  if (found !== undefined) return found
  const seen = inspect(last, { depth: 2, breakLength: Number.POSITIVE_INFINITY }).slice(0, 300)
  throw new Error(`not within ${patienceMs} ms: ${what}; last: ${seen}`, { cause: last })
}

/** The same, but returns undefined when the deadline passes. */
export const foundWithin = async <Found>(
  withinMs: number,
  look: () => Found,
  everyMs?: number,
): Promise<Something<Found> | undefined> => (await poll(look, withinMs, everyMs)).found

const poll = async <Found>(look: () => Found, withinMs: number, everyMs?: number) => {
  const begun = performance.now()
  // A look may be a whole report, and keeps what is awaited from its work.
  const nextLook = () => everyMs ?? Math.min(50, Math.max(5, (performance.now() - begun) / 10))
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
      if ((await Promise.race([everyMs === 0 ? turn() : pause(nextLook()), late])) === 'late') return { last }
    }
  } finally {
    clearTimeout(timer)
  }
}
