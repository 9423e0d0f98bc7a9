// Which place a request is for: by popularity, with additional requests where there is a storm.

import type { Catalogue } from 'abohawa/catalogue/catalogue.ts'
import type { Location } from 'abohawa/catalogue/location-schema.ts'
import { createChoice, createRandom, zipfWeights } from './random.ts'

export type Storm = {
  /** This place and all places below it. */
  readonly place: Location
  /** Ms since the epoch. */
  readonly from: number
  readonly to: number
  /** Times the usual requests at its peak. */
  readonly factor: number
}

/** From 0 to 1: rises over the first quarter of its time, falls over the second half. */
const strengthAt = ({ from, to }: Storm, instant: number): number => {
  const progress = (instant - from) / (to - from)
  return Math.max(0, Math.min(1, progress * 4, (1 - progress) * 2))
}

/** @param alpha Zipf exponent of the published places, by population */
export const createPopularPlaces = (
  catalogue: Catalogue,
  { seed, alpha, storms }: { seed: number; alpha: number; storms: readonly Storm[] },
) => {
  const places = catalogue.all().toSorted((a, b) => b.population - a.population)
  const popularity = zipfWeights(places.length, alpha)
  const usual = createChoice(popularity, createRandom(seed, 'places'))
  const random = createRandom(seed, 'places of storms')
  const areas = storms.map(storm => {
    const weights = places.map((place, i) =>
      isWithin(place, storm.place, catalogue) ? (popularity[i] as number) : 0,
    )
    const most = ((storm.factor - 1) * sum(weights)) / sum(popularity)
    return {
      draw: createChoice(weights, random),
      addedAt: (instant: number) => most * strengthAt(storm, instant),
    }
  })

  /** The requests that storms add, relative to the usual ones. */
  const addedAt = (instant: number) => areas.reduce((total, area) => total + area.addedAt(instant), 0)
  const isOfStorm = createRandom(seed, 'requests of storms')
  const positionAt = (instant: number): number => {
    let left = isOfStorm() * (1 + addedAt(instant)) - 1
    if (left >= 0)
      for (const { addedAt, draw } of areas) {
        left -= addedAt(instant)
        if (left < 0) return draw()
      }
    return usual()
  }
  return { addedAt, placeAt: (instant: number) => places[positionAt(instant)] as Location }
}

const isWithin = (place: Location, area: Location, catalogue: Catalogue): boolean => {
  for (let at: Location | undefined = place; at; at = catalogue.parentOf(at))
    if (at.id === area.id) return true
  return false
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
