// Rain: the lift of weather systems of three sizes, compared with the dryness of the season. Amounts are whole hundredths of a mm, so
// that parts and sums agree to the last printed digit.

import type { Season } from './climate.ts'
import type { Place } from './points.ts'
import { solarHour } from './sun.ts'
import { orographicLift } from './terrain.ts'
import type { Texture } from './texture.ts'

export const createRain = (texture: Texture, place: Place) => {
  const system = texture.truth('rain system', 2.5, 40)
  const cluster = texture.truth('rain cluster', 0.55, 5)
  const cell = texture.truth('rain cell', 0.16, 1.3)
  const error = texture.error('rain error', 1.2, 14)
  const character = texture.truth('rain character', 0.8, 9)
  const lift = orographicLift(place)

  // Hills lift the air in the wet months; heat does so late in the day, most strongly before the monsoon.
  const need = (instant: number, season: Season): number => {
    const hour = solarHour(instant, place.longitude)
    const evening = Math.cos(((hour - 17) * Math.PI) / 12)
    return season.dryness - lift * (1 - season.dryness) - 0.07 * season.convection * evening
  }
  const broad = (instant: number): number =>
    0.5 * system(instant) + 0.32 * cluster(instant) + 0.3 * error(instant)

  /** The lift above what rain needs in this season; it rains above 0. */
  const surplusAt = (instant: number, season: Season): number =>
    broad(instant) + 0.18 * cell(instant) - need(instant, season)

  return {
    surplus: surplusAt,
    /** Hundredths of a mm in the 15 minutes up to the instant. */
    amount: (instant: number, season: Season): number => {
      const surplus = surplusAt(instant, season)
      return surplus <= 0 ? 0 : Math.round(520 * (1 + 0.8 * season.convection) * surplus ** 1.5)
    },
    /** The part of an amount that falls as showers. */
    showers: (amount: number, instant: number, season: Season): number => {
      const share = season.convection * 0.9 - 0.15 + 0.6 * character(instant)
      return Math.round(amount * Math.min(1, Math.max(0, share)))
    },
    /** Per cent, for the hour up to the instant. */
    chance: (instant: number, season: Season): number => {
      const likely = 1 / (1 + Math.exp(-(broad(instant) - need(instant, season)) / 0.075))
      return Math.min(98, likely * 100)
    },
  }
}
