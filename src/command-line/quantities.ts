// Durations, numbers and choices on the command line, written the same in every command.

import { InvalidArgumentError, Option } from 'commander'
import { utcDayMs } from '../common/calendar.ts'
import { messageOf } from '../common/errors.ts'
import { parseDuration } from '../config/units.ts'

// A century: much longer ones lead beyond the last instant of a date.
const mostDays = 36_500

/** `90s`, `1.5h` or `2h20m` in ms. */
export const durationIn = (given: string): number => {
  let ms: number
  try {
    ms = parseDuration(given)
  } catch (error) {
    throw new InvalidArgumentError(`${messageOf(error)}.`)
  }
  if (ms > mostDays * utcDayMs) throw new InvalidArgumentError(`Allowed: at most ${mostDays}d.`)
  return ms
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

/** An option with one of a few values; the first is the default. */
export const choiceOption = (
  flags: string,
  description: string,
  values: readonly [string, ...string[]],
  usual: string = values[0],
): Option => new Option(flags, description).choices(values).default(usual)

export const collect = (given: string, before: string[] = []): string[] => [...before, given]
