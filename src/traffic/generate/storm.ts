// A storm in one part of the country: while it lasts, those who live there look at their weather several times as often, on
// top of the usual traffic. Where and when; the drawing is for generate.ts.

import type { Catalogue } from '../../catalogue/catalogue.ts'
import type { Location } from '../../catalogue/location.ts'

export type Storm = {
  /** The place, with all places below it. */
  readonly place: Location
  /** Ms since the epoch. */
  readonly from: number
  readonly to: number
  /** How many times the usual requests for these places come at its height. */
  readonly factor: number
}

/** What is left of a storm's height at an instant, 0 to 1: it rises over a quarter of its time, and ends over the last half. */
export const strengthAt = ({ from, to }: Storm, instant: number): number => {
  const progress = (instant - from) / (to - from)
  if (progress <= 0 || progress >= 1) return 0
  return Math.min(1, progress * 4, (1 - progress) * 2)
}

/** Whether a place is that of a storm or lies in it. */
export const isWithin = (place: Location, storm: Storm, catalogue: Catalogue): boolean => {
  for (let at: Location | undefined = place; at; at = catalogue.parentOf(at))
    if (at.id === storm.place.id) return true
  return false
}
