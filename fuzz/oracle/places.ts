// The places of the catalogue's file, ordered and filtered by the contract. Shares no code with the gateway.

import { readFileSync } from 'node:fs'

export type Place = {
  readonly id: string
  readonly type: string
  readonly parent_id: string | null
  readonly slug_en: string
  readonly name_en: string
  readonly name_bn: string
  readonly latitude: number
  readonly longitude: number
  readonly population: number
  readonly published?: boolean
}

export const placeTypes = ['division', 'district', 'upazila', 'union'] as const

const file = new URL('../../locations.json', import.meta.url)
const all = (JSON.parse(readFileSync(file, 'utf8')) as { locations: Place[] }).locations

/** Published places, ordered by population, largest first, then by id. */
export const places: readonly Place[] = all
  .filter(({ published }) => published !== false)
  .toSorted((one, other) => other.population - one.population || (one.id < other.id ? -1 : 1))

const byId = new Map(places.map(place => [place.id, place]))

const bySlug = Map.groupBy(places, ({ type, slug_en }) => `${type} ${slug_en}`)

/** By its id, or by a slug that no other place of the type has. */
export const placeOf = (type: string, given: string): Place | undefined => {
  const place = byId.get(given)
  if (place?.type === type) return place
  const [found, ...others] = bySlug.get(`${type} ${given.toLowerCase()}`) ?? []
  return others.length === 0 ? found : undefined
}
