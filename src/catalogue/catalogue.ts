// The places we serve: one by its id, its parent, or a page of those that match. An immutable view of one snapshot;
// unpublished places are out of sight here, save as the parent that a published child names.

import type { Location, LocationId, LocationType } from './location.ts'
import { fold, foldNames } from './search.ts'
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

type Entry = Readonly<{ location: Location; names: string }>

// Sorting is stable and a snapshot is by id, so equals stay by id and pages never overlap.
const byPopulation = (a: Location, b: Location): number => b.population - a.population

/** The catalogue of a snapshot; names are folded here once, so that a search only compares. */
export const createCatalogue = (snapshot: Snapshot): Catalogue => {
  const byId = new Map<string, Location>(snapshot.locations.map(location => [location.id, location]))
  const published = Object.freeze(snapshot.locations.filter(location => location.published))
  const entries = published
    .toSorted(byPopulation)
    .map((location): Entry => ({ location, names: foldNames([location.name_en, location.name_bn]) }))
  const byType = Map.groupBy(entries, ({ location }) => location.type)
  const byParent = Map.groupBy(entries, ({ location }) => location.parentId)

  const listed = ({ type, parentId }: ListQuery): readonly Entry[] => {
    if (parentId === undefined) return byType.get(type) ?? []
    if (!byId.get(parentId)?.published) return []
    return (byParent.get(parentId as LocationId) ?? []).filter(({ location }) => location.type === type)
  }

  return Object.freeze<Catalogue>({
    find: (type, id) => {
      const location = byId.get(id)
      return location?.published && location.type === type ? location : undefined
    },
    parentOf: ({ parentId }) => (parentId === null ? undefined : byId.get(parentId)),
    list: query => {
      const wanted = fold(query.q ?? '')
      const candidates = listed(query)
      const matches = wanted === '' ? candidates : candidates.filter(({ names }) => names.includes(wanted))
      const page = matches.slice(query.offset, query.offset + query.limit)
      return { results: page.map(({ location }) => location), total: matches.length }
    },
    all: () => published,
    size: published.length,
    checksum: snapshot.provenance.sha256,
  })
}
