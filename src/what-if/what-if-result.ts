// What the settings would do to the traffic, as `whatif --json` prints it and the page reads it. Durations are in seconds,
// shares from 0 to 1, weights in the provider's unit.

import { z } from 'zod'

const count = z.int().min(0)
const amount = z.number().min(0)

const step = z.object({
  /** When it begins, from the begin of what is counted. */
  at: amount,
  requests: count,
  hits: count,
  stale: count,
  misses: count,
  failed: count,
  weight: amount,
  stretch: amount,
})

const caseFigures = z.object({
  requests: count,
  /** Those that reached the cache. */
  weather: count,
  /** Requests without weather: other endpoints, and those that are refused before the cache is read. */
  none: count,
  /** Fresh weather, by the tier that held it. */
  hits: z.object({ memory: count, shared: count }),
  stale: count,
  /** Requests that waited for the provider. */
  misses: count,
  /** Requests for weather that got an error: nothing was cached, and the budget had no room in time. */
  failed: count,
  /** Of the requests that reached the cache. */
  hitShare: z.number().min(0).max(1),
  provider: z.object({
    requests: count,
    cells: count,
    weight: amount,
    /** By UTC day. */
    days: z.array(z.object({ day: z.string(), requests: count, weight: amount })),
    /** The most that was spent in one window. */
    most: z.object({ minute: amount, hour: amount, day: amount }),
  }),
  /** `share`: of the minutes, those in which freshness was stretched. */
  stretch: z.object({ most: z.number().min(1), share: z.number().min(0).max(1) }),
  /** Of the weather that was served, however fresh. */
  age: z.object({ p50: amount, p95: amount, max: z.number().min(-1) }),
  /** Of the memory tier the most that one instance held; of the shared tier what it held in the end. */
  memory: z.object({ mostBytes: count, mostEntries: count, sharedEntries: count, sharedBytes: count }),
  stepSeconds: amount,
  steps: z.array(step),
})
export type CaseFigures = z.infer<typeof caseFigures>
