// Computes the WMO weather code from rain, cloud and fog. The code is a rain code if and only if it rains. Pure.

/** The inputs of a code. */
export type Signs = {
  /** The rain rate in mm per hour, and the part of it that falls as showers. */
  readonly rate: number
  readonly showers: number
  /** Share of the season's rain that comes from thunderclouds, 0..1. */
  readonly convection: number
  /** Whole per cent of the sky. */
  readonly cloud: number
  readonly foggy: boolean
}

/** One of the codes the provider uses, 0 to 99. */
export const weatherCode = ({ rate, showers, convection, cloud, foggy }: Signs): number => {
  if (rate > 0) {
    const violence = showers * convection
    if (violence >= 13) return 99
    if (violence >= 9) return 96
    if (violence >= 2.5) return 95
    if (showers > rate / 2) return step(rate, 2.5, 7.6, [80, 81, 82])
    if (rate < 1) return step(rate, 0.3, 0.6, [51, 53, 55])
    return step(rate, 2.5, 7.6, [61, 63, 65])
  }
  if (foggy) return 45
  if (cloud < 15) return 0
  return step(cloud, 40, 80, [1, 2, 3])
}

const step = (
  value: number,
  second: number,
  third: number,
  codes: readonly [number, number, number],
): number => (value < second ? codes[0] : value < third ? codes[1] : codes[2])
