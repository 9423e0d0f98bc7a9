// Keeps a number of worker processes running, each a whole gateway: starts them, replaces one that ended by itself or does not
// respond, restarts all of them one after the other, and stops them. This process holds the socket that consumers connect to
// and passes each connection to a worker, so that none is lost when a worker ends. gateway/ is the code of a worker. Longer than
// 300 lines, because everything that starts and ends a worker shares one state.

import cluster, { type Worker } from 'node:cluster'
import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import { ticketKeyBytes } from '../edge/connection/tls.ts'
import { AbohawaError, messageOf } from '../errors.ts'
import {
  heartbeatEveryMs,
  type InEffect,
  type WorkerConfiguration,
  type WorkerMessage,
  type WorkerStop,
} from './channel.ts'
import { type KeptConnections, keepConnections } from './kept-connections.ts'

export type WorkerReport = {
  /** 1 to the number of workers; its replacement has the same. */
  readonly number: number
  readonly pid: number
  /** It serves, and responds. */
  readonly isReady: boolean
  /** Its heartbeats come. */
  readonly isResponding: boolean
  /** Ms since the epoch. */
  readonly startedAt: number
  /** The Unix socket of its ops listener. */
  readonly opsPath: string
}

type PoolObserver = {
  onReady(worker: WorkerReport): void
  /** A worker ended by itself, and is replaced after this time. */
  onEnded(worker: WorkerReport, how: string, replacedInMs: number): void
  /** A worker sends no heartbeats; it is ended after this time without one. */
  onSilent(worker: WorkerReport, endedAfterMs: number): void
  onHeardAgain(worker: WorkerReport): void
}

export type PoolOptions = {
  /** The arguments of the process, after the script. */
  readonly args: readonly string[]
  /** Where the workers' sockets are made: a folder that only this user may enter. */
  readonly folder: string
  readonly clock: Clock
  /** The configuration of a worker that is started, except in a restart. */
  readonly configuration: () => InEffect
  /** How long a worker may send no heartbeat before it is ended. */
  readonly workerTimeoutMs: number
  readonly observer: PoolObserver
}

export type Pool = {
  /**
   * Starts so many. Resolves with the address of the API when each of them serves or has failed once; it is tried again.
   * @throws WorkerError when the first one does not serve
   */
  start(count: number): Promise<string>
  /** All that run, by number. */
  workers(): readonly WorkerReport[]
  /** How many have ended by themselves since the start. */
  ended(): number
  /** How many were ended since the start because they did not respond. */
  timedOut(): number
  /** How often the port was closed since the start, because no worker came in time. */
  closings(): number
  /** Sets new options. */
  apply(options: Pick<PoolOptions, 'workerTimeoutMs'>): void
  /**
   * Replaces each by a new process, one at a time: the former one ends after the new one serves. Then there are `count`.
   * @throws WorkerError when a new one does not serve: it and those after it stay as they are
   */
  restart(count: number, configuration: InEffect): Promise<void>
  signal(signal: NodeJS.Signals): void
  /** Resolves when all have finished what they had. */
  stop(): Promise<void>
}

/** A worker that ended before it served. Its own sentence stands on standard error. */
class WorkerError extends AbohawaError {
  override name = 'WorkerError'

  constructor(number: number, how: string) {
    super('worker_ended', `worker ${number} ended before it was ready: ${how}`)
  }
}

type Running = Omit<WorkerReport, 'isReady' | 'isResponding'> & {
  hasServed: boolean
  isOver: boolean
  /** It was sent the stop command, or killed before it served. */
  isLeaving: boolean
  /** It was ended because it did not respond. */
  hasTimedOut: boolean
  /** Heartbeats that were due since the last one. */
  silentFor: number
  /** Signals that came before it could handle them: they would have ended it. */
  readonly missed: Set<NodeJS.Signals>
  readonly process: Worker
  readonly kept: KeptConnections
  /** How many before it ended without having served. */
  fails: number
  /** Resolves with the address of the API. */
  readonly served: Promise<string>
  /** Resolves when it has ended, or could not be started. */
  readonly over: Promise<void>
}

// A worker that served for a while is replaced at once; one that ends again and again must not fill the log.
const settledAfterMs = 10_000
const shortestPauseMs = 500
const longestPauseMs = 30_000
// So many heartbeats may be late: the machine is busy.
const silentAfter = 3
// A stopping worker gets no more time than this, however long `workerTimeout` is.
const leavesWithinMs = 5_000
// While it loads its code a worker sends few heartbeats or none, the longer the more of them start at once.
const servesWithinMs = 60_000
const nothingKept: KeptConnections = { isGone: () => true, release: () => {}, drop: () => {} }
// Connections wait for the next worker for so long, and up to so many; then the port refuses, and a proxy uses another gateway.
const holdsForMs = 5_000
const maxHeld = 300
const pollEveryMs = 100

