// The open outages of the fleet for the status page: seen here, or reported by the heartbeats of other instances.

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
