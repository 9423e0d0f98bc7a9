// Keeps a number of worker processes running, each a whole gateway: starts them, replaces one that ended by itself, restarts
// all of them one after the other, and stops them. This process holds the socket that consumers connect to and hands each
// connection to a worker, so that none is lost when a worker ends. What a worker serves is for gateway/.

import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import { AbohawaError } from '../errors.ts'

/** What a worker sends once it serves. */
export type WorkerReady = { readonly ready: { readonly apiUrl: string } }

/** What a worker is sent: to finish what it has and to end. */
type WorkerStop = 'stop'

export type WorkerReport = {
  /** 1 to the number of workers; its replacement has the same. */
  readonly number: number
  readonly pid: number
  readonly isReady: boolean
  /** Ms since the epoch. */
  readonly startedAt: number
  /** The Unix socket of its ops listener. */
  readonly opsPath: string
}

type PoolObserver = {
  onReady(worker: WorkerReport): void
  /** A worker ended by itself, and is replaced after this time. */
  onEnded(worker: WorkerReport, how: string, replacedInMs: number): void
}

export type PoolOptions = {
  /** Of the process, behind the script. */
  readonly args: readonly string[]
  /** Where the workers' sockets are made: a folder that only this user may enter. */
  readonly folder: string
  readonly clock: Clock
  readonly observer: PoolObserver
}

export type Pool = {
  /** Starts so many. Resolves with the address of the API when all of them serve. @throws WorkerError when one does not */
  start(count: number): Promise<string>
  /** All that run, by number. */
  workers(): readonly WorkerReport[]
  /** How many have ended by themselves since the start. */
  ended(): number
  /**
   * Replaces each by a new process, one at a time: the former one ends after the new one serves. Then there are `count`.
   * @throws WorkerError when a new one does not serve: it and those after it stay as they are
   */
  restart(count: number): Promise<void>
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

type Running = WorkerReport & {
  isReady: boolean
  /** It was sent to end. */
  isLeaving: boolean
  /** Signals that came before it could take them: they would have ended it. */
  readonly missed: Set<NodeJS.Signals>
  readonly process: Worker
  /** How many before it ended without having served. */
  readonly fails: number
  /** Resolves with the address of the API. */
  readonly served: Promise<string>
}

// One that served for a while is replaced at once; one that ends again and again must not fill the log.
const settledAfterMs = 10_000
const shortestPauseMs = 500
const longestPauseMs = 30_000

export const createPool = ({ args, folder, clock, observer }: PoolOptions): Pool => {
  // In turn: left to the kernel, one worker may get nearly all connections of a moment, and keep them for hours.
  cluster.schedulingPolicy = cluster.SCHED_RR
  const slots = new Map<number, Running>()
  let hasStarted = false
  let isStopping = false
  let starts = 0
  let ended = 0
  let restarting: Promise<void> | undefined
  // The one that a restart waits for.
  let starting: Running | undefined

  const begin = (number: number, fails = 0): Running => {
    starts += 1
    const opsPath = join(folder, `${starts}.sock`)
    cluster.setupPrimary({ args: [...args, '--worker', opsPath] })
    const process = cluster.fork()
    const served = Promise.withResolvers<string>()
    // Not everybody waits for it.
    served.promise.catch(() => {})
    const running: Running = {
      number,
      pid: process.process.pid ?? 0,
      startedAt: clock.now(),
      opsPath,
      isReady: false,
      isLeaving: false,
      missed: new Set(),
      process,
      fails,
      served: served.promise,
    }
    process.on('message', ({ ready }: WorkerReady) => {
      running.isReady = true
      for (const signal of running.missed) process.process.kill(signal)
      observer.onReady(running)
      served.resolve(ready.apiUrl)
    })
    process.once('exit', (code, signal) => {
      const how = howEnded(code, signal)
      served.reject(new WorkerError(number, how))
      void rm(opsPath, { force: true })
      const isMissed = hasStarted && !isStopping && !running.isLeaving
      if (isMissed && slots.get(number) === running) void replace(running, how)
    })
    return running
  }

  const replace = async (former: Running, how: string): Promise<void> => {
    const isSettled = former.isReady && clock.now() - former.startedAt >= settledAfterMs
    const fails = isSettled ? 0 : former.fails + 1
    const waitMs = isSettled ? 0 : Math.min(longestPauseMs, shortestPauseMs * 2 ** former.fails)
    ended += 1
    observer.onEnded(former, how, waitMs)
    await pause(waitMs, undefined, { ref: false })
    // A restart of all may have put another in its place.
    if (!isStopping && slots.get(former.number) === former)
      slots.set(former.number, begin(former.number, fails))
  }
  const leave = async (running: Running): Promise<void> => {
    running.isLeaving = true
    if (running.process.isDead()) return
    const exited = once(running.process, 'exit')
    if (running.process.isConnected()) running.process.send('stop' satisfies WorkerStop)
    await exited
  }

  const restart = async (count: number): Promise<void> => {
    for (let number = 1; number <= count && !isStopping; number++) {
      const next = begin(number)
      starting = next
      try {
        await next.served
      } finally {
        starting = undefined
      }
      const former = slots.get(number)
      slots.set(number, next)
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
      const others = Array.from({ length: count - 1 }, (_, i) => begin(i + 2))
      for (const other of others) slots.set(other.number, other)
      await Promise.all(others.map(({ served }) => served))
      hasStarted = true
      return apiUrl
    },
    workers: () =>
      [...slots.values()]
        .filter(({ process }) => !process.isDead())
        .map(({ number, pid, isReady, startedAt, opsPath }) => ({
          number,
          pid,
          isReady,
          startedAt,
          opsPath,
        }))
        .sort((one, other) => one.number - other.number),
    ended: () => ended,
    restart: count => {
      restarting ??= restart(count).finally(() => {
        restarting = undefined
      })
      return restarting
    },
    signal: signal => {
      for (const { process, isReady, missed } of [...slots.values(), ...(starting ? [starting] : [])])
        if (!isReady) missed.add(signal)
        else if (!process.isDead()) process.process.kill(signal)
    },
    stop: async () => {
      isStopping = true
      // It serves nobody yet.
      starting?.process.process.kill('SIGKILL')
      await restarting?.catch(() => {})
      await Promise.all([...slots.values()].map(leave))
    },
  }
}

const howEnded = (code: number | null, signal: string | null): string =>
  signal === null ? `exit code ${code}` : `ended by ${signal}`
