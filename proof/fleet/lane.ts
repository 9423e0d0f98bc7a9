// What is kept from history to history: a Redis, a provider, and folders of embedded stores. One lane takes one history at a
// time; several processes may each have one.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type LaneProvider, openLaneProvider } from './provider.ts'
import { type LaneRedis, openLaneRedis } from './redis.ts'

export type Lane = {
  readonly redis: LaneRedis
  readonly provider: LaneProvider
  /** A file that no history had before. */
  newStorePath(): string
  close(): Promise<void>
}

export const openLane = async (): Promise<Lane> => {
  const opened = new AsyncDisposableStack()
  const scope = { teardown: (fn: () => unknown) => opened.defer(async () => void (await fn())) }
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-proof-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const redis = await openLaneRedis(scope)
  const provider = await openLaneProvider()
  opened.defer(provider.stop)
  let stores = 0
  return {
    redis,
    provider,
    newStorePath: () => join(folder, `${++stores}.db`),
    close: () => opened.disposeAsync(),
  }
}
