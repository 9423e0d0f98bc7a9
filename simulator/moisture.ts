// Water vapour in the air: dew point, vapour pressure deficit and wet bulb from temperature and humidity, and the reference
// evapotranspiration. Pure formulas; air.ts computes temperature and humidity.

/** Pressure of the water vapour in saturated air, hPa. Magnus formula. */
export const saturation = (celsius: number): number =>
  6.112 * Math.exp((17.62 * celsius) / (243.12 + celsius))

/** Temperature and relative humidity, °C and %. */
type Moist = { readonly temperature: number; readonly humidity: number }

/** hPa */
export const vapourOf = ({ temperature, humidity }: Moist): number =>
  (humidity / 100) * saturation(temperature)

/** °C, at most the temperature. */
export const dewPointOf = (moist: Moist): number => {
  const exponent = Math.log(vapourOf(moist) / 6.112)
  return Math.min(moist.temperature, (243.12 * exponent) / (17.62 - exponent))
}

/** Vapour pressure deficit, kPa. */
export const deficitOf = (moist: Moist): number => (saturation(moist.temperature) - vapourOf(moist)) / 10

/** °C, between dew point and temperature. Stull's formula for pressure near that of the sea. */
export const wetBulbOf = (moist: Moist): number => {
  const { temperature, humidity } = moist
  const wetBulb =
    temperature * Math.atan(0.151977 * Math.sqrt(humidity + 8.313659)) +
    Math.atan(temperature + humidity) -
    Math.atan(humidity - 1.676331) +
    0.00391838 * humidity ** 1.5 * Math.atan(0.023101 * humidity) -
    4.686035
  return Math.min(temperature, Math.max(dewPointOf(moist), wetBulb))
}

/** The inputs of evapotranspiration: wind in km/h at 10 m, global radiation in W/m², pressure in hPa, cloud in %. */
type Evaporating = Moist & {
  readonly wind: number
  readonly radiation: number
  readonly surfacePressure: number
  readonly cloud: number
}

/** Reference evapotranspiration in mm an hour, never below 0. FAO Penman-Monteith with rough longwave radiation. */
export const evapotranspirationOf = (air: Evaporating): number => {
  const { temperature, wind, radiation, surfacePressure, cloud } = air
  const slope = (17.62 * 243.12 * saturation(temperature)) / 10 / (243.12 + temperature) ** 2
  const psychrometric = 0.0000665 * surfacePressure
  const windAtTwoMetres = (wind / 3.6) * 0.748
  const longwave = 0.2 * (1 - 0.007 * cloud)
  const net = 0.77 * radiation * 0.0036 - longwave
  const stored = (radiation > 0 ? 0.1 : 0.5) * net
  const evaporated =
    0.408 * slope * (net - stored) +
    psychrometric * (37 / (temperature + 273)) * windAtTwoMetres * deficitOf(air)
  return Math.max(0, evaporated / (slope + psychrometric * (1 + 0.34 * windAtTwoMetres)))
}
