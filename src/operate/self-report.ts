// The report of an instance on itself: in its heartbeats for the fleet, and in its own /status.

import { hostname } from 'node:os'
import { minuteMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { version } from '../common/version.ts'
import type { Reload } from '../config/reload.ts'
import type { History } from '../telemetry/history.ts'
import type { Outages } from '../telemetry/outages.ts'
import { type InstanceReport, type Phase, writeReport } from './instance-report.ts'

const outageCountsForMs = 15 * minuteMs

export type SelfReport = () => InstanceReport

export const createSelfReport = ({
  phase,
  reload,
  outages,
  history,
  clock,
}: {
  readonly phase: () => Phase
  readonly reload: Pick<Reload, 'hash'>
  readonly outages: Pick<Outages, 'open'>
  readonly history: History
  readonly clock: Clock
}): SelfReport => {
  const startedAt = clock.now()
  const host = hostname()
  // An instance without demand does not see the end of an outage.
  const recentOutage = () =>
    outages
      .open()
      .find(
        ({ outage, failedAt }) =>
          outage === 'provider' && Math.abs(clock.now() - failedAt) < outageCountsForMs,
      )
  return () => ({
    host,
    pid: process.pid,
    version,
    startedAt,
    phase: phase(),
    configHash: reload.hash(),
    requestsPerSecond: history.newest().requestsPerSecond,
    hitShare: history.recentHitShare(),
    memoryBytes: process.memoryUsage.rss(),
    providerOutage: recentOutage()?.code ?? null,
    seenAt: clock.now(),
  })
}

export const reportText = (self: SelfReport): string => writeReport(self())
