// Bounded durations, rates and shares on the command line of load tests, written the same in every command.

import { durationIn } from 'abohawa/command-line/quantities.ts'
import { InvalidArgumentError } from 'commander'

/** A duration between two bounds, in ms. @param allowed the bounds in words */
export const durationWithin =
  (least: number, most: number, allowed: string) =>
  (given: string): number => {
    const ms = durationIn(given)
    if (ms >= least && ms <= most) return ms
    throw new InvalidArgumentError(`Allowed: ${allowed}.`)
  }

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** `5000`, `90/m` or `500/h` in requests a second. */
export const rateIn = (given: string): number => {
  const [, number = '', unit = 's'] = /^(\d{1,12}(?:\.\d{1,9})?)(?:\/1?([smhd]))?$/.exec(given) ?? []
  const rate = Number(number) / (unitSeconds[unit] as number)
  if (!(rate > 0 && rate <= 1e6))
    throw new InvalidArgumentError(
      'Allowed: requests a second above 0 and up to 1000000, or such as 90/m, 500/h, 10000/d.',
    )
  return rate
}

/** `0.1` or `10%`; not a number for what is neither. */
export const shareOf = (given: string): number => {
  const [, digits, percent] = /^(\d{1,3}(?:\.\d{1,9})?|\.\d{1,9})(%?)$/.exec(given) ?? []
  return Number(digits) / (percent === '%' ? 100 : 1)
}
