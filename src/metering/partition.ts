// A partition of the counts: those that the store counts in one step. They are taken by group commit: while one trip to
// the store is out, whoever asks joins the next one, and what a trip took is dealt out in the order of asking. While the
// store is away each instance deals its share by itself and says afterwards what it dealt; until all have said so, it
// takes no more than its share.

import { setTimeout as pause } from 'node:timers/promises'
import type { LocalDay } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import { OvertakenError, StoreError, type Taken, type UsageStore } from '../stores/store.ts'
import { shareOf, stepOf } from './share.ts'

/** What is left of the day's units after one was asked for. */
export type Deal = { readonly allowed: boolean; readonly remaining: number }

export type MeteredDay = { readonly day: LocalDay; readonly endsAt: number; readonly keepUntil: number }

/** A day's count of one key, as this instance knows it. */
export type Count = {
  readonly keyId: string
  readonly metered: MeteredDay
  limit: number
  /** Units given to requests here. */
  dealt: number
  /** How many of those the store has counted, as far as is known. */
  confirmed: number
  /** The store's count when last seen or heard of, and what was dealt here until then. */
  view: View | undefined
}

type View = { used: number; dealt: number }

export type MeterState = 'counting' | 'away' | 'settling'

export type PartitionParts = {
  /** A name of this instance, of this life. */
  readonly instance: string
  readonly store: Pick<UsageStore, 'take' | 'time'>
  /** `share`: go on with this instance's share of what was left; `refuse`: nobody gets anything. */
  readonly whenStoreIsDown: 'share' | 'refuse'
  /** How many instances may deal units; undefined while that is not known. */
  readonly instances: () => number | undefined
  readonly dayOf: (instant: number) => LocalDay
  /** The latest day of which this instance has counted anything; empty before the first. */
  readonly newestDay: () => LocalDay
  /** The store's clock. */
  readonly clock: Clock
  readonly observer: {
    stopped(reason: string): void
    /** @param merged units that were dealt alone and are counted now */
    resumed(merged: number): void
    counted(count: Count, result: Taken): void
  }
}

export type Partition = {
  readonly counts: Set<Count>
  state(): MeterState
  /** One unit. @throws StoreError when the store is away and this instance has nothing left to deal */
  ask(count: Count, limit: number): Promise<Deal>
  /** Forgets a count, unless a request waits for it or the store may not know all that was dealt of it. */
  forget(count: Count): boolean
  /** The store's count was told by another instance. */
  heard(count: Count, used: number): void
  /** What others tell is not heard for now, or was not until now. */
  lost(): void
  /** Looks for a store that is away, and says again what was dealt meanwhile. */
  look(): Promise<void>
  /** Says it whatever the state is; never rejects. */
  tell(): Promise<void>
}

// Long enough for every instance to have noticed that the store is back and to have said what it dealt.
export const settleForMs = 2_000
const mostPerTrip = 500
const probeForMs = 50
const mostTries = 3

type Asked = { readonly count: Count; readonly units: number }

type Waiter = { resolve(deal: Deal): void; reject(error: unknown): void }

