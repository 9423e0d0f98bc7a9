// Watches the catalogue's file by polling its path, and swaps in its places. A faulty file never replaces a good catalogue.

import { InputError, messageOf } from '../common/errors.ts'
import { versionOf } from '../common/regular-file.ts'
import { type Catalogue, createCatalogue } from './catalogue.ts'
import { catalogueFile, readSnapshot } from './snapshot-reader.ts'

/** @param configured null for the product's own file @throws InputError for a file that is no catalogue */
export const readCatalogue = async (configured: string | null): Promise<Catalogue> =>
  createCatalogue(await readSnapshot(catalogueFile(configured)))

/** A swap: how many places are published now, and the checksums after and before. */
export type CatalogueChange = Readonly<{ size: number; checksum: string; formerChecksum: string }>

export type LiveCatalogueOptions = Readonly<{
  path: string
  /** The interval between two polls of the file. */
  pollMs: number
  /** Called after a swap that changed places. */
  onChange?: (change: CatalogueChange) => void
  /** Called once for each unusable version of the file; of versions in a row that could not be read, for the first. */
  onFault?: (fault: InputError) => void
}>

export type LiveCatalogue = {
  /** The newest good catalogue; keep it for one response at most. */
  readonly current: Catalogue
  /** The fault of the current file, if it has one. */
  fault(): InputError | undefined
  /** How many catalogues were in force since the start: 1, and one more for each swap. */
  generation(): number
  /** Reads the file now; rejects with InputError when it is unusable, which leaves `current` unchanged. */
  reload(): Promise<void>
  /** Stops polling. */
  close(): void
}

// Of the machine, such as too many open files, and not of the text: it may be gone with the next poll.
const isOfSystem = (thrown: unknown): boolean =>
  thrown instanceof Error && thrown.cause instanceof Error && 'errno' in thrown.cause

// The grid, the limits of parameters and the reference follow from them.
const requireSameRegion = (next: Catalogue, first: Catalogue, path: string): void => {
  const isSame = Object.entries(first.bounds).every(
    ([side, degrees]) => degrees === next.bounds[side as keyof typeof next.bounds],
  )
  if (next.title === first.title && isSame) return
  throw new InputError(
    `${path}: provenance has another title or other bounds than those in effect; a restart of the gateway takes them`,
  )
}

/** Opens the catalogue of a file and watches the file; InputError when it has a fault at the start. */
export const openCatalogue = async (options: LiveCatalogueOptions): Promise<LiveCatalogue> => {
  const { path, pollMs, onChange, onFault } = options
  // Reads the version before the text: a change in between is then seen at the next poll.
  let seen = await versionOf(path)
  const first = createCatalogue(await readSnapshot(path))
  let fault: InputError | undefined
  /** Whether the version that was seen could not be read, which says nothing of what is in it. */
  let isUnread = false
  let generation = 1
  let closed = false
  let polling: Promise<void> = Promise.resolve()

  const swap = (next: Catalogue): void => {
    const former = live.current
    live.current = next
    fault = undefined
    if (next.checksum === former.checksum) return
    generation += 1
    onChange?.({ size: next.size, checksum: next.checksum, formerChecksum: former.checksum })
  }

  const poll = async (force: boolean): Promise<void> => {
    const version = await versionOf(path)
    if (closed || (version === seen && !force && !isUnread)) return
    const [isNewVersion, wasUnread] = [version !== seen, isUnread]
    seen = version
    try {
      const next = createCatalogue(await readSnapshot(path))
      requireSameRegion(next, first, path)
      isUnread = false
      if (!closed) swap(next)
    } catch (thrown) {
      isUnread = isOfSystem(thrown)
      fault = thrown instanceof InputError ? thrown : new InputError(messageOf(thrown), { cause: thrown })
      // What keeps one version from being read keeps the next from it too. While a file takes the place of another, there is a
      // version between them.
      if (isNewVersion && !(wasUnread && isUnread) && !closed) onFault?.(fault)
      if (force) throw fault
    }
  }

  // One poll at a time, so that an older text never overtakes a newer one.
  const pollNext = (force: boolean): Promise<void> => {
    const next = polling.then(() => poll(force))
    polling = next.catch(() => {})
    return next
  }

  const timer = setInterval(() => void pollNext(false), pollMs).unref()
  const live: LiveCatalogue & { current: Catalogue } = {
    current: first,
    fault: () => fault,
    generation: () => generation,
    reload: () => pollNext(true),
    close: () => {
      closed = true
      clearInterval(timer)
    },
  }
  return live
}
