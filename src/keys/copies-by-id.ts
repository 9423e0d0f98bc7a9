// The copies of keys by the ids that a change may name, so that a change touches the copies that it concerns and no others.

import { numberOf } from './key-index.ts'

type Copy = {
  readonly found: { readonly key: { readonly id: string }; readonly subscriber: { readonly id: string } }
}

/** By the numbers of ids (key-index.ts says why); nearly all have one copy, so that a Set for each would only take memory. */
export const createCopiesById = <Of extends Copy>() => {
  const byNumber = new Map<number, Of | Set<Of>>()
  const idsOf = ({ found: { key, subscriber } }: Of): readonly string[] => [key.id, subscriber.id]
  return {
    add: (copy: Of): void => {
      for (const id of idsOf(copy)) {
        const number = numberOf(id)
        const held = byNumber.get(number)
        if (held instanceof Set) held.add(copy)
        else byNumber.set(number, held === undefined ? copy : new Set([held, copy]))
      }
    },
    delete: (copy: Of): void => {
      for (const id of idsOf(copy)) {
        const number = numberOf(id)
        const held = byNumber.get(number)
        if (held instanceof Set) held.delete(copy)
        if (held === copy || (held instanceof Set && held.size === 0)) byNumber.delete(number)
      }
    },
    /** The copies of a key, or of the keys of a subscriber. Those of an id with the same number may be among them. */
    of: (id: string): Iterable<Of> => {
      const held = byNumber.get(numberOf(id))
      if (held === undefined) return []
      return held instanceof Set ? held : [held]
    },
    /** How many ids have copies. */
    size: () => byNumber.size,
  }
}
