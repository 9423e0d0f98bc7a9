// Calls to a process that was forked for them, both ends: each is one message, and gets its value back, or why it failed. The
// process ends itself when the channel to it is closed.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

type Numbered<Call> = { readonly id: number; readonly call: Call }
type Reply = { readonly id: number; readonly value?: unknown; readonly error?: string }

export type Called<Call> = {
  readonly child: ChildProcess
  /** Rejects also when the process ends. */
  call(call: Call): Promise<unknown>
  /** Closes the channel. Resolves when the process has ended. */
  end(): Promise<void>
  /** The same by SIGKILL. */
  kill(): Promise<void>
}

const codeFolder = fileURLToPath(new URL('../../node_modules/.cache/proof-code', import.meta.url))

export const forkCalled = <Call>(script: URL, args: readonly string[]): Called<Call> => {
  const child = fork(script, [...args], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // Node warns that its stripper of types, which plants faults, is an experiment.
    execArgv: ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=64'],
    // Each process would compile the same code again.
    env: { NODE_COMPILE_CACHE: codeFolder, ...process.env },
  })
  const exited = once(child, 'exit')
  const waiting = new Map<number, { done: (value: unknown) => void; failed: (error: Error) => void }>()
  let calls = 0
  child.on('message', ({ id, value, error }: Reply) => {
    const call = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) call?.done(value)
    else call?.failed(new Error(error))
  })
  child.once('exit', (code, signal) => {
    for (const { failed } of waiting.values()) failed(new Error(`its process ended: ${signal ?? code}`))
  })
  return {
    child,
    call: call =>
      new Promise((done, failed) => {
        calls += 1
        waiting.set(calls, { done, failed })
        const numbered: Numbered<Call> = { id: calls, call }
        // Nobody reads it any more where the process has just ended.
        child.send(numbered, error => error && failed(error))
      }),
    end: async () => {
      if (child.connected) child.disconnect()
      await exited
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** In the process that is called. */
export const serveCalls = <Call>(take: (call: Call) => Promise<unknown>): void => {
  process.on('message', ({ id, call }: Numbered<Call>) => {
    // Nobody reads it any more where the other process has just ended.
    const reply = (sent: Reply): void => void (process.connected && process.send?.(sent, () => {}))
    take(call).then(
      value => reply({ id, value }),
      (error: unknown) => reply({ id, error: (error instanceof Error && error.stack) || String(error) }),
    )
  })
}
