// The type of a place, with the names of the API, and its fields in tables and snapshots.

import type { Branded } from '../common/brand.ts'

/** The levels of administration, from the widest to the narrowest; a place's parent is one level up. */
export const locationTypes = ['division', 'district', 'upazila', 'union'] as const

export type LocationType = (typeof locationTypes)[number]

/** A place's code in decimal digits, unique over all levels; it begins with the code of its parent. */
export type LocationId = Branded<'LocationId'>

/** An id that a place had before, until the given day, month or year (ISO 8601) if that is known. */
export type FormerId = Readonly<{ id: LocationId; until?: string }>

/** A place; always frozen. Area in square kilometres, points in decimal degrees (WGS 84). */
export type Location = Readonly<{
  id: LocationId
  type: LocationType
  parentId: LocationId | null
  name_en: string
  name_bn: string
  slug_en: string
  /** Other names in use, the most official first. */
  aliases: readonly string[]
  formerIds: readonly FormerId[]
  latitude: number
  longitude: number
  area_sq_km: number
  population: number
  population_basis: string
  coordinates_basis: string
  name_bn_basis: string
  website: string | null
  bbs_code: number
  published: boolean
}>

/** A box in decimal degrees; its edges are inside. */
export type Bounds = Readonly<{ south: number; north: number; west: number; east: number }>

/** How many places there are of each level, published or not. */
export type Counts = Readonly<Record<LocationType | 'total', number>>

/** The fields of a place that a source states; `bbs_code` is not stated but follows from `id`. */
export type Field = Exclude<keyof Location, 'bbs_code'>

/** The name of each field in a source; the source lacks a field that is left out. */
export type Naming = Readonly<Partial<Record<Field, string>>>

/** One place as read, unchecked: its position in the source, the names of its columns, and its fields by column. */
export type Row = Readonly<{ row: string; naming: Naming; fields: Readonly<Record<string, unknown>> }>

/** The keys of a location in a snapshot, in the order in which they are written. */
export const snapshotNaming = {
  id: 'id',
  type: 'type',
  parentId: 'parent_id',
  name_en: 'name_en',
  name_bn: 'name_bn',
  slug_en: 'slug_en',
  latitude: 'latitude',
  longitude: 'longitude',
  area_sq_km: 'area_sq_km',
  population: 'population',
  population_basis: 'population_basis',
  coordinates_basis: 'coordinates_basis',
  name_bn_basis: 'name_bn_basis',
  website: 'website',
  aliases: 'aliases',
  formerIds: 'former_ids',
  published: 'published',
} as const satisfies Record<Field, string>

export const fields = Object.keys(snapshotNaming) as Field[]

/** Fields that a place may lack. */
export const optionalFields: ReadonlySet<Field> = new Set(['aliases', 'formerIds', 'published'])

export const isLocationType = (value: unknown): value is LocationType =>
  locationTypes.includes(value as LocationType)

/** The level above, or null for the widest. */
export const parentTypeOf = (type: LocationType): LocationType | null =>
  locationTypes[locationTypes.indexOf(type) - 1] ?? null

/** The value of a field in a row; undefined if it is absent. */
export const fieldOf = (row: Row, field: Field): unknown => {
  const column = row.naming[field]
  return column === undefined ? undefined : row.fields[column]
}

const none: readonly never[] = Object.freeze([])

const frozenList = <Item extends string | object>(items: readonly Item[] | undefined): readonly Item[] =>
  items === undefined ? none : Object.freeze(items.map(item => Object.freeze(item)))

/** The place of a row; only for rows without a fault. */
export const locationOf = (row: Row): Location => {
  const read = <Name extends Field>(field: Name) => fieldOf(row, field) as Location[Name]
  return Object.freeze({
    id: read('id'),
    type: read('type'),
    parentId: read('parentId'),
    name_en: read('name_en'),
    name_bn: read('name_bn'),
    slug_en: read('slug_en'),
    aliases: frozenList(fieldOf(row, 'aliases') as string[] | undefined),
    formerIds: frozenList(fieldOf(row, 'formerIds') as FormerId[] | undefined),
    latitude: read('latitude'),
    longitude: read('longitude'),
    area_sq_km: read('area_sq_km'),
    population: read('population'),
    population_basis: read('population_basis'),
    coordinates_basis: read('coordinates_basis'),
    name_bn_basis: read('name_bn_basis'),
    website: read('website'),
    bbs_code: Number(read('id')),
    published: fieldOf(row, 'published') !== false,
  })
}

/** The number of places of each level; an unknown level counts only in the total. */
export const countByType = (types: readonly unknown[]): Counts => {
  const counts = { division: 0, district: 0, upazila: 0, union: 0, total: types.length }
  for (const type of types) if (isLocationType(type)) counts[type] += 1
  return counts
}
