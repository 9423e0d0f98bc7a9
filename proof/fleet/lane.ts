// What is kept from history to history: a Redis, a provider, and folders of embedded stores. One lane takes one history at a
// time; several processes may each have one.

import { mkdirSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type SmallDisk, smallDisk, withoutMounts } from '../../test/support/small-disk.ts'
import { type LaneProvider, openLaneProvider } from './provider.ts'
import { type LaneRedis, openLaneRedis } from './redis.ts'

export type Lane = {
  readonly redis: LaneRedis
  readonly provider: LaneProvider
  /** A file that no history had before, on a disk of its own where that can be mounted. */
  newStorePath(): string
  /** That disk; undefined where nothing can be mounted. */
  readonly disk: Pick<SmallDisk, 'fill' | 'free'> | undefined
  close(): Promise<void>
}

const diskBytes = 16_000_000

export const openLane = async (): Promise<Lane> => {
  const opened = new AsyncDisposableStack()
  const scope = { teardown: (fn: () => unknown) => opened.defer(async () => void (await fn())) }
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-proof-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const redis = await openLaneRedis(scope)
  const provider = await openLaneProvider()
  opened.defer(provider.stop)
  const disk = withoutMounts ? undefined : await smallDisk(scope, diskBytes)
  const stores = join(disk?.folder ?? folder, 'stores')
  let begun = 0
  return {
    redis,
    provider,
    disk,
    newStorePath: () => {
      rmSync(stores, { recursive: true, force: true })
      mkdirSync(stores)
      return join(stores, `${++begun}.db`)
    },
    close: () => opened.disposeAsync(),
  }
}
