// A storm in one part of the country: while it lasts, those who live there request their weather many times as often.

import type { Location } from '../../../catalogue/location-schema.ts'

export type Storm = {
  /** Where it is: this place and all below it. */
  readonly place: Location
  /** Ms since the epoch. */
  readonly from: number
  readonly to: number
  /** How many times the usual requests come for these places at its height. */
  readonly factor: number
}

/** How strong it is at an instant, 0 to 1: it rises over the first quarter of its time, and falls over the second half. */
export const strengthAt = ({ from, to }: Storm, instant: number): number => {
  const progress = (instant - from) / (to - from)
  return Math.max(0, Math.min(1, progress * 4, (1 - progress) * 2))
}
