// Starts a gateway in a process of its own, whose clock follows that of the fleet, and calls it: gateway-child.ts is the other end.
// It can be killed and made to stand still as any process.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { FleetClock } from './clock.ts'
import type { Call, Numbered, Reply } from './gateway-child.ts'
import { writeInstant } from './instant.ts'

export type GatewayProcess = {
  readonly apiUrl: string
  readonly opsUrl: string
  configure(env: Readonly<Record<string, string>>): Promise<string>
  readCatalogue(): Promise<void>
  stop(): Promise<void>
  kill(): Promise<void>
  suspend(): void
  resume(): void
}

export type ProcessParts = {
  readonly clock: FleetClock
  readonly skewMs: number
  readonly env: Readonly<Record<string, string>>
  /** For its file. */
  readonly folder: string
  /** The name of a planted fault. */
  readonly sabotage: string | undefined
}

const script = new URL('gateway-child.ts', import.meta.url)
// What a fault holds up goes on beside the moves, as in one process.
const longestDueMs = 40
let started = 0

/** @throws Error when it can't start, as with a store that does not answer */
export const startGatewayProcess = async ({
  clock,
  skewMs,
  env,
  folder,
  sabotage,
}: ProcessParts): Promise<GatewayProcess> => {
  const instant = join(folder, `instant-${++started}`)
  const written = writeInstant(instant)
  written.write(clock.now())
  const child = fork(script, sabotage ? [sabotage] : [], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  const call = caller(child)
  let isSuspended = false
  const unfollow = clock.follow({
    moved: written.write,
    runDue: async () => {
      if (!isSuspended) await Promise.race([call({ do: 'due' }).catch(() => {}), pause(longestDueMs)])
    },
  })
  child.once('exit', () => {
    unfollow()
    written.close()
  })
  const { apiUrl, opsUrl } = (await call({ do: 'start', env, skewMs, instant }).catch(error => {
    child.kill('SIGKILL')
    throw error
  })) as { apiUrl: string; opsUrl: string }
  return {
    apiUrl,
    opsUrl,
    configure: async changed => String(await call({ do: 'configure', env: changed })),
    readCatalogue: async () => void (await call({ do: 'catalogue' })),
    stop: async () => {
      const exited = once(child, 'exit')
      await call({ do: 'stop' })
      await exited
    },
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
    suspend: () => {
      isSuspended = true
      child.kill('SIGSTOP')
    },
    resume: () => {
      isSuspended = false
      child.kill('SIGCONT')
    },
  }
}

/** Calls fail when the process ends. */
const caller = (child: ChildProcess) => {
  const waiting = new Map<number, { done: (value: unknown) => void; failed: (error: Error) => void }>()
  let calls = 0
  child.on('message', (reply: Reply) => {
    const call = waiting.get(reply.id)
    waiting.delete(reply.id)
    if ('error' in reply) call?.failed(new Error(reply.error))
    else call?.done(reply.value)
  })
  child.once('exit', (code, signal) => {
    for (const { failed } of waiting.values())
      failed(new Error(`a gateway's process ended: ${signal ?? code}`))
    waiting.clear()
  })
  return (call: Call): Promise<unknown> =>
    new Promise((done, failed) => {
      calls += 1
      waiting.set(calls, { done, failed })
      const numbered: Numbered = { ...call, id: calls }
      // Nobody reads it any more where the process has just ended.
      child.send(numbered, error => error && failed(error))
    })
}
