// Bounds the bytes that the process sends without a key's quota, to all clients together: a token bucket. While it is empty, the
// reference is refused, and refusals keep their status but are delayed, so that a client that waits for its answers costs next to
// nothing. A hit with a good key never comes here; api.ts decides which paths need no key.

import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import { Problem } from './problem.ts'
import { sentences } from './sentences.ts'

export type UnauthenticatedRate = {
  /** Bytes a second and at once, over all workers. */
  readonly unauthenticatedRateBytes: number
  readonly unauthenticatedBurstBytes: number
}

export type UnauthenticatedObserver = {
  /** Bytes of heads and bodies. */
  unauthenticatedSent(bytes: number): void
  unauthenticatedRefused(): void
}

export type UnauthenticatedBytes = {
  /** Counts an answer that is sent in any case. @param body its bytes @returns what to wait for before it is sent, if anything */
  count(body: number): Promise<void> | undefined
  /** Counts an answer of the reference. @throws Problem 429 while the bucket is empty */
  admit(body: number): void
  /** Sets a new rate. */
  apply(rate: UnauthenticatedRate): void
}

// A head by and large.
const headBytes = 700
const lateMs = 1_000

/** @param workers processes that share the rate in equal parts */
export const createUnauthenticatedBytes = (
  given: UnauthenticatedRate,
  workers: number,
  clock: Clock,
  observer: UnauthenticatedObserver,
): UnauthenticatedBytes => {
  let { unauthenticatedRateBytes: rate, unauthenticatedBurstBytes: burst } = given
  let left = burst / workers
  let filledAt = clock.now()
  const fill = (): void => {
    const now = clock.now()
    // A clock that goes back fills nothing.
    const gained = (Math.max(0, now - filledAt) / 1000) * (rate / workers)
    left = Math.min(burst / workers, left + gained)
    filledAt = now
  }

  return {
    count: body => {
      const bytes = headBytes + body
      fill()
      observer.unauthenticatedSent(bytes)
      const isEmpty = left <= 0
      // It leaves no debt, or a flood of refusals would keep the reference closed behind it.
      left = Math.max(left - bytes, Math.min(left, 0))
      return isEmpty ? pause(lateMs) : undefined
    },
    admit: body => {
      fill()
      if (left <= 0) {
        observer.unauthenticatedRefused()
        const seconds = Math.ceil(-left / (rate / workers))
        throw new Problem(429, sentences.referenceBusy(rate), { 'retry-after': String(Math.max(1, seconds)) })
      }
      // The last body may be longer than what is left, so that each can be sent however small the burst is.
      left -= headBytes + body
      observer.unauthenticatedSent(headBytes + body)
    },
    apply: next => {
      fill()
      ;({ unauthenticatedRateBytes: rate, unauthenticatedBurstBytes: burst } = next)
    },
  }
}
