// Explains what is cached for a cell, and purges. Works in a running gateway, or on the store without one.

import { createTimelineCodec, keyFor } from '../cache/entry-codec.ts'
import type { EntryFacts } from '../cache/freshness.ts'
import { cacheNamespacesIn } from '../cache/namespaces.ts'
import { createPurges, orderPurge, type Purges, readPurges } from '../cache/purges.ts'
import type { CellExplanation, Timelines } from '../cache/upstream.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { type Location, locationTypes } from '../catalogue/location-schema.ts'
import { createCalendar, dayOfNumber, hourMs, isoOf, isoOrNull, quarterHourMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { AbohawaError, messageOf } from '../common/errors.ts'
import type { Config } from '../config/schema.ts'
import type { RunWatch } from '../provider/runs.ts'
import type { Store } from '../stores/store.ts'
import { type Cell, type CellId, createGrid } from '../weather/cell.ts'
import type { Span, Timeline } from '../weather/timeline.ts'
import { currentUnits } from '../weather/weather-variables.ts'
import { areaTargetIn, cellOfTarget, pointOrPlaceIn, scopeOf, scopeOfArea, targetIn } from './cache-target.ts'
import { priceOf } from './purge-price.ts'
import type { CellReport, EntryReport, SlicesReport } from './reports/cell-report.ts'
import type { PurgePrice, PurgeReport } from './reports/purge-report.ts'

/** `area`: a place with all places below it. `hard` removes the entries; else they are stale, and served until they are reloaded. */
export type OrderedPurge = { readonly scope: string; readonly area?: boolean; readonly hard: boolean }

export type CacheAdmin = ReturnType<typeof createCacheAdmin>

export type CacheAdminParts = {
  readonly store: Store
  readonly catalogue: { readonly current: Catalogue }
  readonly clock: Clock
  readonly running?: {
    readonly timelines: Timelines
    readonly runs: RunWatch | undefined
    /** With the budget in effect, which is live. */
    readonly config: () => Config
  }
}

// Of a cell; a crowded one has some hundred.
const maxPlaces = 500

export const createCacheAdmin = (config: Config, parts: CacheAdminParts) => {
  const { store, catalogue, clock, running } = parts
  const namespaces = cacheNamespacesIn(config)
  const { hourlyHours } = config.weather
  const calendar = createCalendar(config.quota.timeZone)
  const grid = createGrid(config.cache.cellDegrees)
  const area = () => ({ catalogue: catalogue.current, grid })

  /** @param facts what a running gateway says of the entry that it would read; undefined without one */
  const readShared = async (
    cell: CellId,
    facts: EntryFacts | null | undefined,
  ): Promise<CellReport['shared']> => {
    const { kind } = store
    try {
      const purges = createPurges()
      if (!facts) await readPurges(store, purges)
      const found = await Promise.all(
        namespaces
          .filter(({ upstream = null }) => !facts || facts.upstream === upstream)
          .map(each => readEntry(cell, each, facts ?? undefined, purges)),
      )
      const entries = found.filter(each => typeof each === 'object')
      // Without a gateway the valid model run is unknown, so the newest entry is the best guess.
      entries.sort((one, other) => Date.parse(other.fetchedAt) - Date.parse(one.fetchedAt))
      const fault = found.find(each => typeof each === 'string')
      return { kind, entry: entries[0] ?? null, fault: entries[0] ? null : (fault ?? null) }
    } catch (error) {
      return { kind, entry: null, fault: messageOf(error) }
    }
  }
  /** The entry of an upstream, or why it can't be read; undefined for none. @throws StoreError */
  const readEntry = async (
    cell: CellId,
    { namespace, upstream }: (typeof namespaces)[number],
    facts: EntryFacts | undefined,
    purges: Purges,
  ): Promise<EntryReport | string | undefined> => {
    const key = keyFor(namespace, cell)
    const codec = createTimelineCodec({ hourlyHours, calendar, clock, upstream })
    const bytes = await store.readBytes(key, codec.maxBytes)
    if (bytes === undefined) return undefined
    if (typeof bytes === 'string') return faultOf(bytes)
    if (facts) return { ...entryFields(facts), bytes: bytes.length }
    const found = codec.decode(bytes, key)
    if ('refused' in found) return faultOf(found.refused)
    return {
      fetchedAt: isoOf(found.fetchedAt),
      run: isoOrNull(found.run),
      purged: purges.of(cell, found) ?? null,
      bytes: bytes.length,
      upstream: upstream ?? null,
    }
  }

  const locate = (of: string) => cellOfTarget(pointOrPlaceIn(of), area())
  const explain = async (of: string): Promise<CellReport> => {
    const { cell, place } = locate(of)
    const explained = await running?.timelines.explain(cell)
    const inside = running ? placesIn(cell) : null
    return {
      of,
      place: placeOf(place),
      cell,
      cellDegrees: config.cache.cellDegrees,
      places: inside?.slice(0, maxPlaces).map(namesOf) ?? null,
      areas: inside && areasAround(inside).map(namesOf),
      placeCount: inside?.length ?? null,
      at: isoOf(clock.now()),
      shared: await readShared(cell.id, explained?.shared),
      gateway: running && explained ? runningReport(config, running, explained, slicesNow(cell)) : null,
    }
  }

  const slicesNow = (cell: Cell): SlicesReport | null => {
    const timeline = running?.timelines.timelineOf(cell)
    return timeline ? slicesOf(timeline, clock.now()) : null
  }
  const placesIn = (cell: Cell): Location[] =>
    Array.from(catalogue.current.all())
      .filter(({ latitude, longitude }) => grid.cellOf(latitude, longitude).id === cell.id)
      .sort(widestFirst)
  /** The given places and their parents, except for the lowest level, which contains no others. */
  const areasAround = (places: readonly Location[]): Location[] => {
    const found = new Set<Location>()
    for (const place of places)
      for (let at: Location | undefined = place; at && !found.has(at); at = catalogue.current.parentOf(at))
        found.add(at)
    return [...found]
      .filter(({ type, published }) => published && type !== locationTypes.at(-1))
      .sort((one, other) => widestFirst(other, one))
  }

  const ordered = ({ scope: of, area: isOfArea = false, hard }: OrderedPurge) => ({
    kind: hard ? ('hard' as const) : ('soft' as const),
    places: undefined,
    ...(isOfArea
      ? scopeOfArea(areaTargetIn(of), config.cache.cellDegrees, area())
      : scopeOf(targetIn(of), area())),
  })

  return {
    /** The cached state of the cell of a point or place. @throws InputError */
    explain,
    /** Loads the cell in a running gateway, and explains it: after a failure with `lastFailure`. @throws InputError */
    refresh: async (of: string): Promise<CellReport> => {
      const { cell } = locate(of)
      await running?.timelines.reload(cell)
      return explain(of)
    },
    /** What a purge costs, without purging. @throws InputError, StoreError */
    pricePurge: async (order: OrderedPurge): Promise<PurgePrice> => {
      const { kind, cells } = ordered(order)
      const names = namespaces.map(({ namespace }) => namespace)
      return priceOf(running?.config() ?? config, { store, clock }, { kind, cells, namespaces: names })
    },
    /** Purges a point, a place, an area, a box or all, over the fleet. @throws InputError, StoreError */
    purge: async (order: OrderedPurge): Promise<PurgeReport> => {
      const { kind, scope, cells, place, places } = ordered(order)
      const base = { namespaces: namespaces.map(each => each.namespace), cells, now: clock.now() }
      const { removed } = await orderPurge(store, base, { kind, scope })
      // In effect here before the response; other instances follow within a second.
      await running?.timelines.readPurges()
      return {
        kind,
        of: order.scope,
        place: placeOf(place),
        scope: 'cells' in scope ? { area: scope.area } : scope,
        ...(places === undefined ? {} : { places }),
        cells: cells.length,
        removed,
        store: store.kind,
      }
    },
  }
}

const runningReport = (
  config: Config,
  { timelines, runs }: NonNullable<CacheAdminParts['running']>,
  { memory, loading, lastRequestedAt, lastFailure }: CellExplanation,
  slices: SlicesReport | null,
): NonNullable<CellReport['gateway']> => {
  const run = runs?.newest()
  const stretch = timelines.stretch()
  return {
    memory: memory && entryFields(memory),
    slices,
    freshness: config.cache.freshness,
    newestRun: run ? { initialisedAt: isoOf(run.initialisedAt), availableAt: isoOf(run.availableAt) } : null,
    stretch: Number.isFinite(stretch) ? stretch : null,
    loading,
    lastRequestedAt: isoOrNull(lastRequestedAt),
    lastFailure: lastFailure && {
      code: lastFailure.error instanceof AbohawaError ? lastFailure.error.code : 'internal',
      message: messageOf(lastFailure.error),
      failedAt: isoOf(lastFailure.failedAt),
      attempts: lastFailure.attempts,
      backoffUntil: isoOf(lastFailure.backoffUntil),
    },
  }
}

const entryFields = (facts: EntryFacts) => ({
  state: facts.state,
  fetchedAt: isoOf(facts.fetchedAt),
  run: isoOrNull(facts.run),
  dueAt: isoOf(facts.dueAt),
  freshUntil: isoOf(facts.freshUntil),
  usableUntil: isoOf(facts.usableUntil),
  purged: facts.purged,
  bytes: facts.bytes,
  upstream: facts.upstream,
})

const fields = Object.keys(currentUnits)

/** The contents of a timeline: the steps of its three series, and the slice of now. */
const slicesOf = (timeline: Timeline, now: number): SlicesReport => {
  const { quarterHours, hours, days, values } = timeline
  const step = Math.floor((now - quarterHours.start) / quarterHourMs)
  const currentOf = (field: keyof typeof currentUnits): number | null => {
    const value = values[quarterHours.offset + fields.indexOf(field) * quarterHours.length + step]
    // Numbers are held with 32 bits, which give three decimals.
    return value === undefined || Number.isNaN(value) ? null : Math.round(value * 1000) / 1000
  }
  return {
    quarterHours: stepsOf(quarterHours, quarterHourMs),
    hours: stepsOf(hours, hourMs),
    days: {
      from: dayOfNumber(days.start),
      to: dayOfNumber(days.start + days.length - 1),
      count: days.length,
    },
    now:
      step < 0 || step >= quarterHours.length
        ? null
        : {
            time: isoOf(quarterHours.start + step * quarterHourMs),
            temperature_2m: currentOf('temperature_2m'),
            precipitation: currentOf('precipitation'),
            weather_code: currentOf('weather_code'),
          },
  }
}

/** From the beginning of the first step to the end of the last. */
const stepsOf = ({ start, length }: Span, stepMs: number) => ({
  from: isoOf(start),
  to: isoOf(start + length * stepMs),
  count: length,
})

const refusals: Readonly<Record<string, string>> = {
  wrong_type: 'its Redis type is wrong',
  too_large: 'it is larger than an entry can be',
  length: 'it is cut off or has extra bytes',
  version: 'its format version differs',
  checksum: 'its checksum is wrong',
  key: 'it was written for another cell or another configuration',
  instant: 'it has an impossible timestamp',
  malformed: "its columns can't be decoded",
  out_of_range: 'it has impossible weather values',
}
const faultOf = (refused: string): string => `the cached entry is invalid: ${refusals[refused] ?? refused}`

const placeOf = (place: Location | undefined): CellReport['place'] =>
  place ? { type: place.type, id: place.id, name: place.name_en } : null

const namesOf = ({ type, id, name_en, name_bn }: Location) => ({ type, id, name_en, name_bn })

const widestFirst = (one: Location, other: Location): number =>
  locationTypes.indexOf(one.type) - locationTypes.indexOf(other.type)
