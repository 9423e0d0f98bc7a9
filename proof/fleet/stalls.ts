// How long this machine let a history wait: the longest time that a PING to Redis or to a gateway's process, or a turn of this
// process, took beyond what it should. A gateway that got no reply for as long takes Redis for away, and nothing in the schedule
// says so. Where Redis itself is a fault, turns are all that counts.

import { setTimeout as pause } from 'node:timers/promises'

const everyMs = 40

export type Stalls = {
  /** Ends the watch. Returns the longest stall in ms. */
  end(): Promise<number>
}

/** @param ping undefined while nobody is to answer */
export const watchStalls = (ping: () => Promise<unknown> | undefined): Stalls => {
  let isOver = false
  let longest = 0
  const watching = (async (): Promise<void> => {
    while (!isOver) {
      const begun = performance.now()
      await pause(everyMs)
      longest = Math.max(longest, performance.now() - begun - everyMs)
      const sent = performance.now()
      const reply = ping()
      if (!reply) continue
      await Promise.race([reply, pause(500)])
      // A fault that began meanwhile is no stall.
      if (ping()) longest = Math.max(longest, performance.now() - sent)
    }
  })()
  return {
    end: async () => {
      isOver = true
      await watching
      return Math.round(longest)
    },
  }
}
