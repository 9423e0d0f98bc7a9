// The places of the catalogue's file, ordered and filtered by the contract. Shares no code with the gateway.

import { readFileSync } from 'node:fs'

export type Place = {
  readonly id: string
  readonly type: string
  readonly parent_id: string | null
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

export const placeOf = (type: string, id: string): Place | undefined => {
  const place = byId.get(id)
  return place?.type === type ? place : undefined
}
