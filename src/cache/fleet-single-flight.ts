// Fleet-wide single-flight: one load per key over all instances. The lease holder loads and renews a short lease; the others look for its
// entry at intervals, and take the lease when it expires. Without the store every instance loads for itself, which fails no request.

import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import { after, type Clock, systemClock } from '../common/clock.ts'
import { AbohawaError, codeOf, messageOf } from '../common/errors.ts'
import { safeText } from '../common/outside-text.ts'
import type { LeaseReply, LeaseStore } from '../stores/store.ts'
import { retryAtOf } from './failures.ts'
import { eachInTurns } from './turns.ts'

export type FleetSingleFlight = ReturnType<typeof createFleetSingleFlight>

const longestSentence = 300
/** What a lease holds after a failed load, as JSON; `by` is the instance whose load failed. */
const failureForm = z.object({
  code: z.string().regex(/^[a-z][a-z_]{0,39}$/),
  message: z.string().transform(text => safeText(text, longestSentence)),
  retryAt: z.number().optional().catch(undefined),
  account: z.string().optional().catch(undefined),
  by: z.string().catch(''),
})

type LoadFailure = z.infer<typeof failureForm>

/** Another instance's load failed: with its code and the instant from which a retry makes sense. */
class FailedElsewhere extends AbohawaError {
  override name = 'FailedElsewhere'
  readonly retryAt: number | undefined

  constructor({ code, message, retryAt }: LoadFailure) {
    super(code, safeText(message, longestSentence))
    this.retryAt = retryAt
  }
}

// A waiter notices an entry at most so much later. Each time it costs the store a command for the lease, and one for each upstream.
const pollEveryMs = 100
// Of a command to the store, in terms of `eachInTurns`.
const workOfCommand = 10

export const createFleetSingleFlight = (
  {
    store,
    leaseForMs,
    account,
    clock = systemClock,
  }: {
    readonly store: LeaseStore
    readonly leaseForMs: number
    /** The account of loads. A load that failed for another account is tried here. */
    readonly account?: string | undefined
    /** Its timers count the time between polls. */
    readonly clock?: Clock
  },
  failed: (error: unknown) => void,
) => {
  const instance = randomUUID()
  const held = new Map<string, string>()
  const renew = ([holder, key]: [string, string]): void => {
    if (held.has(holder)) store.renewLease(key, holder, leaseForMs).catch(failed)
  }
  const renewAll = (): void => void eachInTurns([...held], renew, workOfCommand)
  const renewal = setInterval(renewAll, leaseForMs / 3).unref()

  const acquire = (key: string, holder: string, overFailure: boolean): Promise<LeaseReply | undefined> =>
    store.acquireLease(key, holder, leaseForMs, overFailure).catch(error => void failed(error))
  const loadAsHolder = async <Result>(
    key: string,
    holder: string,
    load: () => Promise<Result>,
    isOfAll: (error: unknown) => boolean,
  ): Promise<Result> => {
    held.set(holder, key)
    let failure: string | undefined
    try {
      return await load()
    } catch (error) {
      if (isOfAll(error)) failure = failureText(error, account, instance)
      throw error
    } finally {
      held.delete(holder)
      store.releaseLease(key, holder, failure).catch(failed)
    }
  }

  return {
    /**
     * The result of `load`, or what `arrived` finds after another instance has loaded; `joined` says which.
     * @throws FailedElsewhere when another instance's load failed
     */
    run: async <Result>(
      key: string,
      {
        load,
        arrived,
        isOfAll,
      }: {
        /** @param holder of the lease, for the write; undefined when this instance loads without one */
        load(holder: string | undefined): Promise<Result>
        arrived(): Promise<Result | undefined>
        /** Whether a failed load fails those who wait in other instances; else they load for themselves. */
        isOfAll(error: unknown): boolean
      },
    ): Promise<{ result: Result; joined: boolean }> => {
      const holder = randomUUID()
      let overFailure = false
      for (;;) {
        const reply = await acquire(key, holder, overFailure)
        if (reply === undefined) return { result: await load(undefined), joined: false }
        if (reply === 'acquired') {
          let joined = true
          const loadUnlessArrived = async () => {
            // Another holder may have finished between our read and our lease.
            const found = await arrived()
            if (found !== undefined) return found
            joined = false
            return load(holder)
          }
          const result = await loadAsHolder(key, holder, loadUnlessArrived, isOfAll)
          return { result, joined }
        }
        if (reply === 'held') {
          await new Promise<void>(resolve => after(clock, pollEveryMs, resolve))
          const found = await arrived()
          if (found !== undefined) return { result: found, joined: true }
          continue
        }
        const failure = failureIn(reply.failure)
        if (failure && failure.by !== instance && (failure.account ?? account) === account)
          throw new FailedElsewhere(failure)
        overFailure = true
      }
    },
    /** Gives the leases of these keys back, for other instances to load: their loads will not end here. */
    release: (keys: ReadonlySet<string>): Promise<void> =>
      eachInTurns(
        [...held],
        ([holder, key]) => {
          if (!keys.has(key) || !held.delete(holder)) return
          store.releaseLease(key, holder).catch(failed)
        },
        workOfCommand,
      ),
    close: (): void => clearInterval(renewal),
  }
}

/** The failure in a text; undefined for one that can't be read, which fails nothing. */
const failureIn = (text: string): LoadFailure | undefined => {
  try {
    return failureForm.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

const failureText = (error: unknown, account: string | undefined, by: string): string => {
  const failure = {
    code: codeOf(error),
    message: safeText(messageOf(error), longestSentence),
    retryAt: retryAtOf(error),
    account,
    by,
  }
  return JSON.stringify(failure)
}
