// What the catalogue says of the places of a request: an answer about a place has these values and no others. The catalogue is that of
// the begin, with the name that one place was given last.

import type { Answer, Place } from '../history.ts'
import { renamedPlace } from '../steps.ts'
import { type Facts, singlePathsOf } from './facts.ts'
import { partsOf } from './paths.ts'

const catalogues = new WeakMap<Facts, Map<string | undefined, Catalogue>>()

export type Catalogue = ReturnType<typeof catalogueOf>

/** The catalogue that is in force for an answer. */
export const catalogueFor = (facts: Facts, answer: Answer): Catalogue => {
  const name = facts.of('renewed').findLast(each => each.what === 'name' && each.seq < answer.sent.seq)?.value
  return catalogues
    .getOrInsertComputed(facts, () => new Map())
    .getOrInsertComputed(name, () => catalogueOf(facts.places, name))
}

const parentParameters: Readonly<Record<string, string>> = {
  district: 'division_id',
  upazila: 'district_id',
  union: 'upazila_id',
}

const catalogueOf = (given: readonly Place[], name: string | undefined) => {
  const places = given.map(place =>
    place.id === renamedPlace && name !== undefined ? { ...place, name_en: name } : place,
  )
  const byId = new Map(places.map(place => [place.id, place]))
  const parentOf = ({ parentId }: Place): Place | undefined => byId.get(parentId ?? '')

  const summaryOf = (place: Place) => {
    const { type, id, name_en, name_bn, slug_en, latitude, longitude } = place
    const parent = parentOf(place)
    return {
      ...{ type, id, name_en, name_bn, slug_en, latitude, longitude },
      ...{ parent_en: parent?.name_en ?? null, parent_bn: parent?.name_bn ?? null },
    }
  }
  const itemOf = (place: Place) => {
    const { population, area_sq_km } = place
    return { ...summaryOf(place), population, area_sq_km }
  }
  /** The places that a list counts, in its order. */
  const matching = (query: URLSearchParams): Place[] => {
    const type = query.get('type') ?? ''
    const parent = query.get(parentParameters[type] ?? '')
    const q = foldOf(query.get('q') ?? '')
    return places
      .filter(place => place.type === type && (!parent || place.parentId === parent))
      .filter(place =>
        [place.name_en, place.name_bn, ...place.aliases].some(each => foldOf(each).includes(q)),
      )
      .toSorted((a, b) => b.population - a.population || (a.id < b.id ? -1 : 1))
  }
  return {
    /** By its id or its slug. */
    find: (type: string, id: string): Place | undefined =>
      places.find(place => place.type === type && (place.id === id || place.slug_en === id)),
    summaryOf,
    /** With the names in a language. */
    namedOf: (place: Place, language: string) => {
      const name = language === 'en' ? 'name_en' : 'name_bn'
      const parent = parentOf(place)
      return { ...summaryOf(place), name: place[name], ...(parent && { parent: parent[name] }) }
    },
    detailOf: (place: Place) => ({ ...itemOf(place), website: place.website, bbs_code: Number(place.id) }),
    totalOf: (query: URLSearchParams): number => matching(query).length,
    listOf: (query: URLSearchParams) => {
      const found = matching(query)
      const { limit, offset } = pageOf(query)
      const q = foldOf(query.get('q') ?? '')
      return {
        results: found.slice(offset, offset + limit).map(place => {
          const isByName = [place.name_en, place.name_bn].some(each => foldOf(each).includes(q))
          const alias = place.aliases.find(each => foldOf(each).includes(q))
          return { ...itemOf(place), ...(!isByName && { matched_alias: alias }) }
        }),
        total: found.length,
        type: query.get('type'),
      }
    },
    /** The nearest union, and what it lies in. */
    nearOf: (latitude: number, longitude: number) => {
      const km = (place: Place): number => kilometresTo(place, latitude, longitude)
      const [union] = places.filter(({ type }) => type === 'union').toSorted((a, b) => km(a) - km(b))
      const upazila = union && parentOf(union)
      const near = (place: Place | undefined) =>
        place && {
          ...{ type: place.type, id: place.id, name_en: place.name_en, name_bn: place.name_bn },
          distance_km: Math.round(km(place) * 10) / 10,
        }
      return { union: near(union), upazila: near(upazila), district: near(upazila && parentOf(upazila)) }
    },
  }
}

/** Which part of a list is asked for. */
export const pageOf = (query: URLSearchParams): { limit: number; offset: number } => ({
  limit: Number(query.get('limit') ?? 50),
  offset: Number(query.get('offset') ?? 0),
})

/** Latin names in small letters, without what writers leave out. */
const foldOf = (text: string): string => text.toLowerCase().replace(/[\s.'’-]/g, '')

const radiusKm = 6_371
const radians = (degrees: number): number => (degrees * Math.PI) / 180
/** By the haversine formula. */
const kilometresTo = (place: Place, latitude: number, longitude: number): number => {
  const [north, east] = [radians(place.latitude - latitude), radians(place.longitude - longitude)]
  const across = Math.cos(radians(latitude)) * Math.cos(radians(place.latitude)) * Math.sin(east / 2) ** 2
  return 2 * radiusKm * Math.asin(Math.sqrt(Math.sin(north / 2) ** 2 + across))
}

/** The coordinates that a request for weather names; undefined for no place. */
export const whereOf = (
  catalogue: Catalogue,
  path: string,
): { latitude: number; longitude: number } | undefined => {
  const { type, id, more } = partsOf(path)
  return type === 'coords' ? { latitude: Number(id), longitude: Number(more) } : catalogue.find(type, id)
}

/** The cells that a request for weather names, which are a tenth of a degree wide. */
export const cellsOf = (facts: Facts, answer: Answer): string[] =>
  singlePathsOf(answer).flatMap(path => {
    const where = whereOf(catalogueFor(facts, answer), path)
    return where ? `${Math.round(where.latitude * 10)} ${Math.round(where.longitude * 10)}` : []
  })
