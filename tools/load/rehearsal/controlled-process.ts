// Starts a process of this program on a moved clock, sends it one command at a time, and ends it.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { InputError } from 'abohawa/common/errors.ts'
import type { Message, Order, Reply } from 'abohawa/common/moved-clock-commands.ts'
import { safeText } from 'abohawa/common/outside-text.ts'

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const patienceMs = 5_000
const keptText = 2_000

/**
 * @param name for sentences, such as `the gateway`
 * @throws InputError if it ends before it serves, with its last output
 */
export const startControlled = async (name: string, args: readonly string[], env: NodeJS.ProcessEnv) => {
  const child = fork(main, args, { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  const written = lastText(child)
  const exited = once(child, 'exit')
  let isStopping = false
  const ended = exited.then(([code, signal]): never => {
    const how = signal === null ? `exit code ${code}` : `ended by ${signal}`
    throw new InputError(`${name} of the rehearsal ended early, ${how}: ${safeText(written(), 500)}`)
  })
  // Not always awaited.
  ended.catch(() => {})
  let reply = Promise.withResolvers<Message>()
  child.on('message', (message: Message) => reply.resolve(message))
  // Sending to a process that just ended fails; `ended` rejects too.
  child.on('error', () => {})

  const answer = async (): Promise<Message> => {
    const message = await Promise.race([reply.promise, ended])
    reply = Promise.withResolvers()
    if ('failed' in message)
      throw new InputError(`${name} of the rehearsal failed: ${safeText(message.failed, 500)}`)
    return message
  }
  /** Resolves when it has ended; kills it after some seconds. */
  const stop = async (): Promise<void> => {
    if (!isStopping && child.connected) child.send('stop', () => {})
    isStopping = true
    const killing = setTimeout(() => child.kill('SIGKILL'), patienceMs)
    await exited
    clearTimeout(killing)
  }

  try {
    const { ready } = (await answer()) as { ready: string }
    return {
      url: ready,
      /** @throws InputError if the process has ended or the command failed */
      send: async (order: Order): Promise<Reply> => {
        child.send(order, () => {})
        return (await answer()) as Reply
      },
      /** Rejects if it ends before `stop`. */
      ended,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

const lastText = (child: ChildProcess): (() => string) => {
  const texts = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      texts[name] = (texts[name] + text).slice(-keptText)
    })
  return () => (texts.stderr || texts.stdout).trim() || 'it wrote nothing'
}
