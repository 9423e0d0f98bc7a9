// Hands seeds to processes, one at a time to each, and collects what they found. A process that failed is replaced, and its seed
// counts as failed.

import { setTimeout as pause } from 'node:timers/promises'
import { type Called, forkCalled } from './fleet/calls.ts'
import type { Judged, Order } from './lane-process.ts'

export type LaneOptions = {
  readonly lanes: number
  readonly folder: string
  /** The name of a planted fault. */
  readonly sabotage?: string
  /** The next seed; undefined when there is none any more. */
  readonly next: () => number | undefined
  readonly shrink: () => boolean
  /** Whether each history is wanted as text. */
  readonly isPrinted?: boolean
  readonly onJudged: (judged: Judged) => void
  /** A seed that could not be checked. */
  readonly onFailed: (seed: number, why: string) => void
}

const script = new URL('lane-process.ts', import.meta.url)
// A seed takes seconds, and shrinking its history minutes; the end of a process ends its Redis.
const patienceMs = 300_000
const endsWithinMs = 60_000

export const runLanes = async (options: LaneOptions): Promise<void> => {
  await Promise.all(Array.from({ length: options.lanes }, () => runLane(options)))
}

const runLane = async (options: LaneOptions): Promise<void> => {
  const { folder, sabotage, next, shrink, isPrinted = false, onJudged, onFailed } = options
  let lane: Called<Order> | undefined
  for (let seed = next(); seed !== undefined; seed = next()) {
    try {
      lane ??= forkCalled(script, [folder, ...(sabotage ? [sabotage] : [])])
      const order: Order = { seed, shrink: shrink(), isPrinted }
      onJudged((await within(patienceMs, lane.call(order))) as Judged)
    } catch (error) {
      onFailed(seed, (error as Error).message)
      if (lane) await within(endsWithinMs, lane.end()).catch(lane.kill)
      lane = undefined
    }
  }
  await lane?.end()
}

const within = <Value>(ms: number, awaited: Promise<Value>): Promise<Value> => {
  const late = pause(ms, undefined, { ref: false }).then(() => {
    throw new Error(`nothing within ${ms} ms`)
  })
  return Promise.race([awaited, late])
}
