// The place that a path names, in the catalogue that is in force.

import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Location } from '../catalogue/location.ts'
import { locationTypeOf } from './parameters.ts'
import { notFound, quoted } from './problem.ts'

/** The catalogue that is in force now; it may be swapped between two requests. */
export type CurrentCatalogue = () => Catalogue

/** The published place of a path. @throws Problem 400 for a wrong type, 404 for no such place */
export const findPlace = (catalogue: Catalogue, type: string, id: string): Location => {
  const wanted = locationTypeOf(type)
  const location = catalogue.find(wanted, id)
  if (!location) throw notFound(`the ${wanted} ${quoted(id)} was not found or is not published`)
  return location
}
