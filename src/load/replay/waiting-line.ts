// Arrivals in line for a connection. A queue over an array, because what a stalled target leaves waiting may be millions.

export type WaitingLine = {
  /** Undefined where nobody waits. */
  first(): number | undefined
  /** The first one leaves. */
  shift(): void
  push(arrival: number): void
  /** In line again, before all others. */
  putBack(arrival: number): void
  clear(): void
}

export const createWaitingLine = (): WaitingLine => {
  let line: number[] = []
  let begin = 0
  return {
    first: () => line[begin],
    shift: () => {
      begin += 1
      if (begin < 10_000 || begin * 2 < line.length) return
      line = line.slice(begin)
      begin = 0
    },
    push: arrival => void line.push(arrival),
    putBack: arrival => {
      if (begin === 0) line.unshift(arrival)
      else {
        begin -= 1
        line[begin] = arrival
      }
    },
    clear: () => {
      line = []
      begin = 0
    },
  }
}
