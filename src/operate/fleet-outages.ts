// The outages that are on anywhere in the fleet: those of this instance as it sees them, those of the others by their last
// heartbeats. For the consumers' status page, which does not say whose they are.

import { aliveForMs } from '../cache/heartbeat.ts'
import type { FleetStore } from '../stores/store.ts'
import type { Outages } from '../telemetry/outages.ts'
import { type ReportedOutage, readReport } from './instance-report.ts'

/** @param instance the name of this one. The result never rejects: without the store it is what this instance sees. */
export const createFleetOutages =
  (store: Pick<FleetStore, 'aliveInstances'>, instance: string, outages: Pick<Outages, 'open'>) =>
  async (): Promise<ReportedOutage[]> => {
    const others = await store.aliveInstances(aliveForMs).catch(() => [])
    return [
      ...outages.open(),
      ...others.flatMap(({ id, report }) => (id === instance ? [] : (readReport(report)?.outages ?? []))),
    ]
  }
