// `abohawa serve --processes N`: keeps N child processes running, passes signals on, and at SIGALRM replaces them one by one.
// docs/decisions/processes.md says what happens to connections.

import { type ChildProcess, fork } from 'node:child_process'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { request } from 'undici'
import { onSignal, sameWithinMs } from '../../command-line/interruption.ts'
import { InputError, messageOf } from '../../common/errors.ts'
import type { Config } from '../../config/schema.ts'
import type { Log } from '../../telemetry/log.ts'

/** What a gateway that serves tells the process that started it. */
export type Serving = { readonly opsUrl: string }

type SupervisorParts = {
  readonly args: readonly string[]
  readonly log: Log
  readonly config: Config
  /** The configuration as the files are now. Rejects where none could start with it. */
  readonly check: () => Promise<Config>
  readonly reopenLog: () => void
}

// A process that served this long is restarted immediately. One that ends again and again must not fill the log.
const settledAfterMs = 10_000
const [shortestPauseMs, longestPauseMs] = [500, 30_000]
const askEveryMs = 100
// A process without an answer is queried again; the next process waits for it.
const answersWithinMs = 5_000
// A start takes seconds: a restart that waited this long stops.
const readyWithinMs = 90_000

type Child = ReturnType<typeof start>

/** @param args the arguments of this process */
const start = (args: readonly string[], number: number) => {
  const gateway = fork(process.argv[1] as string, [...args, '--process', String(number)])
  const ready = Promise.withResolvers<boolean>()
  const ended = Promise.withResolvers<{ code: number; how: string }>()
  const child = {
    gateway,
    /** Resolves with true once its /readyz is 200, with false when it ends before. */
    ready: ready.promise,
    ended: ended.promise,
    /** Takes signals, and may have requests. */
    isListening: false,
    isServing: false,
    isLeaving: false,
  }
  const end = (code: number, how: string): void => {
    child.isListening = false
    child.isServing = false
    ready.resolve(false)
    ended.resolve({ code, how })
  }
  gateway.once('exit', (code, signal) => end(code ?? 1, signal ? `ended by ${signal}` : `exit code ${code}`))
  // The system may refuse one more process. The error of a running one is a signal that came too late.
  gateway.on('error', error => gateway.pid === undefined && end(1, messageOf(error)))
  gateway.once('message', async message => {
    child.isListening = true
    while (gateway.connected && !(await answersReady(message as Serving))) await pause(askEveryMs)
    child.isServing = gateway.connected
    if (child.isServing) ready.resolve(true)
  })
  return child
}

const answersReady = ({ opsUrl }: Serving): Promise<boolean> =>
  request(`${opsUrl}/readyz`, { reset: true, headersTimeout: answersWithinMs, bodyTimeout: answersWithinMs })
    .then(({ statusCode, body }) => body.dump().then(() => statusCode === 200))
    .catch(() => false)

/** The longest end of a gateway, which whoever stops it has to wait: its slowest request arrives at the last moment and waits for the provider. */
export const endsWithinMs = ({ server, provider }: Config): number =>
  server.drainForMs + server.requestTimeoutMs + provider.totalTimeoutMs

const isWithin = (ms: number, awaited: Promise<unknown>): Promise<boolean> =>
  Promise.race([awaited.then(() => true), pause(ms, false, { ref: false })])

/** Stops a process, and kills it if it has not ended in time. */
export const endInOrder = async (
  { gateway, ended }: { readonly gateway: ChildProcess; readonly ended: Promise<unknown> },
  withinMs: number,
  onKilled: () => void,
): Promise<void> => {
  gateway.kill()
  if (await isWithin(withinMs, ended)) return
  onKilled()
  gateway.kill('SIGKILL')
  await ended
}

/** What a restart needs of a process. */
type Replaced = {
  readonly ready: Promise<boolean>
  readonly isServing: boolean
  isLeaving: boolean
}

/**
 * Ends one process after the other, each once all serve.
 * @param children by number; when `end` resolves, the next process is in the place of the one that ended
 * @throws InputError where a process does not serve in time: the others stay
 */
export const replaceInOrder = async <Of extends Replaced>(
  children: ReadonlyMap<number, Of>,
  withinMs: number,
  end: (number: number, child: Of) => Promise<void>,
): Promise<void> => {
  for (const [number, old] of [...children]) {
    // A starting process is waited for; one that ended and waits for its next start is not.
    await isWithin(withinMs, Promise.all([...children.values()].map(({ ready }) => ready)))
    if (![...children.values()].every(({ isServing }) => isServing))
      throw new InputError(`process ${number} stays, because not all of them serve`)
    old.isLeaving = true
    await end(number, old)
    const next = children.get(number) as Of
    if (!(await isWithin(withinMs, next.ready)))
      throw new InputError(`process ${number} is not ready after ${withinMs / 1_000} s`)
    if (!(await next.ready)) throw new InputError(`process ${number} ended before it was ready`)
  }
}

