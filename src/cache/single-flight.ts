// Single-flight within a process: callers with a key whose work runs share the result. A finished flight is
// forgotten at once, so a later caller never gets an earlier failure; one that a change has overtaken is forgotten before its
// end. Over the fleet see fleet-single-flight.ts.

export type SingleFlight<Key, Result> = {
  /** Runs `work` unless work for the key is under way; `joined` is true for a caller that shares it. */
  run(key: Key, work: () => Promise<Result>): { result: Promise<Result>; joined: boolean }
  has(key: Key): boolean
  /** Later callers of these keys do not join what runs now. */
  forget(isCovered: (key: Key) => boolean): void
}

export const createSingleFlight = <Key, Result>(): SingleFlight<Key, Result> => {
  const underWay = new Map<Key, Promise<Result>>()
  return {
    run: (key, work) => {
      const running = underWay.get(key)
      if (running) return { result: running, joined: true }
      const result = work().finally(() => {
        if (underWay.get(key) === result) underWay.delete(key)
      })
      underWay.set(key, result)
      return { result, joined: false }
    },
    has: key => underWay.has(key),
    forget: isCovered => {
      for (const key of underWay.keys()) if (isCovered(key)) underWay.delete(key)
    },
  }
}
