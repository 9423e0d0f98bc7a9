// Fleet-wide single-flight: one load per key over all instances. The lease holder loads and renews a short lease; the
// others wait until it is released or expires. Without the store every instance loads for itself, which costs more loads but
// fails no request. single-flight.ts has the single-flight within a process.

import { AbohawaError, messageOf } from '../errors.ts'
import { safeText } from '../outside-text.ts'
import type { LeaseStore } from '../stores/store.ts'
import { retryAtOf } from './failures.ts'

export type FleetSingleFlight = {
  /**
   * The result of `load`, or what `arrived` finds after another instance has loaded; `joined` says which.
   * @throws FailedElsewhere when another instance's load failed
   */
  run<Result>(
    key: string,
    steps: {
      /** @param token the fencing token for the write; undefined when this instance loads without a lease */
      load(token: number | undefined): Promise<Result>
      arrived(): Promise<Result | undefined>
      /** Whether a load failed for one consumer alone: other instances then load for theirs. */
      isOfOneConsumer?(error: unknown): boolean
    },
  ): Promise<{ result: Result; joined: boolean }>
  close(): void
}

/** Another instance's load failed: with its code and the instant from which a retry makes sense. */
export class FailedElsewhere extends AbohawaError {
  override name = 'FailedElsewhere'
  readonly retryAt: number | undefined

  constructor({ code, message, retryAt }: LoadFailure) {
    super(safeText(code, 60), safeText(message, 300))
    this.retryAt = retryAt
  }
}

/** The message of a released lease after a failed load, as JSON. */
type LoadFailure = { code: string; message: string; retryAt?: number; account?: string }

/** The message of a released lease after a load that wrote an entry. */
const succeeded = ''
// How much longer than a lease lasts a waiter waits for the message of its release.
const graceMs = 20

export type FleetSingleFlightOptions = {
  readonly store: LeaseStore
  readonly leaseForMs: number
  /** The account of loads. A load that failed for another account is tried here. */
  readonly account?: () => string | undefined
  /** Called with a key that another instance has loaded; not while messages are lost. */
  readonly onLoadedElsewhere?: (key: string) => void
}

export const createFleetSingleFlight = (
  { store, account = () => undefined, onLoadedElsewhere = () => {}, ...options }: FleetSingleFlightOptions,
  failed: (error: unknown) => void,
): FleetSingleFlight => {
  const { leaseForMs } = options
  const waiting = new Map<string, Set<(message: string | undefined) => void>>()
  // Instances receive their own messages too.
  const ownReleases = new Set<string>()
  const unsubscribe = store.onLeaseReleased((key, message) => {
    if (key === null) ownReleases.clear()
    else if (!ownReleases.delete(key) && message === succeeded) onLoadedElsewhere(key)
    // A key of null: messages may have been missed, so every waiter reads the shared tier.
    const released = key === null ? [...waiting.values()] : [waiting.get(key) ?? new Set()]
    for (const waiters of released) for (const wake of [...waiters]) wake(key === null ? undefined : message)
  })

  // Registered before the lease is requested, so that no release in between is missed.
  const waitFor = (key: string) => {
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    const waiters = waiting.get(key) ?? new Set()
    waiting.set(key, waiters.add(resolve))
    return {
      within: (ms: number): Promise<string | undefined> => {
        const timer = setTimeout(resolve, ms, undefined)
        return promise.finally(() => clearTimeout(timer))
      },
      stop: () => {
        waiters.delete(resolve)
        if (waiters.size === 0 && waiting.get(key) === waiters) waiting.delete(key)
      },
    }
  }

  const held = new Map<string, number>()
  const renewAll = (): void => {
    for (const [key, token] of held) store.renewLease(key, token, leaseForMs).catch(failed)
  }
  const startRenewal = () => setInterval(renewAll, leaseForMs / 3).unref()
  const renewal = startRenewal()

  const loadAsHolder = async <Result>(
    key: string,
    token: number,
    load: () => Promise<Result>,
    isOfOneConsumer: (error: unknown) => boolean,
  ): Promise<Result> => {
    held.set(key, token)
    let message = succeeded
    try {
      return await load()
    } catch (error) {
      // As if there were no entry: each waiter loads for itself.
      message = isOfOneConsumer(error) ? succeeded : failureMessage(error, account())
      throw error
    } finally {
      if (held.get(key) === token) held.delete(key)
      ownReleases.add(key)
      store.releaseLease(key, token, message).catch((error: unknown) => {
        ownReleases.delete(key)
        failed(error)
      })
    }
  }

  return {
    run: async (key, { load, arrived, isOfOneConsumer = () => false }) => {
      for (;;) {
        const release = waitFor(key)
        try {
          const lease = await store.acquireLease(key, leaseForMs).catch(failed)
          if (!lease) return { result: await load(undefined), joined: false }
          const { token } = lease
          if (token !== null) {
            let joined = true
            const result = await loadAsHolder(
              key,
              token,
              async () => {
                // Another holder may have finished between our read and our lease.
                const found = await arrived()
                if (found !== undefined) return found
                joined = false
                return load(token)
              },
              isOfOneConsumer,
            )
            return { result, joined }
          }
          const message = await release.within(lease.remainingMs + graceMs)
          const failure = message ? failureIn(message) : undefined
          // A gateway of the previous version names no account.
          if (failure && (failure.account ?? account()) === account()) throw new FailedElsewhere(failure)
          const found = await arrived()
          if (found !== undefined) return { result: found, joined: true }
        } finally {
          release.stop()
        }
      }
    },
    close: () => {
      clearInterval(renewal)
      unsubscribe()
    },
  }
}

const codeForm = /^[a-z][a-z_]{0,39}$/
const longestSentence = 300

/** The failure in a message; undefined for a message that cannot be read, which fails nothing. */
const failureIn = (message: string): LoadFailure | undefined => {
  try {
    const { code, message: sentence, retryAt, account } = JSON.parse(message) as Partial<LoadFailure>
    if (typeof code !== 'string' || !codeForm.test(code) || typeof sentence !== 'string') return undefined
    const failure = {
      code: currentCode(code),
      message: safeText(sentence, longestSentence),
      ...(typeof account === 'string' ? { account } : {}),
    }
    return typeof retryAt === 'number' ? { ...failure, retryAt } : failure
  } catch {
    return undefined
  }
}

// While a fleet is replaced, gateways of the previous version still send the former code.
const currentCode = (code: string): string => (code === 'provider_resting' ? 'provider_circuit_open' : code)

const failureMessage = (error: unknown, account: string | undefined): string => {
  const retryAt = retryAtOf(error)
  const failure: LoadFailure = {
    code: error instanceof AbohawaError ? error.code : 'internal',
    message: safeText(messageOf(error), longestSentence),
    ...(retryAt === undefined ? {} : { retryAt }),
    ...(account === undefined ? {} : { account }),
  }
  return JSON.stringify(failure)
}
