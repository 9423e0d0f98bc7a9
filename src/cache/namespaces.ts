// The shared tier of several upstreams. Entries stay in the namespace of the upstream that gave them, so that a change of the list loses
// none: a read takes the newest entry of all namespaces, a write goes to the namespace of its upstream. Leases are in the first namespace.

import type { Config } from '../config/schema.ts'
import { upstreamsIn } from '../config/upstreams.ts'
import { protocolIn } from '../provider/account.ts'
import { namespaceOf } from './entry-codec.ts'
import type { Entry, EntryMetadata, Freshness } from './freshness.ts'
import {
  type Codec,
  createSharedTier,
  type SharedTier,
  type SharedTierObserver,
  type SharedTierStore,
} from './tiers.ts'

/** The cache namespaces of all upstreams of a configuration, with their names; a single upstream has none. */
export const cacheNamespacesIn = (
  config: Config,
): readonly { readonly namespace: string; readonly upstream: string | undefined }[] => {
  const upstreams = upstreamsIn(config)
  return upstreams.map(({ name, config: own }) => ({
    namespace: namespaceOf(own.provider.baseUrl, protocolIn(own)),
    upstream: upstreams.length > 1 ? name : undefined,
  }))
}

type UpstreamNamespace = { readonly upstream: string | undefined; readonly namespace: string }
type List<Item> = readonly [Item, ...Item[]]

/**
 * The shared tier of all upstreams.
 * @param upstreams in their order
 * @param stateOf the state of an entry that memory does not hold, by the id of its cell
 */
export const openSharedTier = <Value>(
  [first, ...others]: List<UpstreamNamespace>,
  tier: SharedTierStore,
  codecOf: (upstream: string | undefined) => Codec<Value>,
  stateOf: (id: string, entry: Entry<unknown>) => Freshness,
  observer: SharedTierObserver,
): Pick<SharedTier<Value>, 'name' | 'get' | 'set'> => {
  const tierOf = (each: UpstreamNamespace) => ({
    ...each,
    tier: createSharedTier(tier, codecOf(each.upstream), observer),
  })
  return joinTiers([tierOf(first), ...others.map(tierOf)], stateOf)
}

/** Joins the tiers of several upstreams; a single tier stays as it is. Keys have the first namespace. */
export const joinTiers = <Value>(
  tiers: List<UpstreamNamespace & { readonly tier: SharedTier<Value> }>,
  stateOf: (id: string, entry: Entry<unknown>) => Freshness,
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
        .sort((one, other) => one.last - other.last || compareAges(other.entry, one.entry))
      return best && (!isWanted || isWanted(best.entry)) ? best.entry : undefined
    },
    set: async (key, entry, holder) => {
      const { namespace, tier } = tiers.find(({ upstream }) => upstream === entry.upstream) ?? first
      if (namespace === first.namespace) return tier.set(key, entry, holder)
      // The lease is on another key than the written one. A holder that lost it may have asked the next upstream since, and have
      // newer weather than others loaded meanwhile.
      const own = keyIn(namespace, key)
      const newer = await tier.get(own, written => compareAges(written, entry) > 0)
      return newer === undefined && tier.set(own, entry)
    },
  }
}

/** Above 0 where the first was loaded later: clocks of gateways differ, the numbers of purges do not. */
const compareAges = (one: EntryMetadata, other: EntryMetadata): number =>
  one.generation - other.generation || one.fetchedAt - other.fetchedAt
