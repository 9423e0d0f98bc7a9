// Logarithm and power from additions, multiplications and divisions alone. Those round alike everywhere, and
// Math.log and Math.pow do not: a generated file would differ between processors and versions of the runtime.

const ln2 = Math.LN2

/** The natural logarithm of a number above 0. */
export const naturalLog = (value: number): number => {
  let mantissa = value
  let exponent = 0
  for (; mantissa >= 1.5; mantissa /= 2) exponent += 1
  for (; mantissa < 0.75; mantissa *= 2) exponent -= 1
  // ln m = 2 artanh((m - 1) / (m + 1)), with an argument of 0.2 at most.
  const ratio = (mantissa - 1) / (mantissa + 1)
  const square = ratio * ratio
  let sum = 0
  for (let odd = 23; odd >= 1; odd -= 2) sum = sum * square + 1 / odd
  return exponent * ln2 + 2 * ratio * sum
}

/** e to the power of a number from -700 to 700. */
const exponential = (value: number): number => {
  const doublings = Math.round(value / ln2)
  const rest = value - doublings * ln2
  let sum = 1
  for (let term = 18; term >= 1; term--) sum = 1 + (sum * rest) / term
  return sum * powerOfTwo(doublings)
}

const powerOfTwo = (exponent: number): number => {
  let result = 1
  for (let i = 0; i < Math.abs(exponent); i++) result *= exponent > 0 ? 2 : 0.5
  return result
}

/** A number above 0 to the power of another one. */
export const power = (base: number, exponent: number): number => exponential(exponent * naturalLog(base))
