// The cells of the catalogue's places in the memory of this instance: their states, their names, and the search.

import type { Timelines } from '../cache/upstream.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { type Location, locationTypes } from '../catalogue/location-schema.ts'
import { fold } from '../catalogue/search.ts'
import { isoOf } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Cell, Grid } from '../weather/cell.ts'
import type { CellStatus, CellsReport, SearchReport } from './reports/status-report.ts'

export type CellSurveyParts = {
  readonly timelines: Pick<Timelines, 'overview' | 'mostRequested'>
  readonly catalogue: { readonly current: Catalogue }
  readonly grid: Grid
  readonly cellDegrees: number
  readonly clock: Clock
}

export type CellSurvey = ReturnType<typeof createCellSurvey>

type Named = { readonly cell: Cell; readonly place: Location }

const maxPlaces = 10
// Of each level.
const maxMatched = 100
// More than are shown, because cells without a place are left out.
const cellsLookedAt = 50

export const createCellSurvey = ({ timelines, catalogue, grid, cellDegrees, clock }: CellSurveyParts) => {
  let from: Catalogue | undefined
  let named: ReadonlyMap<string, Named> = new Map()
  /** Each cell with the place that names it; recomputed when the catalogue changes. */
  const cellsNow = (): typeof named => {
    const { current } = catalogue
    if (current !== from) {
      const found = new Map<string, Named>()
      for (const place of current.all()) {
        const cell = grid.cellOf(place.latitude, place.longitude)
        const before = found.get(cell.id)
        if (!before || isBetterName(place, before.place)) found.set(cell.id, { cell, place })
      }
      named = found
      from = current
    }
    return named
  }

  return {
    cells: (): CellsReport => {
      const now = clock.now()
      const cells = Array.from(cellsNow().values(), ({ cell }): CellStatus => {
        const { state, fetchedAt, demand } = timelines.overview(cell)
        return {
          ...cell,
          state,
          ageSeconds: fetchedAt === null ? null : Math.max(0, Math.round((now - fetchedAt) / 1000)),
          demand: Number(demand.toFixed(2)),
        }
      })
      return { at: isoOf(now), cellDegrees, cells }
    },
    counts: () => {
      const counts = { fresh: 0, stale: 0, absent: 0, failed: 0 }
      for (const { cell } of cellsNow().values()) counts[timelines.overview(cell).state] += 1
      return counts
    },
    /** The places whose cells have the most requests here, most first. */
    topPlaces: () =>
      timelines
        .mostRequested(cellsLookedAt)
        .flatMap(({ cell, requests }) => {
          const place = cellsNow().get(cell.id)?.place
          return place ? [{ ...nameOf(place), requests: Math.round(requests) }] : []
        })
        .slice(0, maxPlaces),
    search: (q: string, limit: number): SearchReport => {
      const { current } = catalogue
      const found = locationTypes.flatMap(type => {
        const { results, approximate } = current.list({ type, q, limit: maxMatched, offset: 0 })
        return results.map(place => ({ place, rank: rankOf(place, fold(q), approximate) }))
      })
      const places = found
        .sort((one, other) => one.rank - other.rank)
        .slice(0, limit)
        .map(({ place }) => place)
      return {
        places: places.map(place => ({
          ...nameOf(place),
          cell: grid.cellOf(place.latitude, place.longitude).id,
        })),
      }
    },
  }
}

// First names that begin with the text, then names that contain it, then approximate matches; among equals the larger place.
const rankOf = (place: Location, wanted: string, approximate: boolean): number => {
  if (approximate) return 2
  return [place.name_en, place.name_bn, ...place.aliases].some(name => fold(name).startsWith(wanted)) ? 0 : 1
}

// The most populous place; a division only where there is no other.
const isBetterName = (place: Location, other: Location): boolean =>
  (place.type === 'division') === (other.type === 'division')
    ? place.population > other.population
    : other.type === 'division'

const nameOf = ({ type, id, name_en, name_bn }: Location) => ({ type, id, name_en, name_bn })
