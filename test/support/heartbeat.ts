// A heartbeat of an instance, of which a test says what it is about.

import type { FleetStore } from '../../src/stores/store.ts'

type Heartbeat = Parameters<FleetStore['heartbeat']>[0]

/** Alive for a minute, and in want of nothing. */
export const heartbeatOf = (instance: string, given: Partial<Heartbeat> = {}): Heartbeat => ({
  ...{ instance, aliveForMs: 60_000, settings: 'a', topic: 'q', requested: [], wantedForMs: 60_000 },
  ...{ report: '{}', now: Date.now(), ...given },
})
