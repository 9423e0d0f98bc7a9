// A Redis with persistence, as operators run it: a test can freeze it, resume it, kill it and start it again on the same
// port and file.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from './redis-server.ts'

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
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-redis-'))
  let child: ChildProcess | undefined

  const start = async (): Promise<void> => {
    const where = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder]
    const how = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec']
    const started = spawn('redis-server', [...where, ...how], { stdio: ['ignore', 'pipe', 'inherit'] })
    child = started
    for await (const line of createInterface({ input: started.stdout }))
      if (line.includes('Ready to accept connections')) break
    started.stdout.resume()
  }
  const kill = async (): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  await start()
  t.teardown(async () => {
    await kill()
    await rm(folder, { recursive: true, force: true })
  })
  return {
    url: `redis://127.0.0.1:${port}`,
    freeze: () => child?.kill('SIGSTOP'),
    thaw: () => child?.kill('SIGCONT'),
    kill,
    start,
  }
}
