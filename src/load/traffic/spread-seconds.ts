// Gives requests whose log has whole seconds an instant each: those of one second follow each other evenly over it, in the
// order of their lines. Left at its begin they would arrive all at once, which they did not. A log that is written when
// answers end has lines of other seconds between them, so that a second is held while its lines still come.

import type { CommonLine } from './common-log-line.ts'
import type { TrafficRequest } from './traffic-request.ts'

// In requests and in characters; of more, the next of a second are spread anew.
const maxHeld = 200_000
const maxText = 64 * 1024 * 1024

export type Spreader = {
  add(line: CommonLine): void
  /** Requests of the seconds that are over. */
  taken(): TrafficRequest[]
  /** The last ones too. */
  rest(): TrafficRequest[]
}

type Second = { readonly lines: CommonLine[]; text: number; last: number }

/** @param window a second is over when none of so many lines was of it */
export const createSpreader = (window: number): Spreader => {
  // The one whose last line is furthest back comes first.
  const seconds = new Map<number, Second>()
  let newest: Second | undefined
  let ready: TrafficRequest[] = []
  let lines = 0
  let held = 0
  let text = 0
  const flush = (at: number, second: Second): void => {
    const { length } = second.lines
    for (const [i, { request, isEnd }] of second.lines.entries()) {
      const arrival = at + Math.floor((i * 1_000) / length)
      ready.push({ ...request, at: isEnd ? arrival - Math.round(request.ms ?? 0) : arrival })
    }
    seconds.delete(at)
    if (newest === second) newest = undefined
    held -= length
    text -= second.text
  }
  const flushOld = (): void => {
    for (const [at, second] of seconds) {
      const isOver = lines - second.last >= window
      if (!isOver && held <= maxHeld && text <= maxText) return
      flush(at, second)
    }
  }
  const secondOf = (at: number): Second => {
    const second = seconds.get(at) ?? { lines: [], text: 0, last: 0 }
    if (second === newest) return second
    seconds.delete(at)
    seconds.set(at, second)
    newest = second
    return second
  }
  const taken = (): TrafficRequest[] => {
    const all = ready
    ready = []
    return all
  }
  return {
    add: line => {
      const second = secondOf(line.request.at)
      lines += 1
      second.last = lines
      second.lines.push(line)
      second.text += line.request.path.length
      held += 1
      text += line.request.path.length
      flushOld()
    },
    taken,
    rest: () => {
      for (const [at, second] of seconds) flush(at, second)
      return taken()
    },
  }
}
