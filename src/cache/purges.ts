// Purges: ordering one over the fleet, and the purges in force in this process. Each is a numbered record in a log of the store, which
// every instance reads at short intervals, so that an instance that was disconnected reads it later; where it may still have missed one,
// everything is stale. A purge covers entries whose load began before this instance knew it, by the number of the newest record and not by
// time, because clocks differ and go back.

import { setImmediate as nextTurn } from 'node:timers/promises'
import * as z from 'zod'
import type { Clock } from '../common/clock.ts'
import { appendToLog, followLog, type LogRead, readLog } from '../stores/change-log.ts'
import { longestChangeRecord } from '../stores/records.ts'
import type { ByteStore, FleetStore } from '../stores/store.ts'
import { type Box, type CellId, type Cells, inParts } from '../weather/cell.ts'
import { type CellSet, cellSet, cellSetOf, hasCell } from '../weather/cell-set.ts'
import { keyFor } from './entry-codec.ts'
import type { EntryMetadata, PurgeKind } from './freshness.ts'

export type PurgeScope =
  | { readonly all: true }
  | { readonly cell: CellId }
  /** Cells whose centre lies in it. */
  | { readonly box: Box }
  /** The cells of a place such as `district/3026` and of all places below it, as the catalogue of who ordered it has them. */
  | { readonly area: string; readonly cells: CellSet }

export type PurgeOrder = { readonly kind: PurgeKind; readonly scope: PurgeScope }
export type Purge = PurgeOrder & { readonly generation: number }

// Anyone with access to the store can write a record, so edges and cell names are validated.
const degrees = z.number().min(-180).max(180)
const cellForm = /^-?\d{1,3}(\.\d{1,4})?,-?\d{1,3}(\.\d{1,4})?$/
const orderForm = z.object({
  kind: z.enum(['soft', 'hard']),
  scope: z.union([
    z.object({ all: z.literal(true) }),
    z.object({
      cell: z
        .string()
        .regex(cellForm)
        .transform(id => id as CellId),
    }),
    z.object({ box: z.object({ south: degrees, west: degrees, north: degrees, east: degrees }) }),
    z.object({ area: z.string().regex(/^[a-z]{1,20}\/\d{1,20}$/), cells: cellSet }),
  ]),
})

export const writeOrder = (order: PurgeOrder): string => JSON.stringify(order)

