// The JSON of /cache/warm: what warming has loaded so far.

import * as z from 'zod'

export const warmReport = z.object({
  state: z.enum(['idle', 'planned', 'running', 'done', 'stopped']),
  target: z.string(),
  /** The cells of the target; those of them that were absent or stale at the beginning, and the weight of their loads. */
  cells: z.number(),
  toLoad: z.number(),
  weight: z.number(),
  loaded: z.number(),
  fresh: z.number(),
  failed: z.array(z.object({ code: z.string(), message: z.string(), cells: z.number() })),
  stoppedBy: z.enum(['budget', 'provider', 'operator']).nullable(),
  reason: z.string().nullable(),
})
export type WarmReport = z.infer<typeof warmReport>
