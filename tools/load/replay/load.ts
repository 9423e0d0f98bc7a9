// The load of the generator, which shows whether the figures of a run are the target's or the generator's: event-loop delay,
// lateness and CPU of each sender, and the machine.

import { availableParallelism, cpus, totalmem } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { version } from 'abohawa/common/version.ts'
import { encodeIntoCompressedBase64 } from 'hdr-histogram-js'
import type { ReplayResult } from '../report/result.ts'
import { coarse } from './histograms.ts'
import { lateMs } from './recorder.ts'

export type LoadForm = {
  /** Of one core, without turns of the event loop that only wait for a due instant. */
  readonly cpuShare: number
  /** In ms. */
  readonly loopDelayP99: number
  /** The delay from a due instant until the sender noticed it, in ms; not the wait for a connection. */
  readonly lateP99: number
  /** The limit of this machine that it reached, as a sentence. */
  readonly limit?: string | undefined
}

const delayResolutionMs = 2

export const createLoad = () => {
  const delays = monitorEventLoopDelay({ resolution: delayResolutionMs })
  delays.enable()
  let began = performance.now()
  let cpuBegan = process.threadCpuUsage()
  const late = coarse()
  const recent = coarse()
  let idleMs = 0
  let turnedAt = began
  let hasWorked = true
  let form: LoadForm | undefined
  let limit: string | undefined

  const measure = (): LoadForm => {
    const { user, system } = process.threadCpuUsage(cpuBegan)
    const elapsed = performance.now() - began
    const busy = Math.max(0, (user + system) / 1000 - idleMs)
    const p99 = delays.count === 0 ? 0 : delays.percentile(99) / 1e6
    return {
      cpuShare: Math.min(1, busy / Math.max(1, elapsed)),
      loopDelayP99: Math.max(0, p99 - delayResolutionMs),
      lateP99: late.getValueAtPercentile(99) / 1000,
      limit,
    }
  }
  return {
    turned: (): void => {
      const at = performance.now()
      // A turn without work lasts microseconds; a longer one was a timer's wait, which takes no processor time.
      if (!hasWorked && at - turnedAt < 1) idleMs += at - turnedAt
      turnedAt = at
      hasWorked = false
    },
    worked: (): void => {
      hasWorked = true
    },
    due: (delayMs: number): void => late.recordValue(Math.max(0, Math.round(delayMs * 1000))),
    ended: (ms: number): void => recent.recordValue(Math.max(0, Math.round(ms * 1000))),
    /** The latencies since the last call, as a compressed histogram of µs. */
    recent: (): string => {
      const text = encodeIntoCompressedBase64(recent)
      recent.reset()
      return text
    },
    limited: (met: string): void => {
      limit ??= met
    },
    form: (): LoadForm => form ?? measure(),
    begin: (): void => {
      delays.reset()
      late.reset()
      idleMs = 0
      began = performance.now()
      cpuBegan = process.threadCpuUsage()
    },
    end: (): void => {
      form = measure()
      delays.disable()
    },
  }
}

const cpuBound = 0.95

/** The busiest sender, and whether the generator was the bottleneck. @param isClosed in a closed loop nothing is late */
export const generatorOf = (loads: readonly LoadForm[], isClosed: boolean) => {
  const most = (of: (load: LoadForm) => number): number => Math.max(0, ...loads.map(of))
  const cpuShare = most(load => load.cpuShare)
  const loopDelayP99 = most(load => load.loopDelayP99)
  const lateP99 = isClosed ? 0 : most(load => load.lateP99)
  const limit = loads.find(load => load.limit !== undefined)?.limit
  const reason =
    limit ??
    (cpuShare >= cpuBound
      ? `the load generator used ${Math.round(cpuShare * 100)} % of a core; use more --workers`
      : lateP99 > lateMs
        ? `the load generator sent 1 % of the requests ${Math.round(lateP99)} ms late or more; use more --workers, or stop other work on this machine`
        : null)
  const saturated = reason !== null
  return { cpuShare, loopDelayP99, lateP99, saturated, reason, limited: limit !== undefined }
}

export const machineOf = (): ReplayResult['machine'] => ({
  node: process.version,
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: availableParallelism(),
  memoryBytes: totalmem(),
  version,
})
