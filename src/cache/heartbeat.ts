// The heartbeat of an instance: at intervals it reports to the store that it is alive and which cells are in demand, and
// learns how many instances there are and how many cells the fleet wants. A failed heartbeat changes nothing here.

import { randomUUID } from 'node:crypto'
import type { Clock } from '../common/clock.ts'
import type { FleetStore } from '../stores/store.ts'
import type { Cell } from '../weather/cell.ts'
import type { Demand } from './demand.ts'

/** The fleet at the last heartbeat: the numbers of instances alive, of different settings, and of cells in demand. */
export type Fleet = { readonly instances: number; readonly variants: number; readonly wanted: number }

const everyMs = 5_000

/** From when the next period counts, after something periodic was done now. Where it was done late, the later ones stay in step. */
export const inStep = (now: number, sinceMs: number, everyMs: number): number =>
  Number.isFinite(sinceMs) && sinceMs > 0 ? now - (sinceMs % everyMs) : now

/** How long after its last heartbeat an instance counts as alive. */
export const aliveForMs = 4 * everyMs
/** The report of an instance that has stopped: it counts as alive for a while, but is not shown. */
export const stoppedReport = '{"phase":"stopped"}'

export type HeartbeatParts = {
  readonly store: Pick<FleetStore, 'heartbeat'>
  readonly demand: Demand<Cell>
  readonly namespace: string
  /** A short hash of the settings that all instances should have in common, now. */
  readonly settings: () => string
  /** How long after its last request a cell counts as in demand. */
  readonly demandForMs: number
  /** The text of the instance's report of itself. */
  readonly report: () => string
  readonly clock: Clock
  readonly onHeartbeat: (fleet: Fleet) => void
  /** The store failed to take a heartbeat. */
  readonly onHeartbeatFailure: () => void
}

export const createHeartbeat = (parts: HeartbeatParts) => {
  const { demandForMs, clock } = parts
  const instance = randomUUID()
  let sentAt = Number.NEGATIVE_INFINITY
  /** From when the next period counts. */
  let beatAt = sentAt

  const send = async (reported: string, runsWith: string | null): Promise<void> => {
    const now = clock.now()
    // After the clock was set back nothing is known to be sent.
    const unsent = now < sentAt ? now - demandForMs : sentAt
    const requested = parts.demand.since(unsent).map(({ subject }) => subject.id)
    const before = [sentAt, beatAt] as const
    sentAt = beatAt = now
    try {
      const fleet = await parts.store.heartbeat({
        ...{ instance, aliveForMs, settings: runsWith, topic: parts.namespace },
        ...{ requested, wantedForMs: demandForMs, now, report: reported },
      })
      parts.onHeartbeat(fleet)
    } catch {
      // The next heartbeat repeats this demand, and that of another one which failed meanwhile.
      sentAt = Math.min(sentAt, before[0])
      beatAt = Math.min(beatAt, before[1])
      parts.onHeartbeatFailure()
    }
  }

  const sendNow = (): Promise<void> => send(parts.report(), parts.settings())

  return {
    /** The name of this instance in the store. */
    instance,
    send: sendNow,
    sendLast: (): Promise<void> => send(stoppedReport, null),
    sendIfDue: async (): Promise<void> => {
      const now = clock.now()
      const since = now - beatAt
      if (Math.abs(since) < everyMs) return
      await sendNow()
      if (sentAt === now) beatAt = inStep(now, since, everyMs)
    },
  }
}
