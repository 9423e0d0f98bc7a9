// Durations, rates, numbers, shares and choices on the command line, written the same in every command.

import { InvalidArgumentError, Option } from 'commander'
import { messageOf } from '../common/errors.ts'
import { parseDuration } from '../config/units.ts'

/** `90s`, `1.5h` or `2h20m` in ms. */
export const durationIn = (given: string): number => {
  try {
    return parseDuration(given)
  } catch (error) {
    throw new InvalidArgumentError(`${messageOf(error)}.`)
  }
}

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

/** A number between two bounds, a whole one or with decimals. @param allowed where its bounds need other words */
export const numberIn =
  (least: number, most: number, kind: 'whole' | 'decimal' = 'whole', allowed?: string) =>
  (given: string): number => {
    const form = kind === 'whole' ? /^\d{1,10}$/ : /^\d{1,12}(\.\d{1,9})?$/
    const number = form.test(given) ? Number(given) : Number.NaN
    if (number >= least && number <= most) return number
    const words = `a ${kind === 'whole' ? 'whole number' : 'number'} from ${least} to ${most}`
    throw new InvalidArgumentError(`Allowed: ${allowed ?? words}.`)
  }

/** How many gateways share a port. */
export const processesIn = numberIn(1, 256)

/** `0.1` or `10%`; not a number for what is neither. */
export const shareOf = (given: string): number => {
  const [, digits, percent] = /^(\d{1,3}(?:\.\d{1,9})?|\.\d{1,9})(%?)$/.exec(given) ?? []
  return Number(digits) / (percent === '%' ? 100 : 1)
}

/** An option with one of a few values; the first is the default. */
export const choiceOption = (
  flags: string,
  description: string,
  values: readonly [string, ...string[]],
  usual: string = values[0],
): Option => new Option(flags, description).choices(values).default(usual)

export const collect = (given: string, before: string[] = []): string[] => [...before, given]