export const createPartition = ({
  instance,
  store,
  whenStoreIsDown,
  instances,
  dayOf,
  newestDay,
  clock,
  observer,
}: PartitionParts): Partition => {
  const counts = new Set<Count>()
  let waiting = new Map<Count, Waiter[]>()
  // Asked of the store now.
  let out = new Map<Count, Waiter[]>()
  let state: MeterState = 'counting'
  let sequence = 0
  let departing = false
  let looking: Promise<void> | undefined
  let lastDayBefore: LocalDay = ''
  let settledAt = 0
  // Dealt alone, and counted by the store since it went away.
  let merged = 0

  // One trip at a time, in the order in which they were wanted.
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = (step: () => Promise<void>): Promise<void> => {
    const run = last.then(step)
    last = run.catch(() => {})
    return run
  }

  const trip = async (asked: readonly Asked[]): Promise<Taken[]> => {
    sequence += 1
    const dealt = asked.map(({ count }) => count.dealt)
    let results: Taken[]
    try {
      results = await store.take({
        instance,
        sequence,
        takes: asked.map(({ count: { keyId, metered, limit, dealt, confirmed }, units }) => ({
          keyId,
          day: metered.day,
          units,
          limit,
          dealt,
          confirmed,
          step: stepOf(limit),
          endsAt: metered.endsAt,
          keepUntil: metered.keepUntil,
        })),
      })
    } catch (error) {
      // Trips go one after the other, so none that is still waited for was overtaken: somebody else wrote that record.
      // The next trip is counted after it.
      if (error instanceof OvertakenError) sequence = Math.max(sequence, error.by)
      throw error
    }
    results.forEach((result, i) => {
      const count = asked[i]?.count
      if (!count) return
      // While all count together nothing is dealt before it is counted.
      merged += (dealt[i] ?? 0) - count.confirmed
      count.dealt += result.taken
      count.confirmed = (dealt[i] ?? 0) + result.taken
      observer.counted(count, result)
    })
    return results
  }

  // A day that began while the store was away began with nothing used, unless it was counted before a clock jumped back.
  const viewOf = (count: Count): View | undefined =>
    count.view ??
    (state !== 'counting' && lastDayBefore < count.metered.day ? { used: 0, dealt: 0 } : undefined)

  /** What this instance may still deal of a count while not all count together. */
  const leftOfShare = (count: Count): number => {
    const size = instances()
    const view = viewOf(count)
    if (whenStoreIsDown === 'refuse' || size === undefined || !view) return 0
    return Math.max(0, shareOf(count.limit, view.used, size) - (count.dealt - view.dealt))
  }

  const refuse = (count: Count, { resolve, reject }: Waiter): void => {
    const view = viewOf(count)
    if (view && view.used >= count.limit) resolve({ allowed: false, remaining: 0 })
    else reject(new StoreError('the store of the counts is away, and no share of this one is left here'))
  }

  const dealAlone = (count: Count, waiter: Waiter): void => {
    const left = leftOfShare(count)
    if (left === 0) {
      refuse(count, waiter)
      return
    }
    count.view = viewOf(count)
    count.dealt += 1
    waiter.resolve({ allowed: true, remaining: left - 1 })
  }

  const stopCounting = (reason: string): void => {
    if (state !== 'counting') return
    const [today, newest] = [dayOf(clock.now()), newestDay()]
    lastDayBefore = today < newest ? newest : today
    observer.stopped(reason)
  }
  const goAway = (error: unknown): void => {
    stopCounting(messageOf(error))
    state = 'away'
  }

  const dealOut = ({ count, units }: Asked, waiters: readonly Waiter[], { taken, used }: Taken): void => {
    if (state === 'counting') count.view = { used, dealt: count.dealt }
    waiters.forEach((waiter, i) => {
      if (i < taken) {
        const remaining = count.limit - (used - taken) - i - 1
        waiter.resolve({ allowed: true, remaining })
      } else if (i < units || used >= count.limit)
        waiter.resolve({ allowed: false, remaining: Math.max(0, count.limit - used) })
      else refuse(count, waiter)
    })
  }

  // Dealing alone is for a store that is away for everyone: who has only lost an answer, or was held up itself and
  // takes answers that came in time for ones that never came, asks again.
  const insist = async (asked: readonly Asked[]): Promise<Taken[]> => {
    for (let tries = 1; ; tries++) {
      try {
        return await trip(asked)
      } catch (error) {
        if (tries === mostTries || !(await isThere())) throw error
      }
    }
  }

  // While others may deal alone, units are taken by this instance's share of what was left, so a count that it knows
  // nothing of is asked for first. What others have not told yet is within shares of what was left before: together
  // they are never more than that.
  const learn = async (part: readonly [Count, readonly Waiter[]][]): Promise<void> => {
    if (state !== 'settling') return
    const unknown = part.flatMap(([count]) => (viewOf(count) ? [] : [{ count, units: 0 }]))
    if (unknown.length === 0) return
    const results = await insist(unknown)
    results.forEach(({ used }, at) => {
      const count = unknown[at]?.count
      if (count) count.view = { used, dealt: count.dealt }
    })
  }

  const depart = async (): Promise<void> => {
    out = waiting
    waiting = new Map()
    const group = [...out]
    for (let i = 0; i < group.length; i += mostPerTrip) {
      const part = group.slice(i, i + mostPerTrip)
      try {
        if (state === 'away') throw new StoreError('away')
        await learn(part)
        const asked = part.map(([count, waiters]) => ({
          count,
          units: state === 'counting' ? waiters.length : Math.min(waiters.length, leftOfShare(count)),
        }))
        const results = await insist(asked)
        results.forEach((result, at) => {
          const one = asked[at]
          if (one) dealOut(one, part[at]?.[1] ?? [], result)
        })
      } catch (error) {
        if (state !== 'away') goAway(error)
        for (const [count, waiters] of part) for (const waiter of waiters) dealAlone(count, waiter)
      }
    }
    out = new Map()
    // What this turn brings goes along: half as many trips again would cost more than they save in waiting.
    if (waiting.size > 0) setImmediate(() => void inTurn(depart))
    else departing = false
  }

  // Says what was dealt of every count here, and learns what all have used.
  const tellAll = async (): Promise<void> => {
    const all = [...counts]
    // Also with nothing to say: that the store answers is to be found out.
    for (let i = 0; i === 0 || i < all.length; i += mostPerTrip) {
      const part = all.slice(i, i + mostPerTrip)
      const results = await trip(part.map(count => ({ count, units: 0 })))
      if (state === 'away') continue
      results.forEach(({ used }, at) => {
        const count = part[at]
        if (count) count.view = { used, dealt: count.confirmed }
      })
    }
  }

  const settle = (): void => {
    state = 'settling'
    settledAt = clock.now() + settleForMs
  }
  const resume = (): void => {
    state = 'counting'
    observer.resumed(merged)
    merged = 0
  }
  const lookOnce = async (): Promise<void> => {
    if (state === 'counting' || (state === 'settling' && clock.now() < settledAt)) return
    try {
      await tellAll()
      // Where nobody deals alone there is nothing to wait for.
      if (state === 'settling' || whenStoreIsDown === 'refuse') resume()
      else settle()
    } catch (error) {
      goAway(error)
    }
  }

  // Whether the store answers at all, and soon.
  const isThere = async (): Promise<boolean> => {
    const patience = new AbortController()
    const answered = store.time().then(
      () => true,
      () => false,
    )
    const there = await Promise.race([answered, pause(probeForMs, false, { signal: patience.signal })])
    patience.abort()
    return there
  }

  return {
    counts,
    state: () => state,
    ask: (count, limit) =>
      new Promise((resolve, reject) => {
        count.limit = limit
        const waiter = { resolve, reject }
        if (state === 'away') {
          dealAlone(count, waiter)
          return
        }
        const group = waiting.get(count)
        if (group) group.push(waiter)
        else waiting.set(count, [waiter])
        if (departing) return
        departing = true
        // All that this turn of the event loop brings goes together.
        setImmediate(() => void inTurn(depart))
      }),
    forget: count => {
      if (state !== 'counting' || count.dealt !== count.confirmed || waiting.has(count) || out.has(count))
        return false
      return counts.delete(count)
    },
    heard: (count, used) => {
      if (state === 'counting' && count.view && used > count.view.used) count.view.used = used
    },
    lost: () => {
      if (state === 'away' || whenStoreIsDown === 'refuse') return
      // Others may be dealing alone.
      stopCounting('news of the store are not heard')
      settle()
    },
    tell: () => inTurn(tellAll).catch(() => {}),
    look: () => {
      looking ??= inTurn(lookOnce).finally(() => {
        looking = undefined
      })
      return looking
    },
  }
}
