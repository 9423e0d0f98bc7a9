// The report that an instance stores with each heartbeat. Every field is checked when read, because other programs can write
// there.

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

const lastInstant = 8.64e15
const text = z
  .string()
  .min(1)
  .max(100)
  .transform(value => safeText(value))
const instant = z.int().min(0).max(lastInstant)

const reportedOutage = z.object({ outage: z.enum(['provider', 'store']), since: instant })
export type ReportedOutage = Readonly<z.infer<typeof reportedOutage>>

const orNull = <Value extends z.ZodType>(form: Value) => form.nullable().catch(null)

const fields = z.object({
  host: orNull(text),
  pid: orNull(z.int().min(1)),
  version: orNull(text),
  startedAt: orNull(instant),
  phase: orNull(z.enum(['starting', 'ready', 'draining'])),
  /** A short hash of the settings that the instances of a fleet should have in common. */
  configHash: orNull(text),
  requestsPerSecond: orNull(z.number().min(0).max(1e9)),
  /** The share of reads of the cache that a tier answered. */
  hitShare: orNull(z.number().min(0).max(1)),
  memoryBytes: orNull(z.int().min(0)),
  /** The code of the provider outage that the instance sees; null where it sees none. */
  providerOutage: orNull(text),
  circuit: orNull(z.enum(['closed', 'open', 'half-open'])),
  /** Outages that consumers of the instance meet; null for a version that does not report them. */
  outages: orNull(z.array(reportedOutage).max(2)),
  /** Answers with 5xx in the last minutes, as `recentErrors` of the history counts them. */
  recentErrors: orNull(z.int().min(0)),
  seenAt: orNull(instant),
})

/** Instants are ms since the epoch; null for what is not known. */
export type InstanceReport = Readonly<z.infer<typeof fields>>
export type Phase = NonNullable<InstanceReport['phase']>

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
      memoryBytes: residentBytes(),
      providerOutage: open.find(({ outage }) => outage === 'provider')?.code ?? null,
      circuit: circuit(),
      outages: open.map(({ outage, since }) => ({ outage, since })),
      recentErrors: history.recentErrors(),
      seenAt: clock.now(),
    }
  }
}

/** Null where the process can open no file. */
const residentBytes = (): number | null => {
  try {
    return process.memoryUsage.rss()
  } catch {
    return null
  }
}

export const reportText = (self: SelfReport): string => writeReport(self())
