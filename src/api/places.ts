// The place that a path names, and its part of a body: whose weather it is, which is the same at all times.

import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Location, LocationType } from '../catalogue/location-schema.ts'
import type { BodyStart } from './content-coding.ts'
import { createArena } from './copy-out-of-pool.ts'
import { deflatedStart, type GzipStart, storedStart } from './joined-gzip.ts'
import { type Language, locationType } from './parameters.ts'
import { notFound } from './problem.ts'
import { tagOf } from './representation.ts'
import { namedSummaryOf, nearbyOf, placeText, pointOf, summaryOf } from './response-bodies.ts'
import { type Sentence, sentences } from './sentences.ts'

/** The catalogue in force; it may be swapped between two requests. */
export type CurrentCatalogue = { readonly current: Catalogue }

/** The published place of a path, by its id or its slug. @throws Problem 400 for a wrong type, 404 for no such place or several */
export const findLocation = (catalogue: Catalogue, type: string, id: string): Location => {
  const wanted = locationType.read(type)
  const location =
    catalogue.find(wanted, id) ?? (isId.test(id) ? undefined : findBySlug(catalogue, wanted, id))
  if (!location) throw notFound(notFoundText(catalogue, wanted, id))
  return location
}

const isId = /^\d+$/
const namedIds = 3

const findBySlug = (catalogue: Catalogue, type: LocationType, slug: string): Location | undefined => {
  const found = catalogue.withSlug(type, slug)
  const [first, ...others] = found
  if (!first || others.length === 0) return first
  const ids = found
    .slice(0, namedIds)
    .map(({ id }) => id)
    .join(', ')
  throw notFound(sentences.path.ambiguous(type, first.slug_en, found.length, ids))
}

// Previous codes stand in tables and programs for years after a change.
const notFoundText = (catalogue: Catalogue, type: LocationType, id: string): Sentence => {
  const successor = catalogue.successorOf(type, id)
  return successor
    ? sentences.path.previousCode(type, id, successor.location.id, successor.since)
    : sentences.path.place(type, id)
}

/** The part of a body that says whose weather it is, and its name in an ETag. */
export type PlacePart = BodyStart & {
  readonly tag: string
  /** Whether it is the same object for each request. */
  readonly isKept: boolean
}

/** With names in a language as /weather gives them, or without as /forecast does. */
export type PartForm = Language | 'forecast'

/**
 * The part of a raw point, which is not kept because there are too many points.
 * @param near the catalogue whose places near the point it names too
 */
export const pointPart = (latitude: number, longitude: number, near?: Catalogue): PlacePart => {
  const point = { latitude, longitude }
  const bytes = Buffer.from(placeText(pointOf(latitude, longitude), near && nearbyOf(point, near)))
  return {
    bytes,
    tag: tagOf(bytes),
    // The places near it change with the catalogue.
    identity: `${latitude},${longitude}${near ? `,${near.checksum}` : ''}`,
    isKept: false,
    gzipStart: storedOf,
  }
}

function storedOf(this: PlacePart): GzipStart {
  return storedStart(this.bytes)
}

let made = 0

/** Makes the parts of the places of one catalogue; their memory is freed together. */
export const createPartMaker = (catalogue: Catalogue) => {
  const keep = createArena()
  return (location: Location, form: PartForm): PlacePart => {
    const summary =
      form === 'forecast' ? summaryOf(location, catalogue) : namedSummaryOf(location, catalogue, form)
    const bytes = keep(Buffer.from(placeText(summary)))
    made += 1
    const part: KeptPart = {
      bytes,
      tag: tagOf(bytes),
      identity: made,
      isKept: true,
      keep,
      wasZipped: false,
      deflated: undefined,
      gzipStart: deflatedOf,
    }
    return part
  }
}

type KeptPart = PlacePart & {
  readonly keep: ReturnType<typeof createArena>
  wasZipped: boolean
  deflated: GzipStart | undefined
}

/** Compressed from the second time on: most places of a large catalogue are requested rarely. */
function deflatedOf(this: KeptPart): GzipStart {
  if (!this.wasZipped) {
    this.wasZipped = true
    return storedStart(this.bytes)
  }
  if (!this.deflated) {
    const start = deflatedStart(this.bytes)
    this.deflated = { ...start, bytes: this.keep(start.bytes) }
  }
  return this.deflated
}
