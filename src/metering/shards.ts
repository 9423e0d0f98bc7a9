// A collection of very many in shards, by the id of a key: one Map or Set of a million moves all of them in a single turn of the
// event loop whenever it grows or shrinks.

// Of a million keys a shard grows or shrinks in some 2 ms. More of them cost more than they save: all are in memory at random places.
const shardCount = 16

type Shard = { readonly size: number; values(): Iterable<unknown> }
type MemberOf<One extends Shard> = ReturnType<One['values']> extends Iterable<infer Member> ? Member : never

export type Shards<One extends Shard> = {
  /** The shard that a key belongs to. */
  of(keyId: string): One
  /** How many members all of them have. */
  size(): number
  /** The members of one shard after the other. Those that come into a shard that was walked over are not among them. */
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
  // Of an empty text NaN, which the bits make 0.
  return (10 * keyId.charCodeAt(length - 2) + keyId.charCodeAt(length - 1)) & (shardCount - 1)
}
