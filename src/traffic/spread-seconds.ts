// Gives requests whose log has whole seconds an instant each: those of one second follow each other evenly over it, in the
// order of their lines. Left at its begin they would arrive all at once, which they did not.

import type { CommonLine } from './common-log-line.ts'
import type { TrafficRequest } from './traffic-request.ts'

// Of one second; of more, the next are spread anew.
const mostHeld = 200_000

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
  const flush = (): void => {
    for (const [i, { request, isEnd }] of held.entries()) {
      const at = request.at + Math.floor((i * 1_000) / held.length)
      ready.push({ ...request, at: isEnd ? at - Math.round(request.ms ?? 0) : at })
    }
    held = []
  }
  const taken = (): TrafficRequest[] => {
    const all = ready
    ready = []
    return all
  }
  return {
    add: line => {
      if (held.length > 0 && (held[0]?.request.at !== line.request.at || held.length >= mostHeld)) flush()
      held.push(line)
    },
    taken,
    rest: () => {
      flush()
      return taken()
    },
  }
}