/** The purge in a record, or undefined when it is not valid. */
export const readOrder = (text: string): PurgeOrder | undefined => {
  try {
    return orderForm.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/** Whether a cell lies in a scope. */
export const covers = (scope: PurgeScope, id: string): boolean => {
  if ('all' in scope) return true
  if ('cell' in scope) return scope.cell === id
  if ('cells' in scope) return hasCell(scope.cells, id)
  const [latitude = Number.NaN, longitude = Number.NaN] = id.split(',').map(Number)
  const { south, west, north, east } = scope.box
  return latitude >= south && latitude <= north && longitude >= west && longitude <= east
}

export type Purges = ReturnType<typeof createPurges>

// As many as the store keeps.
const maxKnown = 1_000

/** The purges in force. */
export const createPurges = () => {
  // Newest first.
  let known: Purge[] = []
  let missedBefore = 0
  let newest = 0
  const advanceTo = (generation: number): void => {
    newest = Math.max(newest, generation)
  }
  const miss = (before: number): void => {
    missedBefore = Math.max(missedBefore, before)
  }
  return {
    /** The number of the newest record of the log; 0 while none is known. */
    get generation() {
      return newest
    },
    add: (purge: Purge): void => {
      advanceTo(purge.generation)
      known.unshift(purge)
      if (known.length > maxKnown) miss(known.pop()?.generation ?? 0)
    },
    /** The newest record of the log, which may be no purge. */
    advanceTo,
    /** Purges with a lower number may be unknown: entries from before it are stale, whatever their key. */
    miss,
    /** The log was lost: the next number may be any. */
    restart: (): void => {
      ;[known, missedBefore, newest] = [[], 0, 0]
    },
    /** The strongest purge that covers what began with this number. */
    of: (id: string, begun: Pick<EntryMetadata, 'generation'>): PurgeKind | undefined => {
      let found: PurgeKind | undefined = begun.generation < missedBefore ? 'soft' : undefined
      for (const { generation, kind, scope } of known) {
        if (generation <= begun.generation) break
        if (kind === found || !covers(scope, id)) continue
        if (kind === 'hard') return 'hard'
        found = kind
      }
      return found
    },
  }
}

const topic = 'purges'
// A fine grid has hundreds of thousands of cells: deleted in steps, so that the event loop is free in between.
const removedAtOnce = 200

/** The records of an order: more than one where the cells of an area do not fit in one, each for a part of them. */
const recordsOf = (order: PurgeOrder, cells: Cells): string[] => {
  const text = writeOrder(order)
  const { kind, scope } = order
  if (!('cells' in scope) || text.length <= longestChangeRecord) return [text]
  // Along their rows, so that the box around a half is half as high.
  const inRows = [...cells].sort((one, other) => one.latitude - other.latitude)
  const half = Math.ceil(inRows.length / 2)
  return [inRows.slice(0, half), inRows.slice(half)].flatMap(part => {
    const ofPart = cellSetOf(part, 1 / scope.cells.perDegree)
    return recordsOf({ kind, scope: { ...scope, cells: ofPart } }, part)
  })
}

/**
 * Purges a scope over the fleet. A hard purge also deletes entries from the shared tier.
 * @param namespaces those of all upstreams
 * @param cells the cells in scope
 * @returns the number of the last record
 */
export const orderPurge = async (
  store: Pick<FleetStore, 'appendChangeRecord'> & Pick<ByteStore, 'deleteBytes'>,
  { namespaces, cells, now }: { namespaces: readonly string[]; cells: Cells; now: number },
  order: PurgeOrder,
): Promise<{ readonly generation: number; readonly removed: number }> => {
  // Recorded before the deletion, so that it covers entries read from the old bytes meanwhile.
  let generation = 0
  for (const text of recordsOf(order, cells)) generation = await appendToLog(store, topic, text, now)
  let removed = 0
  if (order.kind === 'hard')
    for (const part of inParts(cells, removedAtOnce)) {
      const keys = part.flatMap(({ id }) => namespaces.map(namespace => keyFor(namespace, id)))
      removed += await store.deleteBytes(keys)
      await nextTurn()
    }
  return { generation, removed }
}

/** Puts what was read in force. @returns the purges that are new */
const take = (purges: Purges, { records, isWhole }: LogRead): readonly Purge[] => {
  const added = records.flatMap(({ number, text }) => {
    const order = readOrder(text)
    return order ? [{ generation: number, ...order }] : []
  })
  for (const purge of added) purges.add(purge)
  purges.advanceTo(records.at(-1)?.number ?? 0)
  // What was ordered before the first record is unknown to who reads the log for the first time.
  const [first] = records
  if (first && !isWhole) purges.miss(first.number)
  return added
}

/** @returns the purges that are in force from now on; undefined where there is no log: it never began, or was lost */
export const readPurges = async (
  store: Pick<FleetStore, 'changeRecordsAfter'>,
  purges: Purges,
): Promise<{ readonly added: readonly Purge[]; readonly isWhole: boolean } | undefined> => {
  const read = await readLog(store, topic, purges.generation)
  return read && { added: take(purges, read), isWhole: read.isWhole }
}

export type PurgeObserver = {
  onPurge(kind: PurgeOrder['kind'], scope: PurgeOrder['scope']): void
  /** The log has lost purges that this instance has not read: all that is cached counts as stale. */
  onPurgesMissed(): void
}

/**
 * Follows the log in a running gateway. A log begins with a soft purge of everything: that costs nothing where nothing was cached, and
 * covers what was ordered into a log that was lost.
 * @param apply puts purges in force for what is cached
 */
export const createPurgeReader = ({
  store,
  purges,
  clock,
  apply,
  observer,
}: {
  readonly store: Pick<FleetStore, 'appendChangeRecord' | 'changeRecordsAfter'>
  readonly purges: Purges
  readonly clock: Clock
  readonly apply: (added: readonly Purge[], isWhole: boolean) => Promise<void>
  readonly observer: PurgeObserver
}): (() => Promise<void>) =>
  followLog(
    store,
    topic,
    {
      begin: writeOrder({ kind: 'soft', scope: { all: true } }),
      onLost: purges.restart,
      apply: async (read, isFirst) => {
        const { isWhole } = read
        const added = take(purges, read)
        await apply(added, isWhole)
        // Purges from before the start are in force, but not reported.
        if (isFirst) return
        for (const { kind, scope } of added) observer.onPurge(kind, scope)
        if (!isWhole) observer.onPurgesMissed()
      },
    },
    clock,
  )
