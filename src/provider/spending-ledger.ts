// What one account has spent at the provider, as this gateway knows it: what the store had last, and what the store lacks. Reserves and
// settles in the store that all gateways of the account share; while the store is away, a gateway spends its part of what is set
// aside. Every step reports to the store all that matters, so that nothing stays lost. Longer than 300 lines, because all steps
// share the counts.

import { minuteMs, utcDayMs } from '../common/calendar.ts'
import { type Clock, clockToleranceMs } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import { roomOf } from '../stores/fair-share.ts'
import type { Closure, SpendingClaim, SpendingReply, SpendingStore, Spent } from '../stores/spending-store.ts'
import type { LimitedWindow } from './spending-windows.ts'

/** Called once when the store is away, with the reason, and once when it is back. */
export type BudgetObserver = {
  storeAway(reason: string): void
  storeBack(): void
  /** An operator reopened the budget. @param closedUntil the closure here that this ended; null when it was open */
  reopened(closedUntil: number | null): void
}

export type LedgerParts = {
  readonly store: SpendingStore
  readonly clock: Clock
  readonly observer: BudgetObserver
}

/** `full`: the windows that have no room for another unit. */
type Granted = Pick<SpendingReply, 'granted' | 'claims'> & {
  readonly full: readonly LimitedWindow[]
  /** Granted without the store. */
  readonly isLocal: boolean
}

/** What a window was charged too much (below 0) or too little, with the parts of it that are the consumers'. */
type Correction = {
  readonly window: LimitedWindow
  readonly by: number
  readonly consumers?: readonly { readonly consumer: string; readonly by: number }[]
}

type Count = {
  window: LimitedWindow
  stored: Spent
  /** What the store lacks; and of that, what is being reported. It stays spent until the store has it. */
  pending: Spent
  reporting: Spent
  /** Granted without the store, also what the store has learned since: a second outage in a window grants no second part. */
  granted: number
  /** Of that, the part of each consumer. */
  readonly consumers: Map<string, number>
}

const nothing: Spent = { charged: 0, refunded: 0 }
const plus = (one: Spent, other: Spent, sign: 1 | -1 = 1): Spent => ({
  charged: one.charged + sign * other.charged,
  refunded: one.refunded + sign * other.refunded,
})
const latest = (one: Spent, other: Spent = nothing): Spent => ({
  charged: Math.max(one.charged, other.charged),
  refunded: Math.max(one.refunded, other.refunded),
})
const isNothing = ({ charged, refunded }: Spent): boolean => charged === 0 && refunded === 0
const netOf = ({ charged, refunded }: Spent): number => Math.max(0, charged - refunded)

/**
 * No method rejects when the store is away. Amounts are whole thousandths of a weight.
 * @param account its short name, and how many gateways share it; undefined while that is not known
 */
