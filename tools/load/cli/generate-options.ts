// The options of `abohawa traffic generate`, from text to settings: shares, instants in local time, storms.

import type { Catalogue } from 'abohawa/catalogue/catalogue.ts'
import { isLocationType, type Location, type LocationType } from 'abohawa/catalogue/location-schema.ts'
import { numberIn } from 'abohawa/command-line/quantities.ts'
import { UsageError } from 'abohawa/command-line/usage-error.ts'
import { type Calendar, minuteMs, parseInstant, utcDayMs } from 'abohawa/common/calendar.ts'
import { type EndpointName, endpointNames } from 'abohawa/common/endpoints.ts'
import { quoted } from 'abohawa/common/outside-text.ts'
import { InvalidArgumentError } from 'commander'
import type { Shape } from '../traffic/generate/arrivals.ts'
import type { GeneratedTraffic } from '../traffic/generate/generate.ts'
import type { Storm } from '../traffic/generate/places.ts'
import { isInstant } from '../traffic/traffic-request.ts'
import { durationWithin, shareOf } from './quantities.ts'

/** As commander gives them. */
export type GenerateOptions = Omit<GeneratedTraffic, 'start' | 'durationMs' | 'shape' | 'storms'> & {
  readonly duration: number
  readonly shape: Shape | 'storm'
  readonly start: string
  readonly storm?: readonly StormOption[]
  readonly stormFactor: number
}

type StormOption = {
  readonly given: string
  readonly type: LocationType
  readonly id: string
  readonly minuteOfDay: number
  readonly durationMs: number
}

/** @throws UsageError */
export const settingsOf = (
  options: GenerateOptions,
  catalogue: Catalogue,
  calendar: Calendar,
): GeneratedTraffic => {
  const { seed, rate, arrivals, mix, alpha, keys, keysAlpha, english, conditional, compressed, bad } = options
  const { duration: durationMs, shape, stormFactor: factor } = options
  const span = { start: startIn(options.start, durationMs, calendar), durationMs }
  const given = options.storm?.map(each => stormOf(each, span, catalogue, calendar))
  const storms = given ?? (shape === 'storm' ? [usualStorm(span, catalogue)] : [])
  const consumers = { mix, alpha, keys, keysAlpha, english, conditional, compressed, bad }
  return {
    seed,
    ...span,
    rate,
    arrivals,
    shape: shape === 'storm' ? 'day' : shape,
    storms: storms.map(storm => ({ ...storm, factor })),
    ...consumers,
  }
}

type Span = Pick<GeneratedTraffic, 'start' | 'durationMs'>

// In the second most populous district, which has a coast; from 18:00 to 20:00 of a day.
const usualStorm = ({ start, durationMs }: Span, catalogue: Catalogue): Omit<Storm, 'factor'> => {
  const { results } = catalogue.list({ type: 'district', limit: 2, offset: 0 })
  const place = results[1] ?? results[0] ?? (catalogue.all()[0] as Location)
  const from = start + (durationMs * 3) / 4
  return { place, from, to: from + durationMs / 12 }
}

/** The storm at its local time, on the first day that has it. */
const stormOf = (
  { given, type, id, minuteOfDay, durationMs }: StormOption,
  span: Span,
  catalogue: Catalogue,
  calendar: Calendar,
): Omit<Storm, 'factor'> => {
  const place = catalogue.find(type, id)
  if (!place)
    throw new UsageError(`--storm is ${quoted(given)}, but the catalogue has no ${type} ${quoted(id)}`)
  const at = (day: string) => midnightOf(day, calendar) + minuteOfDay * minuteMs
  const today = at(calendar.dayOf(span.start))
  const from = today >= span.start ? today : at(calendar.dayOf(calendar.nextMidnight(span.start)))
  const end = span.start + span.durationMs
  if (from >= end)
    throw new UsageError(
      `--storm must start within the traffic, from ${localText(span.start, calendar)} to ${localText(end, calendar)}, got ${quoted(given)}`,
    )
  return { place, from, to: from + durationMs }
}

/** An instant in local time, as `2026-11-16 18:00`. */
export const localText = (instant: number, calendar: Calendar): string =>
  calendar.localMinute(instant).replace('T', ' ')

const midnightOf = (day: string, calendar: Calendar): number => {
  const utc = Date.parse(`${day}T00:00Z`)
  return utc - calendar.offsetSecondsAt(utc) * 1000
}

const dayForm = /^\d{4}-\d\d-\d\d$/
const instantForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/
const startIn = (given: string, durationMs: number, calendar: Calendar): number => {
  const isDay = dayForm.test(given)
  const parsed = isDay || instantForm.test(given) ? parseInstant(given) : Number.NaN
  const instant = isDay && !Number.isNaN(parsed) ? midnightOf(given, calendar) : parsed
  if (!isInstant(instant) || !isInstant(instant + durationMs))
    throw new UsageError(
      `--start must be a day such as 2026-11-16, or an instant such as 2026-11-16T08:00+06:00, from 2000 to 2099, got ${quoted(given)}`,
    )
  return instant
}

export const stormIn = (given: string, before: readonly StormOption[] = []): StormOption[] => {
  const [, type, id = '', hour, minute, duration = ''] =
    /^([a-z]+)\/(\d+)@([01]\d|2[0-3]):([0-5]\d)\/(.+)$/.exec(given) ?? []
  if (!isLocationType(type))
    throw new InvalidArgumentError(
      'Allowed: a place type/id, a local time and a duration, as in district/2015@18:00/2h.',
    )
  const minuteOfDay = Number(hour) * 60 + Number(minute)
  return [...before, { given, type, id, minuteOfDay, durationMs: spanIn(duration) }]
}

export const shareIn = (given: string): number => {
  const share = shareOf(given)
  if (share >= 0 && share <= 1) return share
  throw new InvalidArgumentError('Allowed: a share from 0 to 1, such as 0.1 or 10%.')
}

export const alphaIn = numberIn(0, 5, 'decimal')
export const factorIn = numberIn(1, 1000, 'decimal')
export const keysIn = numberIn(1, 100_000)
export const seedIn = numberIn(0, 4_294_967_295)

export const spanIn = durationWithin(1, 366 * utcDayMs, '1ms to 366d')

export const defaultMix = 'weather=70,forecast=20,coords=6,locations=2,location=2'

export const mixIn = (given: string): Record<EndpointName, number> => {
  const mix = Object.fromEntries(endpointNames.map(endpoint => [endpoint, 0])) as Record<EndpointName, number>
  for (const part of given.split(',')) {
    const [, name = '', share] = /^([a-z_]+)=(\d{1,9}(?:\.\d{1,9})?)$/.exec(part.trim()) ?? []
    if (share === undefined || !Object.hasOwn(mix, name))
      throw new InvalidArgumentError(`Allowed: shares of ${endpointNames.join(', ')}, as in ${defaultMix}.`)
    mix[name as EndpointName] = Number(share)
  }
  if (endpointNames.every(endpoint => mix[endpoint] === 0))
    throw new InvalidArgumentError('Allowed: at least one share above 0.')
  return mix
}
