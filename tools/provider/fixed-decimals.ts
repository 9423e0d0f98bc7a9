// Formats numbers as the provider does: with the decimals of the unit, such as `20.0`, `0.00` and `-0.0`, and null for NaN. Texts are
// kept, because a response repeats few numbers many times.

const kept = 12_000
const spellings: (string | undefined)[][] = [[], [], [], []]

/** @param decimals 0 to 3 */
export const printFixed = (value: number, decimals: number): string => {
  const scaled = Math.round(value * 10 ** decimals)
  if (!(scaled > 0 && scaled < kept)) return printRare(scaled, decimals)
  const known = spellings[decimals] as (string | undefined)[]
  const spelled = known[scaled]
  if (spelled !== undefined) return spelled
  const fresh = printRare(scaled, decimals)
  known[scaled] = fresh
  return fresh
}

/** All decimals, and at least one: `90.0`. */
export const printFloat = (value: number): string => (Number.isInteger(value) ? `${value}.0` : String(value))

const printRare = (scaled: number, decimals: number): string => {
  if (!Number.isFinite(scaled)) return 'null'
  const sign = scaled < 0 || Object.is(scaled, -0) ? '-' : ''
  const digits = String(Math.abs(scaled))
  if (decimals === 0) return digits === '0' ? digits : sign + digits
  const padded = digits.padStart(decimals + 1, '0')
  return `${sign}${padded.slice(0, -decimals)}.${padded.slice(-decimals)}`
}
