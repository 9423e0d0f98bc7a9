// What went wrong with a key lately, so that it is not tried again on every hit: an error that tells when asking makes
// sense again is taken at its word, any other rests for a time that doubles with each failure. Never replaces an entry.

import { LRUCache } from 'lru-cache'
import { hourMs, utcDayMs } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import { AbohawaError, messageOf } from '../errors.ts'

export type Failure = {
  readonly error: unknown
  readonly failedAt: number
  /** How often in a row. */
  readonly attempts: number
  /** Whether nothing usable was there. What was refused to a refresh may still be granted to a cold read. */
  readonly cold: boolean
  /** Before this instant the key is not loaded again. */
  readonly restsUntil: number
}

export type Failures = {
  note(key: string, error: unknown, cold: boolean): Failure
  /** The failure that a key still rests from. */
  resting(key: string): Failure | undefined
  /** The last failure of a key that has not been loaded since. */
  last(key: string): Failure | undefined
  clear(key: string): void
  clearWhere(matches: (key: string) => boolean): void
  /** Ends all rests but those that were announced: what they waited for is well again. */
  forgive(): void
}

export type BackoffOptions = {
  /** The rest after the first failure, and the longest. */
  readonly retryAfterMs: number
  readonly retryAfterAtMostMs: number
  /** The longest rest after an error that has one of its own. */
  readonly longestAfter?: (error: unknown) => number | undefined
}

const mostKeys = 20_000
// The longest window that a source can have, and a bit: no pause that anyone announces is longer.
const longestAnnouncedMs = utcDayMs + hourMs

export const createFailures = (options: BackoffOptions, clock: Clock, random = Math.random): Failures => {
  const failures = new LRUCache<string, Failure & { readonly own: number }>({ max: mostKeys })

  // Up to half more by chance, so that what failed together is not tried again together. Near the longest there is no
  // room for that: there chance makes it shorter, but never than the first.
  const restOf = (error: unknown, attempt: number): number => {
    const longest = options.longestAfter?.(error) ?? options.retryAfterAtMostMs
    const first = Math.min(options.retryAfterMs, longest)
    const rest = first * 2 ** (attempt - 1)
    const most = Math.min(rest * 1.5, longest)
    const least = Math.max(first, Math.min(rest, most / 1.5))
    return least + (most - least) * random()
  }

  return {
    note: (key, error, cold) => {
      const failedAt = clock.now()
      const announced = retryAtOf(error)
      const told = announced === undefined ? undefined : Math.min(announced, failedAt + longestAnnouncedMs)
      const before = failures.get(key)
      // A pause that was announced says nothing about this key: it does not lengthen the next rest.
      const own = (before?.own ?? 0) + (told === undefined ? 1 : 0)
      const restsUntil = told ?? Math.ceil(failedAt + restOf(error, own))
      const attempts = (before?.attempts ?? 0) + 1
      const failure = { error, failedAt, attempts, own, cold, restsUntil }
      failures.set(key, failure)
      return failure
    },
    resting: key => {
      const failure = failures.get(key)
      return failure && clock.now() < failure.restsUntil ? failure : undefined
    },
    last: key => failures.peek(key),
    clear: key => {
      failures.delete(key)
    },
    clearWhere: matches => {
      for (const key of [...failures.keys()]) if (matches(key)) failures.delete(key)
    },
    forgive: () => {
      for (const [key, failure] of [...failures.entries()])
        if (retryAtOf(failure.error) === undefined) failures.delete(key)
    },
  }
}

/** When an error says that asking again makes sense, ms since the epoch. */
export const retryAtOf = (error: unknown): number | undefined =>
  error instanceof Error && 'retryAt' in error && Number.isFinite(error.retryAt)
    ? Number(error.retryAt)
    : undefined

/** An earlier failure, told again to someone who asks while it rests. */
export class BackoffError extends AbohawaError {
  override name = 'BackoffError'
  readonly retryAt: number

  constructor({ error, restsUntil }: Pick<Failure, 'error' | 'restsUntil'>) {
    super(error instanceof AbohawaError ? error.code : 'internal', messageOf(error), { cause: error })
    this.retryAt = restsUntil
  }
}
