// Serves with several workers: the process that operators start, which answers no consumer itself. Starts the workers and the
// listeners for operators and probes, follows the configuration, hands signals on, and ends when the workers have.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../clock.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { watchFiles } from '../config/watch.ts'
import { messageOf } from '../errors.ts'
import { openListener } from '../gateway/listener.ts'
import { createReload, type Reload } from '../gateway/reload.ts'
import { createCounters } from '../telemetry/counters.ts'
import type { Log } from '../telemetry/log.ts'
import { countRefusals } from '../telemetry/refusal-counter.ts'
import { createThrottle } from '../telemetry/throttle.ts'
import { ofAnotherAccount } from '../upstream/upstream.ts'
import { buildOpsProxy, type OpsProxyOptions } from './ops-proxy.ts'
import { createPool } from './pool.ts'

export type ServeWorkersParts = {
  readonly clock: Clock
  readonly log: Log
  /** The arguments of this process, with which each worker is started. */
  readonly args: readonly string[]
  /** @throws ConfigError */
  readonly read: () => LoadedConfig
  /** The files of the configuration. */
  readonly files: readonly string[]
}

export type Workers = {
  readonly apiUrl: string
  readonly opsUrl: string
  readonly healthUrl: string | undefined
  /** Hands a signal to every worker, and reads the configuration again at SIGHUP. */
  signal(signal: NodeJS.Signals): void
  /** Turns readiness red, and resolves when all workers have finished what they had. */
  close(): Promise<void>
}

/** @throws WorkerError, InputError when a worker or a listener can't be started */
export const startWorkers = async (
  config: Config,
  { clock, log, args, read, files }: ServeWorkersParts,
): Promise<Workers> => {
  await using opening = new AsyncDisposableStack()
  // Only this user may enter it.
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-'))
  opening.defer(() => rm(folder, { recursive: true, force: true }))
  let count = config.server.workers
  let isDraining = false
  // A start is not disturbed by one either.
  let isRestarting = true
  // The workers log what they applied; here only these two listeners follow.
  const reload: Reload = createReload({
    running: config,
    read,
    prepare: async () => [],
    apply: next => {
      log.level = next.log.level
      pool.apply(next.server)
    },
    needRestart: next => ofAnotherAccount(reload.running(), next),
    observer: {
      onApplied: () => {},
      onRestartNeeded: () => {},
      onRefused: () => {},
      onOutcome: () => {},
    },
  })
  const pool = createPool({
    args,
    folder,
    clock,
    configuration: () => ({ config: reload.running() }),
    workerTimeoutMs: config.server.workerTimeoutMs,
    observer: {
      onReady: ({ number, pid }) => log.info({ worker: number, pid }, 'worker ready'),
      onEnded: ({ number, pid }, how, replacedInMs) =>
        log.error({ worker: number, pid, reason: how, replacedInMs }, 'a worker ended by itself'),
      onSilent: ({ number, pid }, endedAfterMs) =>
        log.warn({ worker: number, pid, endedAfterMs }, 'a worker does not respond'),
      onHeardAgain: ({ number, pid }) => log.info({ worker: number, pid }, 'the worker responds again'),
    },
  })
  const restart = async (): Promise<void> => {
    log.info('restarting the workers, one at a time')
    const former = count
    try {
      const next = await reload.readAll()
      count = next.config.server.workers
      await pool.restart(count, { config: next.config })
      await reload.restarted(next)
      // Applies what changed meanwhile.
      void watching.readNow()
      log.info({ workers: count }, 'workers restarted')
    } catch (error) {
      count = former
      log.error({ reason: messageOf(error) }, 'workers not restarted, those that are left serve on')
    }
  }
  const seldom = createThrottle(clock)
  const counters = createCounters()
  const refused = countRefusals(counters)
  const partsOf = {
    workers: pool.workers,
    configured: () => count,
    ended: pool.ended,
    timedOut: pool.timedOut,
    closings: pool.closings,
    restart: () => {
      if (isRestarting || isDraining) return false
      isRestarting = true
      void restart().finally(() => {
        isRestarting = false
      })
      return true
    },
    isDraining: () => isDraining,
    counts: counters.text,
    observer: {
      refused: (reason: string, from?: string) => {
        refused(reason)
        if (reason === 'token_wrong')
          seldom('ops token', () => log.warn({ from }, 'a request to the ops listener had a wrong token'))
      },
    },
  }
  const ops = buildOpsProxy(partsOf, opsOptions(config))
  opening.defer(() => ops.close())
  const opsUrl = await openListener(ops, 'ops', config.ops, config)
  let healthUrl: string | undefined
  if (config.health.port !== null) {
    const opened = buildOpsProxy(partsOf, statusOptions(config))
    opening.defer(() => opened.close())
    healthUrl = await openListener(opened, 'health', { ...config.health, port: config.health.port }, config)
  }
  opening.defer(() => pool.stop())
  const apiUrl = await pool.start(count)
  isRestarting = false

  const watching = watchFiles({
    files: () => files,
    pollMs: config.config.pollEveryMs,
    onChange: reload.now,
    onQuiet: reload.again,
  })
  opening.defer(() => watching.close())

  const opened = opening.move()
  return {
    apiUrl,
    opsUrl,
    healthUrl,
    signal: signal => {
      pool.signal(signal)
      if (signal === 'SIGHUP') void watching.readNow()
    },
    close: async () => {
      isDraining = true
      await pool.stop()
      await opened.disposeAsync()
    },
  }
}

// Longer than the deadline of a worker's answer, which waits for the provider.
const answerWithinMs = 120_000

export const opsOptions = ({ ops, provider: { totalTimeoutMs } }: Config): OpsProxyOptions => ({
  ...ops,
  section: 'ops',
  answerWithinMs: answerWithinMs + totalTimeoutMs,
})

const statusOptions = ({ ops, health }: Config): OpsProxyOptions => ({
  section: 'health',
  host: health.host,
  allowedHosts: ops.allowedHosts,
  token: null,
  maxConnections: health.maxConnections,
  requestTimeoutMs: ops.requestTimeoutMs,
  answerWithinMs,
})
