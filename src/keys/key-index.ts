// Entries by the id of a key, for very many keys: in its Maps a number stands for an id. V8 keeps every text that is a key of a
// Map in one table, and stops the process to walk over that table in each collection of old objects: with a million ids for some
// 50 ms. So no Map that meets all keys may have their ids.

// Sharded by the id: a single Map of a million members rehashes all of them in one turn when it grows or shrinks.
// With a million keys a shard grows or shrinks in some 2 ms. More shards cost more cache misses than they save.
export const shardCount = 16

/** By the last two characters: ids end at random, or in a number that counts up. */
export const shardOf = (keyId: string): number => {
  const { length } = keyId
  // NaN for an empty text, which the bitwise operation makes 0.
  return (10 * keyId.charCodeAt(length - 2) + keyId.charCodeAt(length - 1)) & (shardCount - 1)
}

/** `next`: of a million ids some two hundred share their number with another. */
type Listed<Entry> = { readonly keyId: string; next: Entry | undefined }

export type KeyIndex<Entry extends Listed<Entry>> = ReturnType<typeof createKeyIndex<Entry>>

export const createKeyIndex = <Entry extends Listed<Entry>>() => {
  const shards = Array.from({ length: shardCount }, () => new Map<number, Entry>())
  const shardFor = (keyId: string): Map<number, Entry> => shards[shardOf(keyId)] as Map<number, Entry>
  let size = 0
  return {
    find: (keyId: string): Entry | undefined => {
      let each = shardFor(keyId).get(numberOf(keyId))
      while (each && each.keyId !== keyId) each = each.next
      return each
    },
    /** Adds the entry of a key that has none. */
    add: (entry: Entry): void => {
      const [shard, number] = [shardFor(entry.keyId), numberOf(entry.keyId)]
      entry.next = shard.get(number)
      shard.set(number, entry)
      size += 1
    },
    delete: (entry: Entry): void => {
      const [shard, number] = [shardFor(entry.keyId), numberOf(entry.keyId)]
      let each = shard.get(number)
      if (each === entry) {
        if (entry.next) shard.set(number, entry.next)
        else shard.delete(number)
      } else {
        while (each && each.next !== entry) each = each.next
        if (!each) return
        each.next = entry.next
      }
      size -= 1
    },
    size: () => size,
    /** The entries, shard by shard. Those added to a shard that was passed are left out. */
    values: function* (): Generator<Entry, void> {
      for (const shard of shards)
        for (const first of shard.values())
          for (let each: Entry | undefined = first; each; each = each.next) yield each
    },
  }
}

/** FNV-1a; other ids may have the same. V8 stores a number of 32 bits without an object. */
export const numberOf = (keyId: string): number => {
  let number = 0x811c9dc5
  for (let i = 0; i < keyId.length; i++) number = Math.imul(number ^ keyId.charCodeAt(i), 0x01000193)
  return number | 0
}
