// Hands seeds to processes, one at a time to each, and collects what they judged. A process that dies is replaced, and its seed
// counts as failed.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Judged, Message, Order } from './lane-process.ts'

export type LaneOptions = {
  readonly lanes: number
  readonly folder: string
  /** The name of a planted fault. */
  readonly sabotage?: string
  /** The next seed; undefined when there is none any more. */
  readonly next: () => number | undefined
  readonly shrink: () => boolean
  readonly onJudged: (judged: Judged) => void
  /** A seed that could not be judged. */
  readonly onFailed: (seed: number, why: string) => void
}

const file = new URL('lane-process.ts', import.meta.url)
// A seed takes seconds, and shrinking its history minutes.
const patienceMs = 300_000

export const runLanes = async (options: LaneOptions): Promise<void> => {
  await Promise.all(Array.from({ length: options.lanes }, () => runLane(options)))
}

const runLane = async ({
  folder,
  sabotage,
  next,
  shrink,
  onJudged,
  onFailed,
}: LaneOptions): Promise<void> => {
  let lane: Awaited<ReturnType<typeof openLaneProcess>> | undefined
  for (let seed = next(); seed !== undefined; seed = next()) {
    try {
      lane ??= await openLaneProcess(folder, sabotage)
      const message = await lane.take({ seed, shrink: shrink() })
      if ('failed' in message) onFailed(seed, message.failed)
      else if ('verdict' in message) onJudged(message)
    } catch (error) {
      onFailed(seed, String(error))
      lane?.kill()
      lane = undefined
    }
  }
  await lane?.end()
}

const openLaneProcess = async (folder: string, sabotage: string | undefined) => {
  const child = fork(file, [folder, ...(sabotage ? [sabotage] : [])], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // Node warns that its stripper of types, which plants faults, is an experiment.
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  const exited = once(child, 'exit').then(
    ([code, signal]) => new Error(`the process of a lane ended: ${signal ?? code}`),
  )
  const message = async (): Promise<Message> => {
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(new Error(`nothing within ${patienceMs} ms`)), patienceMs)
    try {
      const [got] = await Promise.race([
        once(child, 'message', { signal: late.signal }),
        exited.then(error => Promise.reject(error)),
      ])
      return got as Message
    } finally {
      clearTimeout(timer)
    }
  }
  await message()
  return {
    take: (order: Order): Promise<Message> => {
      child.send(order)
      return message()
    },
    kill: () => void child.kill('SIGKILL'),
    end: async () => {
      child.send('end')
      await exited
    },
  }
}
