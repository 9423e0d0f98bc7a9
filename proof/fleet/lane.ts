// What is kept from history to history: a Redis of each kind, a provider, and folders of embedded stores. One lane takes one history at a
// time; several processes may each have one.

import { mkdirSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type SmallDisk, smallDisk, withoutMounts } from '../../test/support/small-disk.ts'
import { scopeOf } from '../../test/support/teardown.ts'
import type { StoreKind } from '../steps.ts'
import { type LaneProvider, openLaneProvider } from './provider.ts'
import { type LaneRedis, openSingleRedis } from './redis.ts'
import { openReplicatedRedis } from './replicated-redis.ts'

export type Lane = {
  /** The Redis of a kind of store, started when the first history needs it; the embedded store does not use it. */
  redis(kind: StoreKind): Promise<LaneRedis>
  readonly provider: LaneProvider
  /** Behind that one, where a schedule has it. */
  readonly fallback: LaneProvider
  /** The name of the fault that is planted in its gateways. */
  readonly sabotage: string | undefined
  /** A file that no history had before, on a separate disk where that can be mounted. */
  newStorePath(): string
  /** An empty folder for the other files of a history. */
  newFolder(): string
  /** That disk; undefined where nothing can be mounted. */
  readonly disk: Pick<SmallDisk, 'fill' | 'free'> | undefined
  close(): Promise<void>
}

const diskBytes = 16_000_000

// Where the numbers of its bodies begin, so that its weather is not that of the first.
const fallbackBodies = 500

export const openLane = async (sabotage?: string): Promise<Lane> => {
  const opened = new AsyncDisposableStack()
  const scope = scopeOf(opened)
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-proof-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const opening = new Map<'redis' | 'sentinel' | 'cluster', Promise<LaneRedis>>()
  const redis = (kind: StoreKind): Promise<LaneRedis> => {
    const needed = kind === 'embedded' ? 'redis' : kind
    const known = opening.get(needed)
    if (known) return known
    const begun = needed === 'redis' ? openSingleRedis(scope) : openReplicatedRedis(needed, scope)
    opening.set(needed, begun)
    return begun
  }
  const openAll = async () => {
    await redis('redis')
    const provider = await openLaneProvider(scope)
    const fallback = await openLaneProvider(scope, fallbackBodies)
    return { provider, fallback, disk: withoutMounts ? undefined : await smallDisk(scope, diskBytes) }
  }
  const { provider, fallback, disk } = await openAll().catch(async error => {
    await opened.disposeAsync()
    throw error
  })
  const stores = join(disk?.folder ?? folder, 'stores')
  const files = join(folder, 'files')
  let begun = 0
  return {
    redis,
    provider,
    fallback,
    sabotage,
    disk,
    newStorePath: () => {
      rmSync(stores, { recursive: true, force: true })
      mkdirSync(stores)
      return join(stores, `${++begun}.db`)
    },
    newFolder: () => {
      rmSync(files, { recursive: true, force: true })
      mkdirSync(files)
      return files
    },
    close: () => opened.disposeAsync(),
  }
}