/** Runs a restart. A signal during one starts another one after it, because the files may have changed since they were read. */
const oneAtATime = (restart: () => Promise<void>, stopping: AbortSignal): (() => Promise<void>) => {
  let begunAt: number | undefined
  let isRequestedAgain = false
  return async () => {
    if (begunAt !== undefined) {
      if (performance.now() - begunAt >= sameWithinMs) isRequestedAgain = true
      return
    }
    do {
      begunAt = performance.now()
      isRequestedAgain = false
      await restart()
    } while (isRequestedAgain && !stopping.aborted)
    begunAt = undefined
  }
}

/** Resolves with the exit code when all processes have ended. */
export const supervise = async (
  processes: number,
  { args, log, config, check, reopenLog }: SupervisorParts,
): Promise<number> => {
  const children = new Map<number, Child>()
  const stopping = new AbortController()
  const begin = (number: number): Child => {
    const child = start(args, number)
    children.set(number, child)
    log.info({ process: number, pid: child.gateway.pid }, 'process started')
    return child
  }
  /** Restarts a process whenever it ends. Resolves after the stop, with the last exit code. */
  const keep = async (number: number, first: Child): Promise<number> => {
    let pauseMs = 0
    for (let child = first; ; child = begin(number)) {
      const startedAt = performance.now()
      const { code, how } = await child.ended
      const hasServed = await child.ready
      // A process that did not serve yet was killed.
      if (stopping.signal.aborted) return hasServed ? code : 0
      if (child.isLeaving || (hasServed && performance.now() - startedAt >= settledAfterMs)) pauseMs = 0
      else pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, 2 * pauseMs))
      if (child.isLeaving) continue
      log.error({ process: number, reason: how, restartsInMs: pauseMs }, 'process ended unexpectedly')
      await pause(pauseMs, undefined, stopping).catch(() => {})
      if (stopping.signal.aborted) return 0
    }
  }
  let endMs = endsWithinMs(config)
  let stopAt = 0
  const killed = (number: number): void =>
    log.error({ process: number, seconds: endMs / 1_000 }, 'process killed, it did not end')
  const killAll = (): void => {
    for (const [number, { gateway, isListening }] of children) {
      if (!isListening) continue
      killed(number)
      gateway.kill('SIGKILL')
    }
  }
  const replaceAll = async (): Promise<void> => {
    log.info('restarting processes one by one')
    try {
      // The running processes may have longer timeouts.
      endMs = Math.max(endMs, endsWithinMs(await check()))
      await replaceInOrder(children, readyWithinMs, async (number, old) => {
        await endInOrder(old, endMs, () => killed(number))
        // So that `keep` has started the next one.
        await nextTurn()
      })
      if (!stopping.signal.aborted) log.info('processes restarted')
    } catch (error) {
      // None is started again, which is no fault of the restart.
      if (stopping.signal.aborted) return
      log.error({ reason: messageOf(error) }, 'processes not restarted')
    }
  }
  // SIGUSR1 is Node's, and would open a debugger.
  onSignal('SIGALRM', oneAtATime(replaceAll, stopping.signal))
  for (const signal of ['SIGHUP', 'SIGUSR2'] as const)
    onSignal(signal, () => {
      if (signal === 'SIGUSR2') reopenLog()
      // Before it serves, a signal would end it.
      for (const { gateway, ready } of children.values())
        void ready.then(isReady => isReady && gateway.kill(signal))
    })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGQUIT'] as const)
    onSignal(signal, () => {
      if (!stopping.signal.aborted) {
        log.info({ signal }, 'stopping')
        stopAt = performance.now()
        setTimeout(killAll, endMs).unref()
      }
      stopping.abort()
      const isSecond = performance.now() - stopAt >= sameWithinMs
      for (const { gateway, isListening, isLeaving } of children.values()) {
        // One that is being replaced ends already, and would end at once.
        if (isListening && isLeaving && !isSecond) continue
        // A process that does not listen yet may miss the signal.
        gateway.kill(isListening ? signal : 'SIGKILL')
      }
    })

  // The first process starts first: a fault is reported once, and the others find its compiled code.
  const first = begin(1)
  if (!(await first.ready)) return stopping.signal.aborted ? 0 : (await first.ended).code
  const kept = [keep(1, first)]
  for (let number = 2; number <= processes && !stopping.signal.aborted; number++)
    kept.push(keep(number, begin(number)))
  const codes = await Promise.all(kept)
  log.info('stopped')
  return Math.max(...codes)
}
