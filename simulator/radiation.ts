// Solar radiation at the ground, computed from the sun's height and the cloud: direct and diffuse light, and the
// ultraviolet index. Pure; sun.ts has the height of the sun, air.ts the cloud.

const solarConstant = 1361
const strongestBeam = 1050

/** W/m². */
export type Radiation = {
  /** At the top of the atmosphere, on a level plane. */
  readonly terrestrial: number
  /** On a level plane at the ground: the sum of the direct and the diffuse part. */
  readonly global: number
  readonly direct: number
  readonly diffuse: number
  /** Direct light on a plane that faces the sun. */
  readonly beam: number
}

/** @param height sine of the height of the sun @param cloud % */
export const radiationOf = (height: number, cloud: number): Radiation => {
  const sine = Math.max(0, height)
  const terrestrial = solarConstant * sine
  // Clear sky after Haurwitz; attenuation by cloud after Kasten and Czeplak.
  const clear = sine > 0 ? 1098 * sine * Math.exp(-0.057 / sine) : 0 * sine
  const global = clear * cloudFactor(cloud)
  const diffuseShare = 0.15 + 0.85 * (cloud / 100) ** 1.5
  const beam = sine > 0 ? Math.min(strongestBeam, (global * (1 - diffuseShare)) / sine) : 0 * sine
  const direct = beam * sine
  return { terrestrial, global, direct, diffuse: global - direct, beam }
}

/** The index under a sky without cloud. */
export const clearSkyUvIndex = (height: number): number => 12.5 * Math.max(0, height) ** 2.42

/** The index under cloud, in %. */
export const uvIndex = (height: number, cloud: number): number => clearSkyUvIndex(height) * cloudFactor(cloud)

/** The fraction of the step with sunshine, which is direct light above 120 W/m²; broken cloud blurs the threshold. */
export const sunshineShare = (height: number, cloud: number): number =>
  Math.min(1, Math.max(0, (radiationOf(height, cloud).beam - 60) / 240))

const cloudFactor = (cloud: number): number => 1 - 0.75 * (cloud / 100) ** 3.4
