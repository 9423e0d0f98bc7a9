// The cache admin: explains the cached state of a cell and purges, in a running gateway (with memory and freshness) or on the
// store alone. Parsing of targets is in cache-target.ts, text for people in src/cli.

import { createTimelineCodec, keyFor } from '../cache/entry-codec.ts'
import type { EntryFacts } from '../cache/freshness.ts'
import { createPurges, orderPurge, type Purges, readPurges } from '../cache/purges.ts'
import type { CellExplanation, Timelines } from '../cache/upstream.ts'
import { cacheNamespacesIn } from '../cache/upstream.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { type Location, locationTypes } from '../catalogue/location-schema.ts'
import { createCalendar, dayOfNumber, hourMs, isoOf, quarterHourMs } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { AbohawaError, messageOf } from '../common/errors.ts'
import type { Config } from '../config/schema.ts'
import type { RunWatch } from '../provider/runs.ts'
import type { Store } from '../stores/store.ts'
import { type Cell, type CellId, createGrid } from '../weather/cell.ts'
import type { Span, Timeline } from '../weather/timeline.ts'
import { currentUnits } from '../weather/weather-variables.ts'
import { cellOfTarget, pointOrPlaceIn, scopeOf, targetIn } from './cache-target.ts'
import type { CellReport, EntryReport, PurgeReport, SlicesReport } from './listener/cell-report.ts'

export type CacheAdmin = {
  /** The cached state of the cell of a point or place. @throws InputError */
  explain(of: string): Promise<CellReport>
  /**
   * Purges a point, a place, a box or all, over the fleet.
   * `hard` removes the entries; else they are stale, and served until they are reloaded.
   * @throws InputError, StoreError
   */
  purge(order: { readonly scope: string; readonly hard: boolean }): Promise<PurgeReport>
  /**
   * Loads the cell of a point or place in a running gateway, whatever is cached, and explains it then: after a failure with
   * `lastFailure`. @throws InputError
   */
  refresh(of: string): Promise<CellReport>
}

export type CacheAdminParts = {
  readonly store: Store
  readonly catalogue: { readonly current: Catalogue }
  readonly clock: Clock
  readonly running?: {
    readonly timelines: Timelines
    readonly runs: RunWatch | undefined
  }
}

// Of a cell; a crowded one has some hundred.
const maxPlaces = 500

export const createCacheAdmin = (config: Config, parts: CacheAdminParts): CacheAdmin => {
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
      // Without a gateway nothing is known of runs: the newest is the best guess.
      entries.sort((one, other) => Date.parse(other.fetchedAt) - Date.parse(one.fetchedAt))
      const fault = found.find(each => typeof each === 'string')
      return { kind, entry: entries[0] ?? null, fault: entries[0] ? null : (fault ?? null) }
    } catch (error) {
      return { kind, entry: null, fault: messageOf(error) }
    }
  }
  /** The entry of an upstream; why it can't be read; undefined where there is none. @throws StoreError */
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
    const places = running ? placesIn(cell) : null
    return {
      of,
      place: placeOf(place),
      cell,
      cellDegrees: config.cache.cellDegrees,
      places: places?.slice(0, maxPlaces) ?? null,
      placeCount: places?.length ?? null,
      at: isoOf(clock.now()),
      shared: await readShared(cell.id, explained?.shared),
      gateway: running && explained ? runningReport(config, running, explained, slicesNow(cell)) : null,
    }
  }

  const slicesNow = (cell: Cell): SlicesReport | null => {
    const timeline = running?.timelines.timelineOf(cell)
    return timeline ? slicesOf(timeline, clock.now()) : null
  }
  const placesIn = (cell: Cell): NonNullable<CellReport['places']> =>
    Array.from(catalogue.current.all())
      .filter(({ latitude, longitude }) => grid.cellOf(latitude, longitude).id === cell.id)
      .sort((one, other) => locationTypes.indexOf(one.type) - locationTypes.indexOf(other.type))
      .map(({ type, id, name_en, name_bn }) => ({ type, id, name_en, name_bn }))

  return {
    explain,
    refresh: async of => {
      const { cell } = locate(of)
      await running?.timelines.reload(cell)
      return explain(of)
    },
    purge: async ({ scope: of, hard }) => {
      const target = targetIn(of)
      const { scope, cells, place } = scopeOf(target, area())
      const kind = hard ? 'hard' : 'soft'
      const base = { namespaces: namespaces.map(each => each.namespace), cells, now: clock.now() }
      const { removed } = await orderPurge(store, base, { kind, scope })
      // In force here with the response; the other instances read it within a second.
      await running?.timelines.readPurges()
      return {
        kind,
        of,
        place: placeOf(place),
        scope,
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
  wrong_type: 'it is of another type of Redis than entries are',
  too_large: 'it is larger than an entry can be',
  length: 'it is cut off, or there are bytes behind its end',
  version: 'it is of another version of the format',
  checksum: 'its checksum is wrong',
  key: 'it was written for another cell or another configuration',
  instant: "it has an instant that can't be",
  malformed: "its columns can't be decoded",
  out_of_range: 'it has values that no weather has',
}
const faultOf = (refused: string): string => `what lies there is refused: ${refusals[refused] ?? refused}`

const placeOf = (place: Location | undefined): CellReport['place'] =>
  place ? { type: place.type, id: place.id, name: place.name_en } : null

const isoOrNull = (instant: number | null): string | null => (instant === null ? null : isoOf(instant))
