// The places that the gateway serves, as an immutable view of one snapshot. It hides unpublished places, except as the parent of
// a published one.

import { type Bounds, type Location, type LocationType, parentTypeOf } from './location-schema.ts'
import { createNameIndex, type Matches, type NameIndex } from './name-index.ts'
import { createNearest, type Point } from './nearest.ts'
import { fold, foldLoosely, isBlank, isLooselySearchable, isSearchable, withoutLevel } from './search.ts'
import type { Snapshot } from './snapshot.ts'

/** The places of a level: children of `parentId` if given, with `q` in a name if given. */
export type ListQuery = Readonly<{
  type: LocationType
  parentId?: string | undefined
  q?: string | undefined
  limit: number
  offset: number
}>

/**
 * A page of matches and the number of all matches before `limit` and `offset`. `matchedAliases` has the alias of each
 * place on the page that only an alias matched; `approximate` is true when only the looser fold matched.
 */
export type ListPage = Readonly<{
  results: readonly Location[]
  total: number
  matchedAliases: ReadonlyMap<Location, string>
  approximate: boolean
}>

/** The published place that replaced a former id, and since when if that is known. */
type Successor = Readonly<{ location: Location; since?: string }>

export type Catalogue = Readonly<{
  /** The published place of that level and id. */
  find(type: LocationType, id: string): Location | undefined
  /** The published places of that level with the slug, in any case; the most populous first. */
  withSlug(type: LocationType, slug: string): readonly Location[]
  /** The published place of that level that is nearest to a point; undefined where the level has none. */
  nearest(type: LocationType, point: Point): Location | undefined
  /** The published place of that level that had the id before; undefined if a place has the id now. */
  successorOf(type: LocationType, formerId: string): Successor | undefined
  /** The place one level up, published or not. */
  parentOf(location: Location): Location | undefined
  /** The place itself and all below it, published or not. */
  areaOf(location: Location): readonly Location[]
  /** Published places, the most populous first, equals by id. */
  list(query: ListQuery): ListPage
  /** Every published place, by id. */
  all(): readonly Location[]
  /** How many places are published. */
  size: number
  /** The snapshot's checksum: equal checksums mean equal places. */
  checksum: string
  /** The name of the region, and its box, within which coordinates are answered. */
  title: string
  bounds: Bounds
}>

// Sorting is stable and a snapshot is by id, so equals stay by id and pages never overlap.
const byPopulation = (a: Location, b: Location): number => b.population - a.population

const none: readonly Location[] = []
const noAliases: ReadonlyMap<Location, string> = new Map()

const noMatches: Matches = { page: [], total: 0 }

/** The catalogue of a snapshot; builds each index with the first question to it. */
export const createCatalogue = (snapshot: Snapshot): Catalogue => {
  const byId = new Map<string, Location>(snapshot.locations.map(location => [location.id, location]))
  const published = Object.freeze(snapshot.locations.filter(location => location.published))
  const sorted = published.toSorted(byPopulation)
  const byType = Map.groupBy(sorted, ({ type }) => type)
  const byParent = Map.groupBy(sorted, ({ parentId }) => parentId)
  const successors = new Map<string, Successor>()
  for (const location of published)
    for (const { id, until } of location.formerIds)
      successors.set(id, until === undefined ? { location } : { location, since: until })
  const exact = new Map<readonly Location[], NameIndex>()
  const loose = new Map<readonly Location[], NameIndex>()

  const perType = <Index>(make: (places: readonly Location[]) => Index): ((type: LocationType) => Index) => {
    const made = new Map<LocationType, Index>()
    return type => {
      const index = made.get(type) ?? make(byType.get(type) ?? none)
      made.set(type, index)
      return index
    }
  }
  const bySlug = perType(places => Map.groupBy(places, ({ slug_en }) => slug_en))
  const nearestOf = perType(createNearest)

  const listed = ({ type, parentId }: ListQuery): readonly Location[] => {
    if (parentId === undefined) return byType.get(type) ?? none
    const parent = byId.get(parentId)
    // All children of a place have the same level.
    if (!parent?.published || parent.type !== parentTypeOf(type)) return none
    return byParent.get(parent.id) ?? none
  }

  const indexOf = (places: readonly Location[], indices: typeof exact, foldName: typeof fold): NameIndex => {
    const known = indices.get(places)
    if (known) return known
    const named = places.map(({ name_en, name_bn, aliases }) => ({ names: [name_en, name_bn], aliases }))
    const index = createNameIndex(named, foldName)
    indices.set(places, index)
    return index
  }

  const pageOf = (places: readonly Location[], { page, total }: Matches, approximate: boolean): ListPage => {
    const found = page.map(({ place, alias }) => {
      const location = places[place] as Location
      return { location, alias: alias === undefined ? undefined : location.aliases[alias] }
    })
    const aliases = found.flatMap(({ location, alias }): [Location, string][] =>
      alias === undefined ? [] : [[location, alias]],
    )
    return {
      results: found.map(({ location }) => location),
      total,
      matchedAliases: aliases.length === 0 ? noAliases : new Map(aliases),
      approximate,
    }
  }

  return Object.freeze<Catalogue>({
    find: (type, id) => {
      const location = byId.get(id)
      return location?.published && location.type === type ? location : undefined
    },
    withSlug: (type, slug) => bySlug(type).get(slug.toLowerCase()) ?? none,
    nearest: (type, point) => nearestOf(type)(point),
    successorOf: (type, formerId) => {
      const successor = successors.get(formerId)
      return successor?.location.type === type ? successor : undefined
    },
    parentOf: ({ parentId }) => (parentId === null ? undefined : byId.get(parentId)),
    areaOf: area => {
      const isWithin = (location: Location | undefined): boolean =>
        location !== undefined && (location === area || isWithin(byId.get(location.parentId ?? '')))
      return snapshot.locations.filter(isWithin)
    },
    list: query => {
      const { q = '', limit, offset } = query
      const places = listed(query)
      if (isBlank(q)) {
        const results = places.slice(offset, offset + limit)
        return { results, total: places.length, matchedAliases: noAliases, approximate: false }
      }
      const wanted = fold(q)
      if (!isSearchable(wanted)) return pageOf(places, noMatches, false)
      const matches = indexOf(places, exact, fold)(wanted, limit, offset)
      if (matches.total > 0) return pageOf(places, matches, false)
      const wantedLoosely = foldLoosely(q)
      for (const each of new Set([wantedLoosely, withoutLevel(wantedLoosely)])) {
        if (!isLooselySearchable(each)) break
        const nearMatches = indexOf(places, loose, foldLoosely)(each, limit, offset)
        if (nearMatches.total > 0) return pageOf(places, nearMatches, true)
      }
      return pageOf(places, noMatches, false)
    },
    all: () => published,
    size: published.length,
    checksum: snapshot.provenance.sha256,
    title: snapshot.provenance.title,
    bounds: snapshot.provenance.bounds,
  })
}
