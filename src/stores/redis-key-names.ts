// The names of all keys and channels in Redis, made here and nowhere else. Gateways of two versions share one Redis while
// a fleet is replaced, so a name never changes. What one script works on has one hash tag in braces, and so lies in one
// slot of a cluster. Scripts are given whole names; what lies under a name is for the part that reads it.

import { crc32 } from 'node:zlib'

// Counts of one partition lie in one slot, so that one command counts for all of its keys.
const usagePartitions = 4

/** The partition of a key's counts, 0 to 3. */
export const usagePartitionOf = (keyId: string): number => crc32(keyId) % usagePartitions

/** The hash tag of all counts of a key's partition. */
export const usageTag = (keyId: string): string => `{q${usagePartitionOf(keyId)}}`

export type RedisKeyNames = ReturnType<typeof redisKeyNames>

/** @param prefix what every name begins with */
export const redisKeyNames = (prefix: string) => {
  const named = (...parts: string[]): string => prefix + parts.join(':')
  return {
    /** The record of an API key; the id of the key that a hash belongs to; the ids of all keys. */
    key: (id: string) => named('key', id),
    keyOfHash: (hash: string) => named('key-of', hash),
    keys: named('keys'),

    /** The record of a subscriber; the id of the subscriber of a name; the ids of all subscribers. */
    subscriber: (id: string) => named('subscriber', id),
    subscriberOfName: (name: string) => named('subscriber-name', name),
    subscribers: named('subscribers'),

    /** What a key used on a day, `YYYY-MM-DD`, and the sums of the days of a month, `YYYY-MM`. */
    dayUsage: (keyId: string, day: string) => named('quota', usageTag(keyId), keyId, day),
    monthUsage: (keyId: string, month: string) => named('used', usageTag(keyId), keyId, month),
    usageChannel: named('used'),
    /** How a key was answered on a day. */
    usageDetail: (keyId: string, day: string) => named('usage-detail', `{${keyId}}`, day),

    /** A cache entry, and the lease of the load that writes it. */
    bytes: (name: string) => named('bytes', `{${name}}`),
    lease: (name: string) => named('flight', `{${name}}`),
    leasesChannel: named('flights'),

    /** The instances that are alive, the hashes of their settings, what they were asked for, and the change records of a topic. */
    instances: named('instances'),
    settings: named('settings'),
    wanted: (topic: string) => named('wanted', topic),
    changeRecords: (topic: string) => named('notices', topic),

    /** What was spent at a provider in a window, and until when the provider is closed. */
    spending: (provider: string, window: string) => named('spending', `{${provider}}`, window),
    closedUntil: (provider: string) => named('spending', `{${provider}}`, 'closed'),
  }
}
