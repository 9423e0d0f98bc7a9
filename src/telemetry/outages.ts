// When an outage of the provider or of the store begins and ends, and which failures belong to it and get no line of their
// own. The provider's begins with an open circuit or with failed loads in a row; the store's with the first part that can't
// reach it. outage.ts makes the lines.

import type { LoadFailure } from '../cache/read-through.ts'
import type { Clock } from '../common/clock.ts'
import { AbohawaError, messageOf } from '../common/errors.ts'
import type { BreakerState } from '../provider/breaker.ts'
import type { Log } from './log.ts'
import { type Cause, createOutage, type Noticed, type Outage, type OutageState } from './outage.ts'

/** A part that can't do without the store: the connection, the counts of quotas, the budget for the provider. */
type StorePart = 'redis' | 'quota' | 'budget'

type OutageName = 'provider' | 'store'

type OpenOutage = OutageState & { readonly outage: OutageName }

export type Outages = {
  /** A request for weather to the provider ended. @param cause why it brought none */
  requested(cause: Cause | undefined): void
  breaker(state: BreakerState): void
  /** True when the failure belongs to an outage, which counts it. */
  loadFailed(failure: LoadFailure): boolean
  storeAway(part: StorePart, reason: string): void
  /** @param fields of the line when the outage is over */
  storeBack(part: StorePart, fields?: Readonly<Record<string, unknown>>): void
  sharedTierFailed(step: string): void
  /** A request ended in 500. True when the failure belongs to an outage, whose lines have the cause. */
  answered500(error: unknown): boolean
  /** Those that are on. */
  open(): OpenOutage[]
  close(): void
}

const nextSteps = {
  provider: 'abohawa status says how long the cache lasts; docs/runbook.md#abohawaproviderdown',
  store: 'mend the store and leave the gateways running; docs/runbook.md#abohawastoredown',
}

const levels = {
  begins: 'error',
  'has another cause': 'error',
  'goes on': 'warn',
  'is over': 'info',
} as const

// Of loads, without a success in between.
const failuresInARow = 3
const tickEveryMs = 1_000
// A limit that is used up is no outage: it ends at an instant that is known.
const limited = 'provider_limited'
const storeCode = 'store_unavailable'
// Failures of a request that waits for the provider, beside those with a code of the provider.
const ofWaiting: ReadonlySet<string> = new Set(['waited_too_long', 'timeline_exhausted'])

/**
 * @param staleReads how many answers were stale since the start
 * @param onProvider called when an outage of the provider begins or ends
 */
export const openOutages = (
  log: Log,
  clock: Clock,
  staleReads: () => number,
  onProvider: () => void = () => {},
): Outages => {
  let errors = 0
  const noticed = (): Noticed => ({ stale: staleReads(), errors })
  const outageOf = (outage: OutageName): Outage =>
    createOutage({
      clock,
      noticed,
      // The provider's sentences differ from one request to the next.
      kindOf: ({ code, reason }) => (outage === 'provider' ? code : reason),
      write: (phase, fields) =>
        log[levels[phase]](
          { outage, ...fields, ...(levels[phase] === 'error' ? { next: nextSteps[outage] } : {}) },
          `outage ${phase}`,
        ),
      changed: outage === 'provider' ? onProvider : () => {},
    })
  const provider = outageOf('provider')
  const store = outageOf('store')
  let circuit: BreakerState = 'closed'
  let inARow = 0
  // Since the last success.
  let firstFailure: Cause | undefined
  const away = new Set<StorePart>()
  let ended: Readonly<Record<string, unknown>> = {}
  const ticking = setInterval(() => {
    provider.tick()
    store.tick()
  }, tickEveryMs).unref()

  return {
    requested: cause => {
      if (cause) {
        if (cause.code === limited) return
        firstFailure ??= cause
        provider.further(cause)
        return
      }
      inARow = 0
      firstFailure = undefined
      // A probe that succeeds closes the circuit right after this.
      if (circuit === 'closed') provider.end()
    },
    breaker: state => {
      circuit = state
      if (state === 'open')
        provider.begin(firstFailure ?? { code: 'provider_circuit_open', reason: 'the circuit was opened' })
      if (state === 'closed') provider.end()
    },
    loadFailed: ({ id, error, usableUntil }) => {
      const cause = causeOf(error)
      if (!provider.isOn() && cause.code !== limited) {
        inARow += 1
        if (inARow >= failuresInARow) provider.begin(firstFailure ?? cause)
      }
      provider.failed(cause.code, { cell: id, usableUntil })
      return provider.isOn()
    },
    storeAway: (part, reason) => {
      const isFirst = !away.has(part)
      away.add(part)
      store.begin({ code: storeCode, reason })
      if (isFirst) store.failed(part)
      // The first reason of another part says only that it has no connection.
      if (!isFirst || part === 'redis') store.further({ code: storeCode, reason })
    },
    storeBack: (part, fields = {}) => {
      away.delete(part)
      ended = { ...ended, ...fields }
      if (away.size > 0) return
      store.end(ended)
      ended = {}
    },
    sharedTierFailed: step => store.failed(step),
    answered500: error => {
      errors += 1
      if (!(error instanceof AbohawaError)) return false
      const { code } = error
      if (code === storeCode) store.failed(code)
      return code === storeCode
        ? store.isOn()
        : provider.isOn() && (code.startsWith('provider_') || ofWaiting.has(code))
    },
    open: () =>
      Object.entries({ provider, store }).flatMap(([outage, { state }]) => {
        const on = state()
        return on ? [{ outage: outage as OutageName, ...on }] : []
      }),
    close: () => clearInterval(ticking),
  }
}

const causeOf = (error: unknown): Cause => ({
  code: error instanceof AbohawaError ? error.code : 'internal',
  reason: messageOf(error),
})
