// Single-flight within a process: callers with a key whose work runs share the result. A finished flight is
// forgotten at once, so a later caller never gets an earlier failure.

export type SingleFlight<Key, Result> = {
  /** Runs `work` unless work for the key is under way; `joined` is true for a caller that shares it. */
  run(key: Key, work: () => Promise<Result>): { result: Promise<Result>; joined: boolean }
}

export const createSingleFlight = <Key, Result>(): SingleFlight<Key, Result> => {
  const underWay = new Map<Key, Promise<Result>>()
  return {
    run: (key, work) => {
      const running = underWay.get(key)
      if (running) return { result: running, joined: true }
      const result = work().finally(() => {
        underWay.delete(key)
      })
      underWay.set(key, result)
      return { result, joined: false }
    },
  }
}
