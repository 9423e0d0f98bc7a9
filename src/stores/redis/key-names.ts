// The names of all keys and channels in Redis. Gateways of two versions share one Redis during a rolling update, so within a format of
// the store a name never changes. All keys of one script have the same hash tag in braces: they are in one slot of a cluster.

import { crc32 } from 'node:zlib'

// All counts of a partition are in one slot, so that one command counts for several keys.
const usagePartitions = 4

/** The partition of a key's counts, 0 to 3. */
export const usagePartitionOf = (keyId: string): number => crc32(keyId) % usagePartitions

/** The partitions of a server: on a cluster four, else one, which makes the largest batches. */
export const usagePartitionsOn = ({ isCluster }: { readonly isCluster: boolean }) =>
  isCluster
    ? { all: Array.from({ length: usagePartitions }, (_, i) => i), of: usagePartitionOf }
    : { all: [0], of: () => 0 }

/** The hash tag of all counts of a key's partition on a cluster. */
export const usageTag = (keyId: string): string => tagOf(usagePartitionOf(keyId))

const tagOf = (partition: number): string => `{q${partition}}`

export type RedisKeyNames = ReturnType<typeof redisKeyNames>

/** @param prefix of every name */
export const redisKeyNames = (prefix: string) => {
  const named = (...parts: string[]): string => prefix + parts.join(':')
  return {
    /** The number of the store's format. */
    format: named('format'),

    /** The record of an API key; the key id for a hash and for an external id; the ids of all keys. */
    key: (id: string) => named('key', id),
    keyOfHash: (hash: string) => named('key-of', hash),
    keyOfExternalId: (externalId: string) => named('external-id', externalId),
    keys: named('keys'),

    /** The record of a subscriber; the subscriber id for a name; the ids of all subscribers. */
    subscriber: (id: string) => named('subscriber', id),
    subscriberOfName: (name: string) => named('subscriber-name', name),
    subscribers: named('subscribers'),

    /** Of the keys of a partition: the counts of a day, `YYYY-MM-DD`, and the daily sums of a month, `YYYY-MM`. */
    dayUsage: (partition: number, day: string) => named('quota', tagOf(partition), day),
    monthUsage: (partition: number, month: string) => named('used', tagOf(partition), month),
    usageChannel: named('used'),
    /** The responses to the keys of a partition on a day, by endpoint and status class. */
    usageDetail: (partition: number, day: string) => named('usage-detail', tagOf(partition), day),

    /** The token buckets of a key. */
    tokens: (partition: number, keyId: string) => named('tokens', tagOf(partition), keyId),

    /** A cache entry, and the lease of the load that writes it. */
    bytes: (name: string) => named('bytes', `{${name}}`),
    lease: (name: string) => named('flight', `{${name}}`),

    /** The live instances, the hashes of their settings, the names in demand, and the change records of each topic. */
    instances: named('instances'),
    settings: named('settings'),
    /** The report of a live instance on itself. */
    instance: (id: string) => named('instance', id),
    wanted: (topic: string) => named('wanted', topic),
    changeRecords: { keys: named('notices', 'keys'), purges: named('notices', 'purges') },

    /** The spending at a provider in a window; the closure of the provider, and its last reopening. */
    spending: (provider: string, window: string) => named('spending', `{${provider}}`, window),
    closure: (provider: string) => named('spending', `{${provider}}`, 'closure'),
  }
}
