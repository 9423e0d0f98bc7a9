// What an instance admits while the store is away: an equal share of what was left of a key's quota, and of its limits by the second
// and minute.

import type { Clock } from '../common/clock.ts'
import { StoreError } from '../stores/store.ts'
import {
  type Count,
  type DecisionCallback,
  noteUsed,
  type OutageParts,
  type PartitionStatus,
  stepOf,
} from './count.ts'
import { admitLocally, type KeyRate } from './rates.ts'

type Parts = Pick<OutageParts, 'store' | 'whenStoreIsDown' | 'isReadWhenAway' | 'instances'> & {
  readonly clock: Clock
}

/** The allowances of a partition. */
export class LocalAllowances {
  readonly #status: PartitionStatus
  readonly #parts: Parts
  // Reads of a store that answers but does not count, since the last loss.
  #readings = new WeakMap<Count, Promise<void>>()
  #readingsOf = 0

  constructor(status: PartitionStatus, parts: Parts) {
    this.#status = status
    this.#parts = parts
  }

  /** Whether this instance knows enough of a count to admit or refuse by it. */
  isKnown(count: Count): boolean {
    return this.#lastKnownOf(count) !== undefined
  }

  /** Units that this instance may still admit without the store. */
  leftOf(count: Count): number {
    const { whenStoreIsDown, instances } = this.#parts
    const size = instances()
    const known = this.#lastKnownOf(count)
    if (whenStoreIsDown === 'refuse' || size === undefined || !known) return 0
    return Math.max(0, allowanceOf(count.limit, known.used, size) - (count.admitted - known.admitted))
  }

  /** Refuses a request: exhausted if that is known, else with StoreError. */
  refuse(count: Count, units: number, callback: DecisionCallback): void {
    const known = this.#lastKnownOf(count)
    const remaining = this.leftOf(count)
    if (known && units === 0) callback(undefined, { allowed: true, remaining })
    else if (known && known.used > count.limit - units) callback(undefined, { allowed: false, remaining })
    else callback(new StoreError('the store is away and the local allowance of this key is spent'))
  }

  /** Admits a request from the allowance, or refuses it. */
  decide(count: Count, units: number, callback: DecisionCallback, rate?: KeyRate): void {
    if (!this.#parts.isReadWhenAway) this.#decideNow(count, units, callback, rate)
    else void this.#readOnce(count).then(() => this.#decideNow(count, units, callback, rate))
  }

  #decideNow(count: Count, units: number, callback: DecisionCallback, rate?: KeyRate): void {
    const { clock, instances } = this.#parts
    const tooSoon = rate && admitLocally(rate, clock.now(), instances() ?? 1)
    const left = this.leftOf(count)
    if (tooSoon) callback(undefined, { allowed: false, remaining: left, tooSoon })
    else if (left < Math.max(1, units)) this.refuse(count, units, callback)
    else {
      count.lastKnown = this.#lastKnownOf(count)
      count.knownSince = this.#status.readSince
      count.admitted += units
      callback(undefined, { allowed: true, remaining: left - units })
    }
  }

  // Once in each outage: other processes may have counted since this one last did.
  #readOnce(count: Count): Promise<void> {
    const { losses, readSince } = this.#status
    if (losses !== this.#readingsOf) this.#readings = new WeakMap()
    this.#readingsOf = losses
    const known = this.#readings.get(count)
    if (known) return known
    count.heard = 0
    const reading = this.#parts.store.usedOn(count.keyId, [count.window.name]).then(
      ([used = 0]) => noteUsed(count, used, count.confirmed, readSince),
      // The next request tries again.
      () => void this.#readings.delete(count),
    )
    this.#readings.set(count, reading)
    return reading
  }

  // A window that begins while the store is away starts with no units used, unless the clock jumped back to it.
  #lastKnownOf(count: Count): Count['lastKnown'] {
    const { state, readSince, latestStartBefore } = this.#status
    const isCounting = state === 'counting'
    const isKept = isCounting || count.knownSince === readSince
    const known = isKept ? count.lastKnown : undefined
    return (
      known ??
      (!isCounting && latestStartBefore < count.window.startsAt ? { used: 0, admitted: 0 } : undefined)
    )
  }
}

/**
 * An instance's equal share of the units that were left at the last known count. Others may have used up to a step since. Two
 * steps are left out, so that one message lost with the connection does not make all allowances together exceed the limit.
 */
export const allowanceOf = (limit: number, lastKnown: number, instances: number): number =>
  Math.max(0, Math.floor((limit - lastKnown - 2 * stepOf(limit)) / instances))
