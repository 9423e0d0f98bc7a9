// Gives requests whose log has whole seconds an instant each: those of one second follow each other evenly over it, in the
// order of their lines. Left at its begin they would arrive all at once, which they did not.

import type { CommonLine } from './common-log-line.ts'
import type { TrafficRequest } from './traffic-request.ts'

// Of one second, in requests and in characters; of more, the next are spread anew.
const mostHeld = 200_000
const mostText = 64 * 1024 * 1024

export type Spreader = {
  /** Requests of the seconds that are over. */
  add(line: CommonLine): void
  taken(): TrafficRequest[]
  /** The last ones too. */
  rest(): TrafficRequest[]
}

export const createSpreader = (): Spreader => {
  let held: CommonLine[] = []
  let ready: TrafficRequest[] = []
  let text = 0
  const flush = (): void => {
    for (const [i, { request, isEnd }] of held.entries()) {
      const at = request.at + Math.floor((i * 1_000) / held.length)
      ready.push({ ...request, at: isEnd ? Math.max(0, at - Math.round(request.ms ?? 0)) : at })
    }
    held = []
    text = 0
  }
  const taken = (): TrafficRequest[] => {
    const all = ready
    ready = []
    return all
  }
  return {
    add: line => {
      const isFull = held.length >= mostHeld || text >= mostText
      if (held.length > 0 && (held[0]?.request.at !== line.request.at || isFull)) flush()
      held.push(line)
      text += line.request.path.length
    },
    taken,
    rest: () => {
      flush()
      return taken()
    },
  }
}
