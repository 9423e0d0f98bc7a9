// The store of the rate-limit plugin, with windows on the monotonic clock: its own store would lengthen them by as much as the machine's
// clock is set back. What is limited, and to what, is in reference-routes.ts.

import type { FastifyRateLimitStore } from '@fastify/rate-limit'
import { LRUCache } from 'lru-cache'

type Window = { current: number; readonly endsAt: number }

// As many as the plugin's own store keeps.
const maxWindows = 5_000

export class MonotonicWindows implements FastifyRateLimitStore {
  // By size, because lru-cache allocates `max` entries at once.
  readonly #windows = new LRUCache<string, Window>({ maxSize: maxWindows, sizeCalculation: () => 1 })

  incr(
    key: string,
    callback: (error: null, result: { current: number; ttl: number }) => void,
    timeWindow: number,
  ): void {
    const now = performance.now()
    let window = this.#windows.get(key)
    if (!window || window.endsAt <= now) {
      window = { current: 0, endsAt: now + timeWindow }
      this.#windows.set(key, window)
    }
    window.current += 1
    callback(null, { current: window.current, ttl: window.endsAt - now })
  }

  /** For a route with limits of its own, of which there is none. */
  child(): MonotonicWindows {
    return new MonotonicWindows()
  }
}
