// The places we serve: one by its id, its parent, or a page of those that match. An immutable view of one snapshot;
// unpublished places are out of sight here, save as the parent that a published child names.

import { type Location, type LocationType, parentTypeOf } from './location.ts'
import { createNameIndex, type NameIndex } from './name-index.ts'
import { fold } from './search.ts'
import type { Snapshot } from './snapshot.ts'

/** Which places to list: those of a level, directly under `parentId` if given, whose names hold `q` if given. */
export type ListQuery = Readonly<{
  type: LocationType
  parentId?: string | undefined
  q?: string | undefined
  limit: number
  offset: number
}>

/** A page of matches and the number of all matches before `limit` and `offset`. */
export type ListPage = Readonly<{ results: readonly Location[]; total: number }>

export type Catalogue = Readonly<{
  /** The published place of that level and id. */
  find(type: LocationType, id: string): Location | undefined
  /** The place one level up, published or not. */
  parentOf(location: Location): Location | undefined
  /** Published places, the most populous first, equals by id. */
  list(query: ListQuery): ListPage
  /** Every published place, by id. */
  all(): readonly Location[]
  /** How many places are published. */
  size: number
  /** The snapshot's checksum: two catalogues with the same one hold the same places. */
  checksum: string
}>

// Sorting is stable and a snapshot is by id, so equals stay by id and pages never overlap.
const byPopulation = (a: Location, b: Location): number => b.population - a.population

const none: readonly Location[] = []

/** The catalogue of a snapshot; the names of a list are made ready when it is first searched, and only then. */
export const createCatalogue = (snapshot: Snapshot): Catalogue => {
  const byId = new Map<string, Location>(snapshot.locations.map(location => [location.id, location]))
  const published = Object.freeze(snapshot.locations.filter(location => location.published))
  const sorted = published.toSorted(byPopulation)
  const byType = Map.groupBy(sorted, ({ type }) => type)
  const byParent = Map.groupBy(sorted, ({ parentId }) => parentId)
  const indices = new Map<readonly Location[], NameIndex>()

  const listed = ({ type, parentId }: ListQuery): readonly Location[] => {
    if (parentId === undefined) return byType.get(type) ?? none
    const parent = byId.get(parentId)
    // All children of a place are of one level.
    if (!parent?.published || parent.type !== parentTypeOf(type)) return none
    return byParent.get(parent.id) ?? none
  }

  const indexOf = (places: readonly Location[]): NameIndex => {
    const known = indices.get(places)
    if (known) return known
    const index = createNameIndex(places.map(({ name_en, name_bn }) => [name_en, name_bn]))
    indices.set(places, index)
    return index
  }

  return Object.freeze<Catalogue>({
    find: (type, id) => {
      const location = byId.get(id)
      return location?.published && location.type === type ? location : undefined
    },
    parentOf: ({ parentId }) => (parentId === null ? undefined : byId.get(parentId)),
    list: query => {
      const { q = '', limit, offset } = query
      const places = listed(query)
      const wanted = fold(q)
      if (wanted === '') return { results: places.slice(offset, offset + limit), total: places.length }
      const { page, total } = indexOf(places)(wanted, limit, offset)
      return { results: page.map(at => places[at] as Location), total }
    },
    all: () => published,
    size: published.length,
    checksum: snapshot.provenance.sha256,
  })
}
