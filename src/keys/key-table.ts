// Entries by the id of a key, for very many keys: in its Maps a number stands for an id. V8 keeps every text that is a key of a
// Map in one table, and walks over that table while all else waits, in each collection of old objects: with a million ids for
// some 50 ms. Collections are sharded by the id: a single Map or Set of a million members rehashes all of them in one turn when it
// grows or shrinks.

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

type OfKey = { readonly keyId: string }

export type KeyTable<Entry extends OfKey> = {
  find(keyId: string): Entry | undefined
  /** Adds the entry of a key that has none. */
  add(entry: Entry): void
  delete(entry: Entry): void
  size(): number
  /** The entries, shard by shard. Those added to a shard that was passed are left out. */
  values(): Generator<Entry, void>
}

export const createKeyTable = <Entry extends OfKey>(): KeyTable<Entry> => {
  // Of a million ids some two hundred share their number with another: their entries are in a list.
  const shards = createShards(() => new Map<number, Entry | readonly Entry[]>())
  let size = 0
  const entriesIn = (found: Entry | readonly Entry[] | undefined): readonly Entry[] =>
    found === undefined ? [] : isList(found) ? found : [found]
  const change = ({ keyId }: Entry, by: (entries: readonly Entry[]) => readonly Entry[]): void => {
    const [shard, number] = [shards.of(keyId), numberOf(keyId)]
    const before = entriesIn(shard.get(number))
    const after = by(before)
    const [only] = after
    if (only === undefined) shard.delete(number)
    else shard.set(number, after.length === 1 ? only : after)
    size += after.length - before.length
  }

  return {
    find: keyId => {
      const found = shards.of(keyId).get(numberOf(keyId))
      if (found === undefined) return undefined
      if (isList(found)) return found.find(entry => entry.keyId === keyId)
      return found.keyId === keyId ? found : undefined
    },
    add: entry => change(entry, entries => [...entries, entry]),
    delete: entry => change(entry, entries => entries.filter(each => each !== entry)),
    size: () => size,
    values: function* () {
      for (const found of shards.values()) yield* entriesIn(found)
    },
  }
}

const isList = <Entry extends OfKey>(found: Entry | readonly Entry[]): found is readonly Entry[] =>
  Array.isArray(found)

/** FNV-1a. V8 stores a number of 32 bits without an object of its own. */
const numberOf = (keyId: string): number => {
  let number = 0x811c9dc5
  for (let i = 0; i < keyId.length; i++) number = Math.imul(number ^ keyId.charCodeAt(i), 0x01000193)
  return number | 0
}
