// The place that a path names, in the catalogue in force, with what every response about it has in common: its grid cell
// and its part of the body. Made with its first request; a newer catalogue begins anew.

import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Location, LocationType } from '../catalogue/location-schema.ts'
import type { Cell } from '../weather/cell.ts'
import { deflatedStart, type GzipStart, storedStart } from './joined-gzip.ts'
import { type Language, locationType } from './parameters.ts'
import { notFound } from './problem.ts'
import { tagOf } from './representation.ts'
import { namedSummaryOf, placeText, pointOf, summaryOf } from './response-bodies.ts'
import { type Sentence, sentences } from './sentences.ts'
import { type Arena, createArena } from './unpooled.ts'

/** The catalogue in force; it may be swapped between two requests. */
export type CurrentCatalogue = { readonly current: Catalogue }

/** The part of a body that says whose weather it is, and its name in an ETag. */
export type PlacePart = {
  readonly bytes: Buffer
  readonly tag: string
  /** The requested path: cached bodies are found by it, never by a hash. */
  readonly identity: number | string
  /** The beginning of a gzip with these bytes. */
  gzipStart(): GzipStart
}

type Place = {
  readonly cell: Cell
  /** With names in a language as /weather gives them, or without as /forecast does. */
  part(form: Language | 'forecast'): PlacePart
}

/** The published place of a path. @throws Problem 400 for a wrong type, 404 for no such place */
export const findLocation = (catalogue: Catalogue, type: string, id: string): Location => {
  const wanted = locationType.read(type)
  const location = catalogue.find(wanted, id)
  if (!location) throw notFound(notFoundText(catalogue, wanted, id))
  return location
}

// Former codes stand in tables and programs for years after a change.
const notFoundText = (catalogue: Catalogue, type: LocationType, id: string): Sentence => {
  const successor = catalogue.successorOf(type, id)
  return successor
    ? sentences.path.formerCode(type, id, successor.location.id, successor.since)
    : sentences.path.place(type, id)
}

/** The part of a raw point, which is not kept because there are too many points. */
export const pointPart = (latitude: number, longitude: number): PlacePart => {
  const bytes = Buffer.from(placeText(pointOf(latitude, longitude)))
  return { bytes, tag: tagOf(bytes), identity: `${latitude},${longitude}`, gzipStart: storedOf }
}

function storedOf(this: PlacePart): GzipStart {
  return storedStart(this.bytes)
}

type KeptPart = PlacePart & {
  /** Where its bytes are. */
  readonly arena: Arena
  wasZipped: boolean
  deflated: GzipStart | undefined
}

const keptPart = (bytes: Buffer, identity: number, arena: Arena): KeptPart => ({
  bytes,
  tag: tagOf(bytes),
  identity,
  arena,
  wasZipped: false,
  deflated: undefined,
  gzipStart: deflatedOf,
})

/** Compressed from the second time on: most places of a large catalogue are asked for once in a long while. */
function deflatedOf(this: KeptPart): GzipStart {
  if (!this.wasZipped) {
    this.wasZipped = true
    return storedStart(this.bytes)
  }
  if (!this.deflated) {
    const start = deflatedStart(this.bytes)
    this.deflated = { ...start, bytes: this.arena.copy(start.bytes) }
  }
  return this.deflated
}

/** The place of a path. @throws Problem as `findLocation` does */
export type FindPlace = (type: string, id: string) => Place

export const createPlaces = (
  catalogue: CurrentCatalogue,
  cellAt: (location: Location) => Cell,
): FindPlace => {
  let from = catalogue.current
  // By id, which no two published places of a catalogue share.
  let places = new Map<string, Place & { readonly type: string }>()
  // All places of a catalogue go with it.
  let arena = createArena()
  let made = 0
  const placeOf = (location: Location): Place => {
    const parts: Partial<Record<Language | 'forecast', PlacePart>> = {}
    const [source, ownArena] = [from, arena]
    return {
      cell: cellAt(location),
      part: form => {
        if (!parts[form]) {
          const summary =
            form === 'forecast' ? summaryOf(location, source) : namedSummaryOf(location, source, form)
          made += 1
          const bytes = ownArena.text(placeText(summary))
          parts[form] = keptPart(bytes, made, ownArena)
        }
        return parts[form]
      },
    }
  }

  return (type, id) => {
    if (from !== catalogue.current) {
      from = catalogue.current
      places = new Map()
      arena = createArena()
    }
    const known = places.get(id)
    if (known?.type === type) return known
    const place = { ...placeOf(findLocation(from, type, id)), type }
    places.set(id, place)
    return place
  }
}
