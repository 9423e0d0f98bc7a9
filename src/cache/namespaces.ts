// The shared tier of several upstreams. Entries stay in the namespace of the upstream that gave them, so that a change of the list
// loses none: a read looks into all namespaces and takes the newest entry, a write goes to the one of its upstream. Leases are those
// of the first namespace, whatever upstream a load ends at.

import type { LeaseStore } from '../stores/store.ts'
import type { Entry, Freshness } from './freshness.ts'
import type { SharedTier } from './tiers.ts'

/** The entries of one upstream. */
export type UpstreamTier<Value> = {
  readonly upstream: string | undefined
  readonly namespace: string
  readonly tier: SharedTier<Value>
}

type SharedParts = {
  readonly store: Pick<LeaseStore, 'renewLease'>
  readonly leaseForMs: number
  /** The state of an entry that memory does not hold. @param key of the cell, without a namespace */
  readonly stateOf: (key: string, entry: Entry<unknown>) => Freshness
}

/** The tier of one upstream as it is; of several the one that joins them. Keys are those of the first namespace. */
export const joinTiers = <Value>(
  tiers: readonly [UpstreamTier<Value>, ...UpstreamTier<Value>[]],
  { store, leaseForMs, stateOf }: SharedParts,
): Pick<SharedTier<Value>, 'name' | 'get' | 'set'> => {
  const [first] = tiers
  if (tiers.length === 1) return first.tier
  const cellOf = (key: string): string => key.slice(first.namespace.length + 1)
  const keyIn = (namespace: string, key: string): string => `${namespace}:${cellOf(key)}`

  return {
    name: first.tier.name,
    /**
     * The newest that can be served, so that nobody goes back to older weather; then whether it is wanted: an older one that is
     * fresh by the runs of its upstream would end the refresh of a newer one.
     */
    get: async (key, isWanted) => {
      const found = await Promise.all(tiers.map(({ namespace, tier }) => tier.get(keyIn(namespace, key))))
      const isExpired = (entry: Entry<Value>): boolean => stateOf(cellOf(key), entry) === 'expired'
      const [best] = found
        .flatMap(entry => (entry ? [{ entry, last: Number(isExpired(entry)) }] : []))
        .sort((one, other) => one.last - other.last || other.entry.fetchedAt - one.entry.fetchedAt)
      return best && (!isWanted || isWanted(best.entry)) ? best.entry : undefined
    },
    set: async (key, entry, holder) => {
      const { namespace, tier } = tiers.find(({ upstream }) => upstream === entry.upstream) ?? first
      if (namespace === first.namespace) return tier.set(key, entry, holder)
      // The lease is not that of the key that is written, so it is checked before and not with the write: an entry that comes
      // between the two is older by less than a round trip.
      const isHeld =
        holder === undefined || (await store.renewLease(key, holder, leaseForMs).catch(() => true))
      return isHeld && tier.set(keyIn(namespace, key), entry)
    },
  }
}
