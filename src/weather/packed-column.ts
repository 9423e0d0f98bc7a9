// Packs a column of weather into bytes and back: whole numbers, delta-encoded (second-order for smooth columns), as variable-length
// integers. Decoding refuses bytes that encoding never writes.

/** Values lie between this and its negative, where 32 bits hold three decimals. */
const valuesBelow = 8_192

// A second-order difference of the largest values takes 27 bits: seven to a byte.
const maxBytesOfValue = 4

/** The maximum bytes of a column of this length. */
export const maxBytes = (length: number): number => 1 + maxBytesOfValue * length

const powers = [1, 10, 100, 1000]
const slopeBit = 4

/**
 * Writes a column into `bytes` from `from` on and returns where the next begins. Values are below 8,192; decimals
 * beyond the third are rounded off, NaN stays NaN and -0 becomes 0.
 */
export const packColumn = (column: Float32Array, bytes: Uint8Array, from: number): number => {
  const decimals = decimalsOf(column)
  const power = powers[decimals] as number
  const bySlope = isSmooth(column)
  let at = from
  bytes[at++] = decimals + (bySlope ? slopeBit : 0)
  let last = 0
  let slope = 0
  let begun = false
  for (let i = 0; i < column.length; i++) {
    const value = column[i] as number
    // 0 stands for a missing value.
    let code = 0
    if (!Number.isNaN(value)) {
      const whole = Math.round(value * power)
      const difference = whole - last - slope
      // Small differences of either sign become small positive numbers: 0, -1, 1, -2, 2 …
      code = ((difference << 1) ^ (difference >> 31)) + 1
      if (bySlope && begun) slope = whole - last
      last = whole
      begun = true
    }
    // Seven bits to a byte, the lowest first; the eighth bit means that more follow.
    for (; code > 127; code >>>= 7) bytes[at++] = (code & 127) | 128
    bytes[at++] = code
  }
  return at
}

/**
 * Reads a column as long as `column` into it and returns where the next begins, beyond the end of bytes cut off; -1 for
 * bytes that `packColumn` never writes: an unknown form, a number of too many bytes, a value out of bounds.
 */
export const unpackColumn = (bytes: Uint8Array, from: number, column: Float32Array): number => {
  let at = from
  const form = bytes[at++] ?? 0
  if (form > slopeBit + 3) return -1
  const power = powers[form & 3] as number
  const bound = valuesBelow * power
  const bySlope = (form & slopeBit) !== 0
  let last = 0
  let slope = 0
  let begun = false
  for (let i = 0; i < column.length; i++) {
    let byte = bytes[at++] ?? 0
    let code = byte & 127
    for (let shift = 7; byte > 127; shift += 7) {
      if (shift === 7 * maxBytesOfValue) return -1
      byte = bytes[at++] ?? 0
      code |= (byte & 127) << shift
    }
    if (code === 0) {
      column[i] = Number.NaN
      continue
    }
    const difference = ((code - 1) >>> 1) ^ -((code - 1) & 1)
    const whole = last + slope + difference
    if (whole >= bound || whole <= -bound) return -1
    if (bySlope && begun) slope = whole - last
    last = whole
    begun = true
    column[i] = whole / power
  }
  return at
}

// The fewest decimals that restore every value, 3 at most.
const decimalsOf = (column: Float32Array): number => {
  let decimals = 0
  for (let i = 0; i < column.length; i++)
    while (decimals < 3 && !isGivenBy(column[i] as number, powers[decimals] as number)) decimals += 1
  return decimals
}

const isGivenBy = (value: number, power: number): boolean =>
  Number.isNaN(value) || Math.fround(Math.round(value * power) / power) === value

// Whether second-order differences are smaller than first-order ones.
const isSmooth = (column: Float32Array): boolean => {
  let last = Number.NaN
  let slope = 0
  let steps = 0
  let bends = 0
  for (let i = 0; i < column.length; i++) {
    const value = column[i] as number
    const step = value - last
    last = value
    if (Number.isNaN(step)) continue
    steps += Math.abs(step)
    bends += Math.abs(step - slope)
    slope = step
  }
  return bends < steps
}
