// What a gateway may spend while the store is away: its part of each window's outage reserve, or all that is left where nobody else
// shares the account. Each consumer has a share of that part.

import { utcDayMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { roomOf, type ShareBounds } from '../stores/fair-share.ts'
import type { SpendingClaim, SpendingReply } from '../stores/spending-store.ts'
import type { LimitedWindow } from './spending-windows.ts'
import type { Count, WindowCounts } from './window-counts.ts'

export type LocalGrant = Pick<SpendingReply, 'granted' | 'claims'> & {
  /** The windows that have no room for another unit. */
  readonly full: readonly LimitedWindow[]
}

export type Room = { readonly hasRoom: boolean; readonly full: readonly LimitedWindow[] }

/** A window's part of this gateway. */
type Part = {
  readonly window: LimitedWindow
  readonly count: Count
  spent(): number
  room(): number
}

export class OutageReserve {
  readonly #known: () => number | undefined
  readonly #clock: Clock
  // Gateways that went out of sight, one by one or with the store, may still spend their parts: the most of a day count.
  #most = { instances: 1, at: 0 }
  #isSizeKnown = false

  /** @param instances how many gateways share the account; undefined while that is not known */
  constructor(instances: () => number | undefined, clock: Clock) {
    this.#known = instances
    this.#clock = clock
  }

  /** How many gateways the reserve is for; undefined while that is not known. To be called at short intervals. */
  instances(): number | undefined {
    const [known, now] = [this.#known(), this.#clock.now()]
    if (known === undefined) return undefined
    if (known >= this.#most.instances || now - this.#most.at > utcDayMs)
      this.#most = { instances: known, at: now }
    return this.#most.instances
  }

  /** The store is away from now on. */
  begin(): void {
    this.#isSizeKnown = this.instances() !== undefined
  }

  reserve(counts: WindowCounts, request: ReserveRequest, isClosed: boolean): LocalGrant {
    const instances = this.#sharers()
    if (instances !== undefined && !isClosed) return reserveLocally(counts, instances, request)
    return { granted: 0, full: [], claims: request.claims.map(() => ({ granted: 0, heldIn: [] })) }
  }

  /** Whether one more unit has room, and the windows that have none. */
  room(counts: WindowCounts, windows: readonly LimitedWindow[], unit: number): Room {
    // Without limits there are no parts.
    if (windows.length === 0) return { hasRoom: true, full: [] }
    const instances = this.#sharers()
    if (instances === undefined) return { hasRoom: false, full: [] }
    const full = windows.filter(window => partOf(counts, window, instances).room() < unit)
    return { hasRoom: full.length === 0, full }
  }

  /** Without their number nobody knows the part of this one, and what is learnt of them later may be too few. */
  #sharers(): number | undefined {
    const instances = this.instances()
    return this.#isSizeKnown ? instances : undefined
  }
}

const reserveLocally = (
  counts: WindowCounts,
  instances: number,
  { windows, wanted, claims, unit }: ReserveRequest,
): LocalGrant => {
  const parts = windows.map(window => partOf(counts, window, instances))
  const grant = (amount: number, rooms: readonly number[], consumer?: string): number => {
    const granted = Math.max(0, Math.floor(Math.min(amount, ...rooms) / unit)) * unit
    for (const { count } of parts) {
      counts.add(count, granted)
      counts.addGranted(count, granted, consumer === undefined ? [] : [{ consumer, by: granted }])
    }
    return granted
  }
  const unclaimed = grant(
    wanted,
    parts.map(({ room }) => room()),
  )
  for (const { consumer } of claims) for (const { count } of parts) count.consumers.getOrInsert(consumer, 0)
  const granted = claims.map(({ consumer, wanted: amount }) => {
    const rooms = parts.map(part => roomOfConsumer(part, consumer, unit))
    const ofClaim = grant(amount, rooms, consumer)
    const heldIn = parts.flatMap(({ room }, i) =>
      (rooms[i] ?? 0) - ofClaim < unit && room() >= unit ? [i] : [],
    )
    return { granted: ofClaim, heldIn }
  })
  return {
    granted: granted.reduce((sum, claim) => sum + claim.granted, unclaimed),
    full: parts.filter(({ room }) => room() < unit).map(({ window }) => window),
    claims: granted,
  }
}

export type ReserveRequest = {
  readonly windows: readonly LimitedWindow[]
  /** For no consumer in particular; after that the claims, in their order. */
  readonly wanted: number
  readonly claims: readonly SpendingClaim[]
  readonly unit: number
}

const partOf = (counts: WindowCounts, window: LimitedWindow, instances: number): Part => {
  const { outageReserve } = window
  const count = counts.of(window)
  return {
    window,
    count,
    spent: () => (outageReserve === undefined ? counts.used(window) : count.granted),
    room: () => {
      const left = window.limit + (outageReserve ?? 0) - counts.used(window)
      return outageReserve === undefined ? left : Math.min(left, outageReserve / instances - count.granted)
    },
  }
}

/** Shares are of what this gateway may spend. */
const roomOfConsumer = ({ window, count, spent, room }: Part, consumer: string, unit: number): number => {
  const limit = room() + spent()
  const usedBy = count.consumers.get(consumer) ?? 0
  return roomOf(
    { limit, used: spent(), usedBy, isAlone: count.consumers.size === 1 },
    scaled(window.shares, limit / window.limit),
    unit,
  )
}

const scaled = (shares: ShareBounds | undefined, scale: number): ShareBounds | undefined =>
  shares && {
    soloLimit: shares.soloLimit * scale,
    share: shares.share * scale,
    pacedLimit: shares.pacedLimit * scale,
  }
