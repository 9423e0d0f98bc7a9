// When an outage of the provider or the store begins and ends. An outage of the provider is what consumers notice: it begins with the
// first response that failed, or was stale and could not be refreshed, and ends when any upstream loads a cell. An outage of the store
// begins when the first part can't reach it. Failures that belong to an outage get no log line of their own.

import type { LoadFailure } from '../cache/cache-parts.ts'
import { minuteMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { codeOf, messageOf } from '../common/errors.ts'
import { cellCodes } from '../provider/errors.ts'
import type { Next } from '../provider/failover.ts'
import type { Log } from './log.ts'
import { type Cause, createOutage, type Noticed, type Outage } from './outage.ts'

/** A part that can't do without the store: the connection, the counts of quotas, the budget for the provider. */
type StorePart = 'redis' | 'quota' | 'budget'

type OutageName = 'provider' | 'store'

export type Outages = ReturnType<typeof openOutages>

const nextSteps = {
  provider: 'abohawa status says how long the cache lasts; docs/runbook.md#abohawaproviderdown',
  store: 'fix the store and leave the gateways running; docs/runbook.md#abohawastoredown',
}

const levels = {
  started: 'error',
  'has another cause': 'error',
  continues: 'warn',
  ended: 'info',
} as const

// Of loads that consumers met, without a success in between.
const failuresInARow = 3
const tickEveryMs = 1_000
// Failures that are further apart belong to different outages. Without demand nothing is loaded that could end one.
const quietForMs = 15 * minuteMs
const limitedCode = 'provider_limited'
// What this gateway could not send says nothing of the provider.
const notSentCode = 'provider_not_sent'
const shareCode = 'key_share_used_up'
const storeCode = 'store_unavailable'
// Failures of a request that waits for the provider, besides the codes of the provider.
const waitingCodes: ReadonlySet<string> = new Set(['waited_too_long', 'timeline_exhausted'])
/** Whether no upstream would load. A used-up share is a matter of one key, unless what is left is a reserve. */
const isWithoutRoom = (code: string, room: OutageParts['room']): boolean =>
  code === shareCode ? room() !== 'any' : !cellCodes.has(code) && room() === 'none'
const isOfWeather = (code: string): boolean =>
  code !== notSentCode && (code.startsWith('provider_') || waitingCodes.has(code))

/** What failed with no quiet time in between; the cause is the first one, times are ms since the epoch. */
type Streak = { readonly cause: Cause; readonly firstAt: number; readonly lastAt: number }

const isQuiet = (since: number, now: number): boolean => Math.abs(now - since) >= quietForMs
const extended = (streak: Streak | undefined, cause: Cause, now: number): Streak =>
  streak && !isQuiet(streak.lastAt, now) ? { ...streak, lastAt: now } : { cause, firstAt: now, lastAt: now }

export type OutageParts = {
  /** How many answers were stale since the start. */
  readonly staleReads: () => number
  /** What is left of the budget of the upstream that would load next; `none` where none would. */
  readonly room: () => Next<unknown>['room']
  /** Called when an outage of the provider begins or ends. */
  readonly onProvider?: () => void
}

const outagesOf =
  (log: Log, clock: Clock, noticed: () => Noticed, onProvider: () => void) =>
  (outage: OutageName): Outage =>
    createOutage({
      clock,
      noticed,
      // The provider's sentences differ from one request to the next.
      kindOf: ({ code, reason }) => (outage === 'provider' ? code : reason),
      write: (phase, fields) =>
        log[levels[phase]](
          { outage, ...fields, ...(levels[phase] === 'error' ? { next: nextSteps[outage] } : {}) },
          `${outage} outage ${phase}`,
        ),
      changed: outage === 'provider' ? onProvider : () => {},
    })

export const openOutages = (
  log: Log,
  clock: Clock,
  { staleReads, room, onProvider = () => {} }: OutageParts,
) => {
  let errors = 0
  const outageOf = outagesOf(log, clock, () => ({ stale: staleReads(), errors }), onProvider)
  const provider = outageOf('provider')
  const store = outageOf('store')
  /** A load each; of a cell that is refused again and again, only the first. */
  const inARow = new Set<string | symbol>()
  // Since the last success: requests that failed, and what consumers met.
  let failures: Streak | undefined
  let shortfalls: Streak | undefined
  const away = new Set<StorePart>()
  let ended: Readonly<Record<string, unknown>> = {}

  const noteShortfall = (cause: Cause): void => {
    if (shortfalls && isQuiet(shortfalls.lastAt, clock.now())) inARow.clear()
    shortfalls = extended(shortfalls, cause, clock.now())
  }
  const begin = (): void => {
    if (shortfalls) provider.begin((failures ?? shortfalls).cause, shortfalls.firstAt)
  }
  const endProvider = (): void => {
    inARow.clear()
    failures = undefined
    shortfalls = undefined
    provider.end()
  }
  // Nobody has met it for long, and it would be over for whoever asks.
  const endIfQuiet = (): void => {
    const on = provider.state()
    if (on && isQuiet(on.failedAt, clock.now()) && room() !== 'none') endProvider()
  }
  const ticking = setInterval(() => {
    endIfQuiet()
    provider.tick()
    store.tick()
  }, tickEveryMs).unref()

  return {
    /** A request for weather to any upstream brought none. */
    requestFailed: (cause: Cause): void => {
      if (cause.code === limitedCode || cause.code === notSentCode) return
      failures = extended(failures, cause, clock.now())
      provider.further(cause)
    },
    /** A cell was loaded from any upstream. A probe is no load, because its weather is not kept. */
    loaded: endProvider,
    /** A read failed, or had something stale that is not being refreshed, because of an earlier failure. */
    shortfall: (met: 'failed' | 'stale', error: unknown): void => {
      const cause = causeOf(error)
      if (!isOfWeather(cause.code) && cause.code !== shareCode) return
      // A budget that is short of room keeps what is left for reads that fail without it.
      if (met === 'stale' && cause.code === limitedCode) return
      if (provider.isOn()) provider.met()
      else if (!cellCodes.has(cause.code)) {
        noteShortfall(cause)
        if (isWithoutRoom(cause.code, room)) begin()
      }
      // A used-up limit is a cause once answers fail for want of it.
      if (cause.code === limitedCode) provider.further(cause)
    },
    /** True when the failure belongs to an outage, which counts it. */
    loadFailed: ({ id, error, purpose, usableUntil }: LoadFailure): boolean => {
      const cause = causeOf(error)
      if (cause.code === notSentCode) return false
      if (!provider.isOn() && purpose !== 'refresh_ahead' && cause.code !== limitedCode) {
        noteShortfall(cause)
        inARow.add(cellCodes.has(cause.code) ? id : Symbol())
        if (inARow.size >= failuresInARow || isWithoutRoom(cause.code, room)) begin()
      }
      provider.failed(cause.code, { cell: id, usableUntil })
      return provider.isOn()
    },
    storeAway: (part: StorePart, reason: string): void => {
      const isFirst = !away.has(part)
      away.add(part)
      store.begin({ code: storeCode, reason })
      if (isFirst) store.failed(part)
      // The first reason of another part says only that it has no connection.
      if (!isFirst || part === 'redis') store.further({ code: storeCode, reason })
    },
    /** @param fields of the line at the end of the outage */
    storeBack: (part: StorePart, fields: Readonly<Record<string, unknown>> = {}): void => {
      away.delete(part)
      ended = { ...ended, ...fields }
      if (away.size > 0) return
      store.end(ended)
      ended = {}
    },
    sharedTierFailed: (step: string): void => store.failed(step),
    /** A request ended in 500. True when the failure belongs to an outage, whose lines have the cause. */
    answered500: (error: unknown): boolean => {
      errors += 1
      const { code } = causeOf(error)
      if (code === storeCode) store.failed(code)
      // No load failed with it.
      if (waitingCodes.has(code)) provider.failed(code)
      return code === storeCode ? store.isOn() : provider.isOn() && isOfWeather(code)
    },
    /** Those that are on. */
    open: () => {
      endIfQuiet()
      return Object.entries({ provider, store }).flatMap(([outage, { state }]) => {
        const on = state()
        return on ? [{ outage: outage as OutageName, ...on }] : []
      })
    },
    close: () => clearInterval(ticking),
  }
}

const causeOf = (error: unknown): Cause => ({ code: codeOf(error), reason: messageOf(error) })
