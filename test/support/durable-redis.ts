// A Redis with persistence, as operators run it: a test can freeze it, resume it, kill it and start it again on the same
// port and file.

import { startRedisProcess } from './redis-process.ts'

export type DurableRedis = {
  url: string
  /** SIGSTOP and SIGCONT: it keeps its connections without responding, and then continues. */
  freeze(): void
  thaw(): void
  /** SIGKILL; resolves when the process has ended. */
  kill(): Promise<void>
  /** Starts it again after a kill. */
  start(): Promise<void>
}

export const startDurableRedis = async (t: { teardown(fn: () => unknown): void }): Promise<DurableRedis> => {
  const { address, signal, kill, start, stop } = await startRedisProcess({
    args: ['--appendonly', 'yes', '--appendfsync', 'everysec'],
  })
  t.teardown(stop)
  return {
    url: `redis://${address}`,
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    kill,
    start: () => start(),
  }
}
