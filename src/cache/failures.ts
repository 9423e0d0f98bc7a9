// What is known of keys without an entry: their recent failures and backoff, so that not every hit retries a failing load, and which of
// them no tier holds. An error with a `retryAt` sets the backoff itself; any other backs off exponentially with jitter.

import { LRUCache } from 'lru-cache'
import { hourMs, minuteMs, utcDayMs } from '../common/calendar.ts'
import { type Clock, isStillToCome } from '../common/clock.ts'
import { AbohawaError, codeOf, messageOf } from '../common/errors.ts'
import { eachInTurns } from './turns.ts'

export type Failure = {
  readonly error: unknown
  readonly failedAt: number
  /** The number of failures in a row. */
  readonly attempts: number
  /** Whether nothing usable was cached. The budget may refuse a refresh and still grant a cold read. */
  readonly cold: boolean
  /** The key is not loaded again before this instant. */
  readonly backoffUntil: number
}

export type Failures = ReturnType<typeof createFailures>

export type BackoffOptions = {
  /** The first backoff, and the longest. */
  readonly retryAfterMs: number
  readonly retryAfterAtMostMs: number
  /** The longest backoff for an error that has its own maximum. */
  readonly longestAfter?: (error: unknown) => number | undefined
  /** Whether the cause of a failure is gone before the end of its backoff. */
  readonly isLifted?: (failure: Pick<Failure, 'error' | 'failedAt'>) => boolean
}

const maxFailures = 20_000
// A correction of the clock; a larger jump is a new time.
const toleratedMs = minuteMs
// A source's longest window is a day; a longer announcement, with an hour of margin, is ignored.
const longestAnnouncedMs = utcDayMs + hourMs

export const createFailures = (options: BackoffOptions, clock: Clock, random = Math.random) => {
  // By size, because lru-cache allocates `max` entries at once.
  const failures = new LRUCache<string, Failure & { readonly own: number }>({
    maxSize: maxFailures,
    sizeCalculation: () => 1,
  })
  // A clock that was set back since would lengthen the backoff.
  const isOver = ({ backoffUntil, failedAt }: Failure): boolean =>
    !isStillToCome(clock, backoffUntil, backoffUntil - failedAt + toleratedMs)

  // Up to 50 % jitter on top, so that keys which failed together are not retried together. Near the longest backoff the
  // jitter shortens it instead, but never below the first.
  const backoffOf = (error: unknown, attempt: number): number => {
    const longest = options.longestAfter?.(error) ?? options.retryAfterAtMostMs
    const first = Math.min(options.retryAfterMs, longest)
    const base = first * 2 ** (attempt - 1)
    const most = Math.min(base * 1.5, longest)
    const least = Math.max(first, Math.min(base, most / 1.5))
    return least + (most - least) * random()
  }

  return {
    record: (key: string, error: unknown, cold: boolean): Failure => {
      const failedAt = clock.now()
      const retryAt = retryAtOf(error)
      const announced = retryAt === undefined ? undefined : Math.min(retryAt, failedAt + longestAnnouncedMs)
      const before = failures.get(key)
      // An announced backoff says nothing about this key, so it does not lengthen the next one.
      const own = (before?.own ?? 0) + (announced === undefined ? 1 : 0)
      const backoffUntil = announced ?? Math.ceil(failedAt + backoffOf(error, own))
      const attempts = (before?.attempts ?? 0) + 1
      const failure = { error, failedAt, attempts, own, cold, backoffUntil }
      failures.set(key, failure)
      return failure
    },
    /** The failure whose backoff is not over yet. */
    backoff: (key: string): Failure | undefined => {
      const failure = failures.get(key)
      return !failure || isOver(failure) || options.isLifted?.(failure) ? undefined : failure
    },
    /** The last failure of a key that no load has succeeded for since. */
    last: (key: string): Failure | undefined => failures.peek(key),
    /** How many keys back off now, by the code of their failure. */
    backoffs: (): Map<string, number> => {
      const counts = new Map<string, number>()
      for (const failure of failures.values()) {
        const code = codeOf(failure.error)
        if (!isOver(failure) && !options.isLifted?.(failure)) counts.set(code, (counts.get(code) ?? 0) + 1)
      }
      return counts
    },
    clear: (key: string): void => void failures.delete(key),
    /** The keys with a last failure. */
    keys: (): string[] => [...failures.keys()],
    /** Ends all backoff except what a `retryAt` announced; for a source that has recovered. */
    endBackoff: (): void => {
      for (const [key, failure] of [...failures.entries()])
        if (retryAtOf(failure.error) === undefined) failures.delete(key)
    },
  }
}

/** The `retryAt` of an error, ms since the epoch. */
export const retryAtOf = (error: unknown): number | undefined =>
  error instanceof Error && 'retryAt' in error && Number.isFinite(error.retryAt)
    ? Number(error.retryAt)
    : undefined

/** The failure of an earlier load, thrown again while its backoff lasts; `retryAt` is the end of the backoff. */
export class BackoffError extends AbohawaError {
  override name = 'BackoffError'
  readonly retryAt: number

  constructor({ error, backoffUntil }: Pick<Failure, 'error' | 'backoffUntil'>) {
    super(codeOf(error), messageOf(error), { cause: error })
    this.retryAt = backoffUntil
  }
}

const maxUncached = 50_000
// Each is a read of the shared tier.
const maxLookUps = 64

export type Uncached = ReturnType<typeof createUncached>

/**
 * The keys that are known to have no usable entry in either tier, so that their next read needs a load. They come from failed
 * cold loads, hard purges, and reads of the shared tier that found nothing; a key that was never read is not among them. Another
 * instance may load one meanwhile, so some are looked up again at intervals.
 */
export const createUncached = () => {
  // By size, because lru-cache allocates `max` entries at once.
  const keys = new LRUCache<string, true>({ maxSize: maxUncached, sizeCalculation: () => 1 })
  return {
    add: (key: string): void => void keys.set(key, true),
    delete: (key: string): void => void keys.delete(key),
    has: (key: string): boolean => keys.has(key),
    /**
     * Looks some of them up again, the oldest look-up first, and forgets those that are not in demand.
     * @param lookUp adds or deletes the key
     */
    check: async (
      isInDemand: (key: string) => boolean,
      lookUp: (key: string) => Promise<unknown>,
    ): Promise<void> => {
      const oldest: string[] = []
      await eachInTurns([...keys.rkeys()], key => {
        if (!isInDemand(key)) keys.delete(key)
        else if (oldest.length < maxLookUps && keys.has(key)) oldest.push(key)
      })
      await Promise.all(oldest.map(lookUp))
    },
  }
}
