// The report of an instance on itself with each heartbeat, as a small JSON text in the store. Other programs can write there
// too, so every field is checked when it is read, and an invalid field is unknown.

import { hostname } from 'node:os'
import * as z from 'zod'
import { stoppedReport } from '../cache/heartbeat.ts'
import { type Clock, presentInstant } from '../common/clock.ts'
import { safeText } from '../common/outside-text.ts'
import { version } from '../common/version.ts'
import type { Reload } from '../config/reload.ts'
import type { BreakerState } from '../provider/breaker.ts'
import { longestReport } from '../stores/records.ts'
import type { History } from '../telemetry/history.ts'
import type { Outages } from '../telemetry/outages.ts'

export type Phase = 'starting' | 'ready' | 'draining'

/** Instants are ms since the epoch; null for what is not known. */
export type InstanceReport = {
  readonly host: string | null
  readonly pid: number | null
  readonly version: string | null
  readonly startedAt: number | null
  readonly phase: Phase | null
  /** A short hash of the settings that the instances of a fleet should have in common. */
  readonly configHash: string | null
  readonly requestsPerSecond: number | null
  /** The share of reads of the cache that a tier answered, 0 to 1. */
  readonly hitShare: number | null
  readonly memoryBytes: number | null
  /** The code of the outage of the provider that the instance sees; null where it sees none. */
  readonly providerOutage: string | null
  /** Of the circuit breaker of the provider. */
  readonly circuit: BreakerState | null
  /** The outages that consumers of the instance meet, by their first failure; null for one of a version that does not report them. */
  readonly outages: readonly ReportedOutage[] | null
  /** Answers with 5xx in the last minutes, as `recentErrors` of the history counts them. */
  readonly recentErrors: number | null
  readonly seenAt: number | null
}

export type ReportedOutage = { readonly outage: 'provider' | 'store'; readonly since: number }

const lastInstant = 8.64e15
const text = z
  .string()
  .min(1)
  .max(100)
  .transform(value => safeText(value))
const instant = z.int().min(0).max(lastInstant)

const fields = z.object({
  host: text.nullable().catch(null),
  pid: z.int().min(1).nullable().catch(null),
  version: text.nullable().catch(null),
  startedAt: instant.nullable().catch(null),
  phase: z.enum(['starting', 'ready', 'draining']).nullable().catch(null),
  configHash: text.nullable().catch(null),
  requestsPerSecond: z.number().min(0).max(1e9).nullable().catch(null),
  hitShare: z.number().min(0).max(1).nullable().catch(null),
  memoryBytes: z.int().min(0).nullable().catch(null),
  providerOutage: text.nullable().catch(null),
  circuit: z.enum(['closed', 'open', 'half-open']).nullable().catch(null),
  outages: z
    .array(z.object({ outage: z.enum(['provider', 'store']), since: instant }))
    .max(2)
    .nullable()
    .catch(null),
  recentErrors: z.int().min(0).nullable().catch(null),
  seenAt: instant.nullable().catch(null),
})

/** The report of an instance whose own is missing or is no object. */
const unknownInstance: InstanceReport = fields.parse({})

/** The text to store, within `longestReport` bytes. */
export const writeReport = (report: InstanceReport): string => {
  const written = JSON.stringify({ ...report, host: report.host?.slice(0, 64) ?? null })
  return Buffer.byteLength(written) <= longestReport ? written : '{}'
}

/** Never throws; undefined for an instance that has stopped. */
export const readReport = (written: string | undefined): InstanceReport | undefined => {
  if (written === stoppedReport) return undefined
  try {
    return fields.safeParse(JSON.parse(written ?? '')).data ?? unknownInstance
  } catch {
    return unknownInstance
  }
}

export type SelfReport = () => InstanceReport

export const createSelfReport = ({
  phase,
  reload,
  outages,
  circuit,
  history,
  clock,
}: {
  readonly phase: () => Phase
  readonly reload: Pick<Reload, 'hash'>
  readonly outages: Pick<Outages, 'open'>
  readonly circuit: () => BreakerState
  readonly history: History
  readonly clock: Clock
}): SelfReport => {
  const startedAt = presentInstant(clock)
  const host = hostname()
  return () => {
    const open = outages.open()
    return {
      host,
      pid: process.pid,
      version,
      startedAt: startedAt(),
      phase: phase(),
      configHash: reload.hash(),
      requestsPerSecond: history.newest().requestsPerSecond,
      hitShare: history.recentHitShare(),
      memoryBytes: process.memoryUsage.rss(),
      providerOutage: open.find(({ outage }) => outage === 'provider')?.code ?? null,
      circuit: circuit(),
      outages: open.map(({ outage, since }) => ({ outage, since })),
      recentErrors: history.recentErrors(),
      seenAt: clock.now(),
    }
  }
}

export const reportText = (self: SelfReport): string => writeReport(self())