export const createLedger = (
  account: { readonly provider: string; readonly instances: () => number | undefined },
  { store, clock, observer }: LedgerParts,
) => {
  const counts = new Map<string, Count>()
  let closure: Closure | null = null
  // The last reopening as the store returned it; undefined before its first reply.
  let reopenedAt: number | undefined
  let reopenedHereAt: number | null = null
  // Those that went out of sight, one by one or with the store, may still spend their parts: the most of a day count.
  let sharers = { most: 1, at: 0 }
  let isAway = false
  let wasSizeKnown = false
  let backAt = 0
  let reconciling: Promise<void> | undefined
  const underWay = new Set<Promise<unknown>>()
  let hasEnded = false

  const tracked =
    <Given extends unknown[], Value>(step: (...given: Given) => Promise<Value>) =>
    (...given: Given): Promise<Value> => {
      const ended = step(...given).finally(() => underWay.delete(ended))
      underWay.add(ended)
      return ended
    }
  const countOf = (window: LimitedWindow): Count => {
    const found = counts.getOrInsertComputed(window.name, () => ({
      window,
      stored: nothing,
      pending: nothing,
      reporting: nothing,
      granted: 0,
      consumers: new Map(),
    }))
    found.window = window
    return found
  }
  const add = (count: Count, by: number): void => {
    count.pending = plus(count.pending, { charged: Math.max(0, by), refunded: Math.max(0, -by) })
  }
  const expire = (): void => {
    const now = clock.now()
    for (const [name, { window }] of counts) if (window.keepUntil <= now) counts.delete(name)
  }
  const used = ({ name }: LimitedWindow): number => {
    const found = counts.get(name)
    return found ? netOf(plus(found.stored, found.pending)) : 0
  }
  const hasPending = (): boolean => isAway || counts.values().some(({ pending }) => !isNothing(pending))
  /** By the clock of who closed: when this one was set back behind that instant, its end means nothing any more. */
  const closureNow = (): Closure | null => {
    const now = clock.now()
    return closure && closure.until > now && closure.at <= now + clockToleranceMs ? closure : null
  }
  const noteClosure = (stored: Pick<SpendingReply, 'closure' | 'reopenedAt'>): void => {
    // A reply that a later reopening has overtaken.
    if (reopenedAt !== undefined && stored.reopenedAt < reopenedAt) return
    if (reopenedAt !== undefined && stored.reopenedAt > reopenedAt) {
      const before = closureNow()
      closure = null
      reopenedHereAt = clock.now()
      observer.reopened(before?.until ?? null)
    }
    reopenedAt = stored.reopenedAt
    if (stored.closure && stored.closure.until > (closureNow()?.until ?? 0)) closure = stored.closure
  }
  /** Undefined while that is not known. */
  const sharersNow = (): number | undefined => {
    const [known, now] = [account.instances(), clock.now()]
    if (known === undefined) return undefined
    if (known >= sharers.most || now - sharers.at > utcDayMs) sharers = { most: known, at: now }
    return sharers.most
  }

  /** @throws StoreError, after which the store is away */
  const spend = async (
    windows: readonly LimitedWindow[],
    {
      wanted = 0,
      claims = [],
      unit = 1,
      corrections = [],
      reports = true,
    }: {
      wanted?: number
      claims?: readonly SpendingClaim[]
      unit?: number
      corrections?: readonly Correction[]
      /** Whether the store gets what it lacks. */
      reports?: boolean
    } = {},
  ): Promise<SpendingReply> => {
    expire()
    sharersNow()
    const now = clock.now()
    const wantedOf = windows.map(countOf)
    const matters = (count: Count): boolean =>
      !wantedOf.includes(count) && (count.window.endsAt > now - minuteMs || !isNothing(count.pending))
    const reported = [...wantedOf, ...counts.values().filter(matters)].map(count => {
      const added = reports ? plus(count.pending, count.reporting, -1) : nothing
      count.reporting = plus(count.reporting, added)
      return { count, added }
    })
    const positions = new Map(reported.map(({ count }, i) => [count.window.name, i]))
    try {
      const reply = await store.spend({
        provider: account.provider,
        now,
        wanted,
        claims,
        unit,
        windows: reported.map(({ count: { window, stored }, added }, i) => ({
          name: window.name,
          limit: i < windows.length ? window.limit : null,
          keepUntil: window.keepUntil,
          shares: window.shares,
          known: stored,
          added,
        })),
        returns: corrections.flatMap(({ window, consumers = [] }) => {
          const position = positions.get(window.name)
          return position === undefined
            ? []
            : consumers.map(({ consumer, by }) => ({ consumer, window: position, by: -by }))
        }),
        closure: closureNow(),
        reopenedAt: reopenedAt ?? null,
      })
      for (const [i, { count, added }] of reported.entries()) {
        count.reporting = plus(count.reporting, added, -1)
        count.pending = plus(count.pending, added, -1)
        count.stored = latest(count.stored, reply.spent[i])
      }
      noteClosure(reply)
      return reply
    } catch (cause) {
      for (const { count, added } of reported) {
        count.reporting = plus(count.reporting, added, -1)
        // The store may have it: what was given back is dropped, so that none counts twice.
        count.pending = plus(count.pending, { charged: 0, refunded: added.refunded }, -1)
      }
      if (!isAway) {
        isAway = true
        wasSizeKnown = sharersNow() !== undefined
        if (!hasEnded) observer.storeAway(messageOf(cause))
      }
      throw cause
    }
  }
  const reconcileOnce = async (windows: readonly LimitedWindow[]): Promise<void> => {
    try {
      // A store that hangs may apply every try later: nothing is reported to it before it answers.
      if (isAway) await spend(windows, { reports: false })
      await spend(windows)
    } catch {
      return
    }
    if (!isAway) return
    isAway = false
    backAt = clock.now()
    observer.storeBack()
  }
  // One at a time, so that an outage is tried once.
  const reconcile = (windows: readonly LimitedWindow[]): Promise<void> => {
    reconciling ??= reconcileOnce(windows).finally(() => {
      reconciling = undefined
    })
    return reconciling
  }

  /** Grants what fits into this gateway's part of what is set aside; all that is left where nobody else shares the account. */
  const reserveLocally = (
    windows: readonly LimitedWindow[],
    wanted: number,
    claims: readonly SpendingClaim[],
    unit: number,
  ): Granted => {
    const sharing = sharersNow()
    // Without the number of sharers nobody knows its part, and what is learnt of them later may be too few.
    if (sharing === undefined || !wasSizeKnown || closureNow())
      return { granted: 0, full: [], claims: claims.map(() => ({ granted: 0, heldIn: [] })), isLocal: true }
    const parts = windows.map(window => {
      const { aside } = window
      const count = countOf(window)
      return {
        window,
        count,
        spent: (): number => (aside === undefined ? used(window) : count.granted),
        room: (): number => {
          const left = window.limit + (aside ?? 0) - used(window)
          return aside === undefined ? left : Math.min(left, aside / sharing - count.granted)
        },
      }
    })
    const grant = (amount: number, rooms: readonly number[], consumer?: string): number => {
      const part = Math.max(0, Math.floor(Math.min(amount, ...rooms) / unit)) * unit
      for (const { count } of parts) {
        add(count, part)
        count.granted += part
        if (consumer !== undefined) count.consumers.set(consumer, (count.consumers.get(consumer) ?? 0) + part)
      }
      return part
    }
    const forNobody = grant(
      wanted,
      parts.map(({ room }) => room()),
    )
    for (const { consumer } of claims) for (const { count } of parts) count.consumers.getOrInsert(consumer, 0)
    const granted = claims.map(({ consumer, wanted: amount }) => {
      const rooms = parts.map(({ window: { limit: whole, shares }, count, spent, room }) => {
        // Shares are of what this gateway may spend.
        const limit = room() + spent()
        const scale = limit / whole
        const scaled = shares && {
          open: shares.open * scale,
          share: shares.share * scale,
          paced: shares.paced * scale,
        }
        const usedBy = count.consumers.get(consumer) ?? 0
        return roomOf({ limit, used: spent(), usedBy, isAlone: count.consumers.size === 1 }, scaled, unit)
      })
      const part = grant(amount, rooms, consumer)
      const heldIn = parts.flatMap(({ room }, i) =>
        (rooms[i] ?? 0) - part < unit && room() >= unit ? [i] : [],
      )
      return { granted: part, heldIn }
    })
    return {
      granted: granted.reduce((sum, claim) => sum + claim.granted, forNobody),
      full: parts.filter(({ room }) => room() < unit).map(({ window }) => window),
      claims: granted,
      isLocal: true,
    }
  }

  return {
    /** @param wanted for no consumer in particular; after that the claims, in their order */
    reserve: tracked(
      async (
        windows: readonly LimitedWindow[],
        wanted: number,
        claims: readonly SpendingClaim[],
        unit: number,
      ): Promise<Granted> => {
        if (isAway) await reconcile(windows)
        if (isAway) return reserveLocally(windows, wanted, claims, unit)
        try {
          const { granted, claims: parts, spent } = await spend(windows, { wanted, claims, unit })
          const full = windows.filter(({ limit }, i) => limit - netOf(spent[i] ?? nothing) < unit)
          return { granted, full, claims: parts, isLocal: false }
        } catch {
          return reserveLocally(windows, wanted, claims, unit)
        }
      },
    ),
    /** @param isLocal whether the grant that is corrected was made without the store */
    settle: tracked(async (corrections: readonly Correction[], isLocal: boolean) => {
      for (const { window, by } of corrections) {
        const count = countOf(window)
        add(count, by)
        if (isLocal) count.granted += by
      }
      if (!isAway) await spend([], { corrections }).catch(() => {})
    }),
    /**
     * No request before this instant: takes effect here at once, and for the others when the promise resolves. Has no effect
     * when an operator reopened the budget and this process does not know it yet. @param reason for operators
     */
    close: tracked(async (until: number, reason: string) => {
      if (until > (closureNow()?.until ?? 0)) closure = { until, at: clock.now(), reason }
      await spend([]).catch(() => {})
    }),
    /** Reports to the store what it lacks, and reads what it has for the windows. */
    reconcile: tracked(reconcile),
    /** The count of a window as last read from the store, plus what was spent here since. */
    used,
    /** The closure in force; null when open. */
    closure: closureNow,
    /** When this process noticed the last reopening by an operator; null without one. */
    reopenedHereAt: () => reopenedHereAt,
    /** False while the store is away. */
    shared: () => !isAway,
    /** When the store was back last after it had been away, ms since the epoch; 0 if never. */
    backAt: () => backAt,
    /** Whether the store lacks something of what was spent here. */
    hasPending,
    /** Whether the store lacks nothing, and nothing was granted without it in windows that still matter. */
    isSettled: () => {
      expire()
      return !hasPending() && !counts.values().some(({ granted }) => granted !== 0)
    },
    /** Waits for the steps in the store that are under way. Failures of later ones are no outage: the store is being closed. */
    end: async () => {
      await Promise.all(underWay)
      hasEnded = true
    },
  }
}