const reportOf = ({ number, pid, hasServed, silentFor, startedAt, opsPath }: Running): WorkerReport => {
  const isResponding = !hasServed || silentFor < silentAfter
  return { number, pid, isReady: hasServed && isResponding, isResponding, startedAt, opsPath }
}

export const createPool = ({
  args,
  folder,
  clock,
  configuration,
  observer,
  ...options
}: PoolOptions): Pool => {
  // Round robin: the kernel may give one worker nearly all connections of a moment, which it keeps for hours.
  cluster.schedulingPolicy = cluster.SCHED_RR
  // For every worker, so that a client resumes its TLS session at any of them.
  const ticketKey = randomBytes(ticketKeyBytes).toString('base64')
  const slots = new Map<number, Running>()
  // Includes stopping workers, and the one that a restart waits for.
  const alive = new Set<Running>()
  const deadUntilAnotherServes = new Set<Running>()
  let { workerTimeoutMs } = options
  let hasStarted = false
  let isStopping = false
  let starts = 0
  let ended = 0
  let timedOut = 0
  let closings = 0
  let holding: NodeJS.Timeout | undefined
  let restarting: Promise<void> | undefined
  // The configuration of a restart under way, and the numbers of the workers that run with it.
  let renewed: { readonly next: InEffect; readonly numbers: Set<number> } | undefined
  // The one that a restart waits for.
  let starting: Running | undefined

  // Counted in turns of this timer: after this process or the machine stood still, the worker's heartbeats come first.
  const watch = (): void => {
    for (const running of alive) {
      running.silentFor += 1
      if (running.hasTimedOut) continue
      if (running.hasServed && running.silentFor === silentAfter)
        observer.onSilent(reportOf(running), workerTimeoutMs)
      const boundMs = running.isLeaving
        ? Math.min(leavesWithinMs, workerTimeoutMs)
        : running.hasServed
          ? workerTimeoutMs
          : Math.max(servesWithinMs, workerTimeoutMs)
      if (running.silentFor * heartbeatEveryMs < boundMs) continue
      running.hasTimedOut = true
      timedOut += 1
      running.process.process.kill('SIGKILL')
    }
  }
  const watching = setInterval(watch, heartbeatEveryMs).unref()
  const heard = (running: Running): void => {
    const wasSilent = running.hasServed && running.silentFor >= silentAfter
    running.silentFor = 0
    if (wasSilent) observer.onHeardAgain(reportOf(running))
  }
  /** Whether connections wait for a worker that is yet to come. */
  const mustKeep = (): boolean => {
    const isAlone =
      hasStarted && !isStopping && [...alive].every(({ kept, hasServed }) => kept.isGone() || !hasServed)
    if (isAlone) hold()
    return isAlone
  }
  const hold = (): void => {
    if (holding) return
    const since = performance.now()
    holding = setInterval(() => {
      // Those of operators are among them; cluster does not say how many wait.
      const held = process.getActiveResourcesInfo().filter(name => name === 'TCPSocketWrap').length
      if (held <= maxHeld && performance.now() - since < holdsForMs) return
      stopHolding()
      const gone = new Set([...alive, ...deadUntilAnotherServes].filter(({ kept }) => kept.isGone()))
      if ([...gone].some(({ hasServed }) => hasServed)) closings += 1
      for (const running of gone) {
        running.kept.drop()
        deadUntilAnotherServes.delete(running)
      }
    }, pollEveryMs).unref()
  }
  const stopHolding = (): void => {
    clearInterval(holding)
    holding = undefined
  }
  const releaseKept = (): void => {
    stopHolding()
    for (const running of deadUntilAnotherServes) {
      // An exit may be known before the end of its channel, which then asks what is to be kept.
      if (!running.kept.isGone()) continue
      running.kept.release()
      deadUntilAnotherServes.delete(running)
    }
  }

  const begin = (number: number, fails = 0, given?: InEffect): Running => {
    starts += 1
    const opsPath = join(folder, `${starts}.sock`)
    cluster.setupPrimary({ args: [...args, '--worker', opsPath, '--worker-number', String(number)] })
    let process: Worker
    try {
      process = cluster.fork()
    } catch (error) {
      throw new WorkerError(number, messageOf(error))
    }
    // The system may refuse one more process or file; an event says why.
    const isRefused = process.process.pid === undefined
    const kept = isRefused ? nothingKept : keepConnections(process, mustKeep)
    const served = Promise.withResolvers<string>()
    const over = Promise.withResolvers<void>()
    // Not everybody waits for it.
    served.promise.catch(() => {})
    const running: Running = {
      number,
      pid: process.process.pid ?? 0,
      startedAt: clock.now(),
      opsPath,
      hasServed: false,
      isOver: false,
      isLeaving: false,
      hasTimedOut: false,
      silentFor: 0,
      missed: new Set(),
      process,
      kept,
      fails,
      served: served.promise,
      over: over.promise,
    }
    alive.add(running)
    const end = (how: string): void => {
      running.isOver = true
      alive.delete(running)
      deadUntilAnotherServes.add(running)
      served.reject(new WorkerError(number, how))
      over.resolve()
      void rm(opsPath, { force: true })
      const isMissed = hasStarted && !isStopping && !running.isLeaving
      if (isMissed && slots.get(number) === running) void replace(running, how)
    }
    process.on('error', error => {
      // A message to one that has just been killed fails; its exit says so. One that was never started has no exit.
      if (!isRefused) return
      delete cluster.workers?.[process.id]
      end(messageOf(error))
    })
    process.on('message', ({ ready, asks }: WorkerMessage) => {
      heard(running)
      if (asks) process.send({ inEffect: given ?? configuration(), ticketKey } satisfies WorkerConfiguration)
      if (!ready) return
      running.hasServed = true
      for (const signal of running.missed) process.process.kill(signal)
      releaseKept()
      observer.onReady(reportOf(running))
      served.resolve(ready.apiUrl)
    })
    process.once('exit', (code, signal) => {
      const how = running.hasTimedOut
        ? `it did not respond for ${running.silentFor * heartbeatEveryMs} ms`
        : howEnded(code, signal)
      end(how)
    })
    return running
  }

  const replace = async (former: Running, how: string): Promise<void> => {
    const isSettled = former.hasServed && Math.abs(clock.now() - former.startedAt) >= settledAfterMs
    const fails = isSettled ? 0 : former.fails + 1
    const waitMs = isSettled ? 0 : Math.min(longestPauseMs, shortestPauseMs * 2 ** former.fails)
    ended += 1
    observer.onEnded(reportOf(former), how, waitMs)
    await pause(waitMs, undefined, { ref: false })
    // A restart of all may have put another in its place.
    if (isStopping || slots.get(former.number) !== former) return
    try {
      const next = renewed?.numbers.has(former.number) ? renewed.next : undefined
      slots.set(former.number, begin(former.number, fails, next))
    } catch (error) {
      former.hasServed = false
      former.fails = fails
      await replace(former, messageOf(error))
    }
  }
  const leave = async (running: Running): Promise<void> => {
    if (running.isLeaving || running.isOver) return running.over
    running.isLeaving = true
    // It serves nobody yet, and may not hear the order.
    if (!running.hasServed) running.process.process.kill('SIGKILL')
    else if (running.process.isConnected()) running.process.send('stop' satisfies WorkerStop)
    await running.over
  }

  const restart = async (count: number, next: InEffect): Promise<void> => {
    const numbers = new Set<number>()
    renewed = { next, numbers }
    for (let number = 1; number <= count && !isStopping; number++) {
      const replacement = begin(number, 0, next)
      starting = replacement
      try {
        await replacement.served
      } finally {
        starting = undefined
      }
      const former = slots.get(number)
      slots.set(number, replacement)
      numbers.add(number)
      if (former) await leave(former)
    }
    for (const [number, running] of slots)
      if (number > count) {
        slots.delete(number)
        await leave(running)
      }
  }

  return {
    start: async count => {
      // The first alone: what is wrong is said once, and the others find its compiled code.
      const first = begin(1)
      slots.set(1, first)
      const apiUrl = await first.served
      hasStarted = true
      // Each has its slot at once: a stop, or another one that can't be started, must not leave it behind.
      for (let number = 2; number <= count && !isStopping; number++) slots.set(number, begin(number))
      await Promise.allSettled([...slots.values()].map(({ served }) => served))
      return apiUrl
    },
    workers: () =>
      [...slots.values()]
        .filter(({ isOver, process }) => !isOver && !process.isDead())
        .map(reportOf)
        .sort((one, other) => one.number - other.number),
    ended: () => ended,
    timedOut: () => timedOut,
    closings: () => closings,
    apply: next => {
      ;({ workerTimeoutMs } = next)
    },
    restart: (count, next) => {
      restarting ??= restart(count, next).finally(() => {
        restarting = undefined
        renewed = undefined
      })
      return restarting
    },
    signal: signal => {
      for (const { process, hasServed, missed } of alive)
        if (!hasServed) missed.add(signal)
        else if (!process.isDead()) process.process.kill(signal)
    },
    stop: async () => {
      isStopping = true
      // It serves nobody yet.
      starting?.process.process.kill('SIGKILL')
      releaseKept()
      // At once, without waiting for the worker of a restart; then the workers that the restart has started meanwhile.
      await Promise.all([restarting?.catch(() => {}), ...[...slots.values()].map(leave)])
      await Promise.all([...slots.values()].map(leave))
      clearInterval(watching)
    },
  }
}

const howEnded = (code: number | null, signal: string | null): string =>
  signal === null ? `exit code ${code}` : `ended by ${signal}`
