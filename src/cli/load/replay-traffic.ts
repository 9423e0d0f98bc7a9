// Prepares `abohawa replay` and `abohawa saturate` before the first request: the target, the traffic as a schedule, its keys, and
// the connections.

import { isoOf } from '../../common/calendar.ts'
import { InputError } from '../../common/errors.ts'
import type { ReplayOrder } from '../../load/replay/run.ts'
import type { Schedule } from '../../load/replay/schedule.ts'
import type { ReplayResult } from '../../load/report/result.ts'
import type { TrafficSummary } from '../../load/traffic/read-traffic.ts'
import { counted, type Terminal } from '../terminal.ts'
import { asUsage, UsageError } from '../usage-error.ts'
import {
  checkSchedule,
  connectionsOf,
  keysOf,
  type ReplayOptions,
  type SendOptions,
} from './replay-options.ts'
import { createFaults, remarkLeftOut } from './traffic-reading.ts'

type Prepared = Pick<
  ReplayOrder,
  | 'schedule'
  | 'keys'
  | 'target'
  | 'http'
  | 'connections'
  | 'workers'
  | 'patienceMs'
  | 'timeoutMs'
  | 'thresholds'
  | 'traffic'
>

/** @throws UsageError, InputError */
export const prepareSending = async (
  terminal: Terminal,
  files: readonly string[],
  options: SendOptions & Pick<ReplayOptions, 'asFastAs'>,
  isStopped: () => boolean,
): Promise<Prepared> => {
  const { target: given, http, workers, patience, timeout, threshold = [] } = options
  if (given === undefined)
    throw new UsageError('--target is missing; allowed: an address such as http://127.0.0.1:8080')
  const connections = connectionsOf(options)
  if (workers > connections)
    throw new UsageError(`${workers} workers have ${connections} connections; allowed: at least one for each`)
  const { addressIn, targetOf } = await import('../../load/replay/target.ts')
  asUsage(() => addressIn(given))
  const target = await targetOf(given, options)
  const { schedule, summary } = await readSchedule(terminal, files, options, isStopped)
  const keys = keysOf({ ids: schedule.keys, count: schedule.count }, options)
  checkSchedule(schedule, files)
  return {
    schedule,
    keys,
    target,
    http,
    connections,
    workers,
    patienceMs: patience,
    timeoutMs: timeout,
    thresholds: threshold,
    traffic: trafficOf(schedule, summary),
  }
}

const readSchedule = async (
  terminal: Terminal,
  files: readonly string[],
  { anyMethod = false, host }: SendOptions,
  isStopped: () => boolean,
): Promise<{ schedule: Schedule; summary: TrafficSummary }> => {
  const { readTraffic } = await import('../../load/traffic/read-traffic.ts')
  const { scheduleOf } = await import('../../load/replay/schedule.ts')
  const faults = createFaults(terminal)
  const traffic = readTraffic(files, { host, onFault: faults.add })
  const schedule = await scheduleOf(traffic.batches(), {
    anyMethod,
    onProgress: count => {
      terminal.progress(`${counted(count)} requests read`)
      if (isStopped()) throw new InputError('interrupted before the first request was sent')
    },
  })
  terminal.progress('')
  const summary = traffic.summary()
  faults.end()
  remarkLeftOut(terminal, summary)
  for (const [method, count] of Object.entries(schedule.skipped))
    terminal.remark(`${counted(count)} requests of ${method} are left out; --any-method sends them.`)
  return { schedule, summary }
}

const trafficOf = (
  schedule: Schedule,
  { sha256, faultyLines, files }: TrafficSummary,
): ReplayResult['traffic'] => ({
  files: files.map(({ file }) => file),
  sha256,
  requests: schedule.count,
  keys: schedule.keys.length,
  from: schedule.from === undefined ? null : isoOf(schedule.from),
  spanSeconds: (schedule.at[schedule.count - 1] ?? 0) / 1000,
  faultyLines,
})
