// A sharded collection, by the id of a key. A single Map or Set of a million members rehashes all of them in one turn of the
// event loop when it grows or shrinks.

// With a million keys a shard grows or shrinks in some 2 ms. More shards cost more cache misses than they save.
const shardCount = 16

type Shard = { readonly size: number; values(): Iterable<unknown> }
type MemberOf<One extends Shard> = ReturnType<One['values']> extends Iterable<infer Member> ? Member : never

export type Shards<One extends Shard> = {
  /** The shard that a key belongs to. */
  of(keyId: string): One
  /** The number of members in all shards. */
  size(): number
  /** The members, shard by shard. Members added to a shard that was passed are left out. */
  values(): Generator<MemberOf<One>, void>
}

export const createShards = <One extends Shard>(create: () => One): Shards<One> => {
  const shards = Array.from({ length: shardCount }, create)
  return {
    of: keyId => shards[shardOf(keyId)] as One,
    size: () => shards.reduce((sum, { size }) => sum + size, 0),
    values: function* () {
      for (const shard of shards) for (const member of shard.values()) yield member as MemberOf<One>
    },
  }
}

/** By the last two characters: ids end at random, or in a number that counts up. */
const shardOf = (keyId: string): number => {
  const { length } = keyId
  // NaN for an empty text, which the bitwise operation makes 0.
  return (10 * keyId.charCodeAt(length - 2) + keyId.charCodeAt(length - 1)) & (shardCount - 1)
}
