// The pulse of an instance: it says at intervals that it is alive and what it was asked for, and learns how many others
// are and how much all of them want. A store that is away is told of by its own observer; here nothing is new then.

import { randomUUID } from 'node:crypto'
import type { Demand } from '../cache/demand.ts'
import type { Clock } from '../clock.ts'
import type { FleetStore } from '../stores/store.ts'
import type { Cell } from '../weather/cell.ts'

/** What the fleet looked like at the last pulse. */
export type Fleet = { readonly instances: number; readonly wanted: number }

export type HeartbeatParts = {
  readonly store: Pick<FleetStore, 'pulse'>
  readonly demand: Demand<Cell>
  readonly question: string
  /** How long after it was asked for a cell counts as wanted. */
  readonly demandForMs: number
  readonly clock: Clock
  readonly pulsed: (fleet: Fleet) => void
  /** The store did not take one. */
  readonly heartbeatFailed: () => void
}

export type Heartbeat = {
  /** Gives a pulse if it is time for one. */
  due(): Promise<void>
  /** Gives a pulse now. */
  give(): Promise<void>
}

const everyMs = 5_000
const aliveForMs = 4 * everyMs

export const createHeartbeat = ({
  store,
  demand,
  question,
  demandForMs,
  clock,
  pulsed,
  heartbeatFailed,
}: HeartbeatParts): Heartbeat => {
  const instance = randomUUID()
  let givenAt = Number.NEGATIVE_INFINITY

  const give = async (): Promise<void> => {
    const now = clock.now()
    const asked = demand.since(givenAt).map(([, { subject }]) => subject.id)
    const before = givenAt
    givenAt = now
    try {
      pulsed(
        await store.pulse({ instance, aliveForMs, topic: question, asked, wantedForMs: demandForMs, now }),
      )
    } catch {
      // Told again with the next one.
      givenAt = before
      heartbeatFailed()
    }
  }

  return {
    give,
    due: async () => {
      if (Math.abs(clock.now() - givenAt) >= everyMs) await give()
    },
  }
}
