// One piece of work per key at a time: who asks while it is under way gets the same result. A finished flight is
// forgotten at once, whatever came of it, so a failure is never handed to a later caller.

export type Flight<Key, Result> = {
  /** Runs `work` unless a flight for the key is under way; `joined` says that this caller came second. */
  run(key: Key, work: () => Promise<Result>): { result: Promise<Result>; joined: boolean }
  has(key: Key): boolean
}

export const createSingleFlight = <Key, Result>(): Flight<Key, Result> => {
  const underWay = new Map<Key, Promise<Result>>()
  return {
    run: (key, work) => {
      const running = underWay.get(key)
      if (running) return { result: running, joined: true }
      const result = work().finally(() => underWay.delete(key))
      underWay.set(key, result)
      return { result, joined: false }
    },
    has: key => underWay.has(key),
  }
}
