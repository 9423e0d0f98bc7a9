// Parses a target such as `23.81,90.41`, `district/3026`, a box or `all` into grid cells.

import type { PurgeScope } from '../cache/purges.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import {
  isLocationType,
  type Location,
  type LocationType,
  locationTypes,
} from '../catalogue/location-schema.ts'
import { InputError } from '../common/errors.ts'
import { quoted } from '../common/outside-text.ts'
import type { Box, Cell, Cells, Grid } from '../weather/cell.ts'
import { cellSetOf } from '../weather/cell-set.ts'

/** A point or a place: what lies in one cell. */
export type PointOrPlace =
  | { readonly point: { readonly latitude: number; readonly longitude: number } }
  | { readonly place: { readonly type: LocationType; readonly id: string } }

export type Target = PointOrPlace | { readonly all: true } | { readonly box: Box }

/** Where targets may lie: the places, and the cells of their box. */
export type Area = { readonly catalogue: Catalogue; readonly grid: Grid }

const pointOrPlace = 'a point such as 23.81,90.41 or a place such as district/3026'

/** @throws InputError when the text is neither a point nor a place */
export const pointOrPlaceIn = (text: string): PointOrPlace => {
  const target = read(text, pointOrPlace)
  if ('all' in target || 'box' in target)
    throw new InputError(`the target must be ${pointOrPlace}, got ${quoted(text)}`)
  return target
}

/** @throws InputError when the text is none of the forms, or a box whose edges are the wrong way round */
export const targetIn = (text: string): Target =>
  read(text, `all, ${pointOrPlace}, or a box south,west,north,east such as 23.5,90,24,90.8`)

const read = (text: string, allowed: string): Target => {
  const given = text.trim()
  if (given === 'all') return { all: true }
  const [type = '', id, ...more] = given.split('/')
  if (id !== undefined && id !== '' && more.length === 0) {
    if (isLocationType(type)) return { place: { type, id } }
    throw new InputError(
      `the type of a place must be one of ${locationTypes.join(', ')}, got ${quoted(type)}`,
    )
  }
  const numbers = given.split(',').map(degreesOf)
  const [first = 0, second = 0, third = 0, fourth = 0] = numbers
  const isWhole = !numbers.some(Number.isNaN)
  if (isWhole && numbers.length === 2) return { point: { latitude: first, longitude: second } }
  if (isWhole && numbers.length === 4) {
    const box = { south: first, west: second, north: third, east: fourth }
    if (box.south > box.north) throw wrongWayRound(box, 'south', 'north')
    if (box.west > box.east) throw wrongWayRound(box, 'west', 'east')
    return { box }
  }
  throw new InputError(`the target must be ${allowed}, got ${quoted(text)}`)
}

// No edge is beyond 180 degrees; "+ 0" turns -0 into 0.
const degreesOf = (text: string): number => {
  const degrees = /^[+-]?(\d+\.?\d*|\.\d+)$/.test(text.trim()) ? Number(text) + 0 : Number.NaN
  return Math.abs(degrees) <= 180 ? degrees : Number.NaN
}

const wrongWayRound = (box: Box, low: 'south' | 'west', high: 'north' | 'east') =>
  new InputError(`a box must be south,west,north,east with ${low} below ${high}, got ${boxText(box)}`)

/** The cell of a point or a place, and the place if it is one. @throws InputError for what is out of bounds or not published */
export const cellOfTarget = (
  pointOrPlace: PointOrPlace,
  { catalogue, grid }: Area,
): { cell: Cell; place?: Location } => {
  if ('point' in pointOrPlace) {
    const { latitude, longitude } = pointOrPlace.point
    const { bounds, title } = catalogue
    within('latitude', latitude, bounds.south, bounds.north, title)
    within('longitude', longitude, bounds.west, bounds.east, title)
    return { cell: grid.cellOf(latitude, longitude) }
  }
  const { type, id } = pointOrPlace.place
  const place = catalogue.find(type, id)
  if (!place) throw new InputError(`the ${type} ${quoted(id)} was not found or is not published`)
  return { cell: grid.cellOf(place.latitude, place.longitude), place }
}

const within = (name: string, value: number, min: number, max: number, title: string): void => {
  if (value < min || value > max)
    throw new InputError(`the ${name} must be from ${min} to ${max} (${title}), got ${value}`)
}

/** The scope of a purge and the cells in it that may be cached. @throws InputError as `cellOfTarget`, and for a box without any cell */
export const scopeOf = (
  target: Target,
  area: Area,
): { scope: PurgeScope; cells: Cells; place?: Location } => {
  // The centre of a cell on the edge may lie outside the bounds.
  const { grid } = area
  const { bounds } = area.catalogue
  const { latitude: south, longitude: west } = grid.cellOf(bounds.south, bounds.west)
  const { latitude: north, longitude: east } = grid.cellOf(bounds.north, bounds.east)
  if ('all' in target) return { scope: { all: true }, cells: grid.cellsIn({ south, west, north, east }) }
  if ('box' in target) {
    const { box } = target
    const cells = grid.cellsIn({
      south: Math.max(south, box.south),
      west: Math.max(west, box.west),
      north: Math.min(north, box.north),
      east: Math.min(east, box.east),
    })
    if (cells.length === 0)
      throw new InputError(
        `a box must hold the centre of a grid cell within ${boxText({ south, west, north, east })}, got ${boxText(box)}`,
      )
    return { scope: { box }, cells }
  }
  const { cell, ...rest } = cellOfTarget(target, area)
  return { scope: { cell: cell.id }, cells: [cell], ...rest }
}

const anArea = 'a place such as district/3026'

/** @throws InputError when the text is no place */
export const areaTargetIn = (text: string): Extract<PointOrPlace, { readonly place: unknown }> => {
  const target = read(text, anArea)
  if ('place' in target) return target
  throw new InputError(`the area must be ${anArea}, got ${quoted(text)}`)
}

/** The scope of a purge of a place and all places below it, the unpublished ones too. @throws InputError as `cellOfTarget` */
export const scopeOfArea = (target: ReturnType<typeof areaTargetIn>, cellDegrees: number, area: Area) => {
  const { place } = cellOfTarget(target, area)
  const places = place ? area.catalogue.areaOf(place) : []
  const all = places.map(({ latitude, longitude }) => area.grid.cellOf(latitude, longitude))
  const cells = [...new Map(all.map(cell => [cell.id, cell])).values()]
  const { type, id } = target.place
  const scope: PurgeScope = { area: `${type}/${id}`, cells: cellSetOf(cells, cellDegrees) }
  return { scope, cells, place, places: places.length }
}

const boxText = ({ south, west, north, east }: Box): string => [south, west, north, east].join(',')
