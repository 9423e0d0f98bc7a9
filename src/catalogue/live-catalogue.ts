// The catalogue as its file is now. The file is looked at again and again, by its path and not by what the path once
// named, so renames over it and links to it are seen; a faulty file never takes the place of a good one.

import type { BigIntStats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { InputError, messageOf } from '../errors.ts'
import { type Catalogue, createCatalogue } from './catalogue.ts'
import type { Bounds } from './location.ts'
import { readSnapshot } from './snapshot-reader.ts'

/** What a swap brought: how many places are published now, and the checksums after and before. */
export type CatalogueChange = Readonly<{ size: number; checksum: string; formerChecksum: string }>

export type LiveCatalogueOptions = Readonly<{
  path: string
  bounds: Bounds
  /** How long to wait between two looks at the file. */
  pollMs: number
  /** Told after other places were swapped in. */
  onChange?: (change: CatalogueChange) => void
  /** Told once about each version of the file that cannot be used. */
  onFault?: (fault: InputError) => void
}>

export type LiveCatalogue = Readonly<{
  /** The newest good catalogue; hold on to it for as long as one answer takes, not longer. */
  current(): Catalogue
  /** What is wrong with the file as it is now, if anything is. */
  fault(): InputError | undefined
  /** Looks at the file now; rejects with InputError when it cannot be used, which leaves `current` as it was. */
  reload(): Promise<void>
  /** Stops looking. */
  close(): void
}>

const versionOf = (path: string): Promise<string> =>
  stat(path, { bigint: true }).then(
    ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats) => [dev, ino, size, mtimeNs, ctimeNs].join(),
    () => 'unreadable',
  )

/** Opens the catalogue in a file and follows the file; InputError when the first look finds a fault. */
export const openCatalogue = async (options: LiveCatalogueOptions): Promise<LiveCatalogue> => {
  const { path, bounds, pollMs, onChange, onFault } = options
  // The version is taken before the text: a change between the two is then seen as one, and read again.
  let seen = await versionOf(path)
  let current = createCatalogue(await readSnapshot(path, bounds))
  let fault: InputError | undefined
  let closed = false
  let looking: Promise<void> = Promise.resolve()

  const swap = (next: Catalogue): void => {
    const former = current
    current = next
    fault = undefined
    if (next.checksum !== former.checksum)
      onChange?.({ size: next.size, checksum: next.checksum, formerChecksum: former.checksum })
  }

  const look = async (force: boolean): Promise<void> => {
    const version = await versionOf(path)
    if (closed || (version === seen && !force)) return
    const isNews = version !== seen
    seen = version
    try {
      const next = createCatalogue(await readSnapshot(path, bounds))
      if (!closed) swap(next)
    } catch (thrown) {
      fault = thrown instanceof InputError ? thrown : new InputError(messageOf(thrown), { cause: thrown })
      if (isNews && !closed) onFault?.(fault)
      if (force) throw fault
    }
  }

  // One look at a time, so that an older text never overtakes a newer one.
  const lookNext = (force: boolean): Promise<void> => {
    const next = looking.then(() => look(force))
    looking = next.catch(() => {})
    return next
  }

  const timer = setInterval(() => void lookNext(false), pollMs).unref()
  return Object.freeze<LiveCatalogue>({
    current: () => current,
    fault: () => fault,
    reload: () => lookNext(true),
    close: () => {
      closed = true
      clearInterval(timer)
    },
  })
}
