// Which model run the provider's weather is made of: asks meta.json at intervals and knows the newest run that is
// available. While meta.json can't be read, runs are taken to come as often as they did. Judges no timeline.

import { minuteMs, utcDayMs } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import { garbled, ProviderError, type RefusedAnswer } from './errors.ts'
import { excerptOf } from './excerpt.ts'
import type { Exchange } from './exchange.ts'

/** A run, in ms since the epoch: the time it computes from, when it became available, and the time between two. */
export type ModelRun = {
  readonly initialisedAt: number
  readonly availableAt: number
  readonly intervalMs: number
}

export type RunObserver = {
  newRun(run: ModelRun): void
  /** meta.json could not be read; told once until it can be again. */
  runsUnknown(reason: string): void
  /** Hears of every meta.json that came and was refused. */
  refused(why: RefusedAnswer): void
}

export type RunWatch = {
  /** Undefined until meta.json was read once. */
  newest(): ModelRun | undefined
  /** The last runs that were read or, while meta.json could not be, assumed; newest first, none until it was read once. */
  recent(): readonly ModelRun[]
  /** Asks now. Never throws: the observer is told. */
  poll(): Promise<void>
  close(): void
}

// It has some 300 bytes, and 2 kB where it describes the model's grid.
const mostMetaBytes = 64 * 1024
// A model whose newest run is older has been given up. An older run would make all weather fresh.
const oldestRunMs = 30 * utcDayMs
// Models take hours to compute, the slowest some days; the quickest run every quarter of an hour.
const longestMakingMs = 7 * utcDayMs
const shortestIntervalMs = 10 * minuteMs
const longestIntervalMs = 7 * utcDayMs

// What is older than the last of so many is older than all of them.
const mostRecent = 32

// After so many polls without an answer the usual interval is believed instead.
const pollsMissed = 3

export const createRunWatch = (
  { model, pollEveryMs }: { model: string; pollEveryMs: number },
  { exchange, clock, observer }: { exchange: Exchange; clock: Clock; observer: RunObserver },
): RunWatch => {
  // Newest first: those that were read, and those that were taken to have come while nothing could be.
  let known: readonly ModelRun[] = []
  let assumed: readonly ModelRun[] = known
  let readAt = Number.NEGATIVE_INFINITY
  let failing = false

  const poll = async (): Promise<void> => {
    try {
      const path = `/data/${encodeURIComponent(model)}/static/meta.json`
      const run = runOf(await exchange.text(path, mostMetaBytes), clock.now())
      const before = recent()
      readAt = clock.now()
      failing = false
      // Servers that are not in step may name the former run once more.
      if (known[0] && run.availableAt <= known[0].availableAt) return
      // Of those assumed meanwhile the last may be the one that was read.
      const earlier = before.filter(({ availableAt }) => availableAt < run.availableAt - run.intervalMs / 2)
      const read = known.filter(one => !earlier.includes(one))
      known = [run, ...[...read, ...earlier].toSorted((a, b) => b.availableAt - a.availableAt)].slice(
        0,
        mostRecent,
      )
      assumed = known
      observer.newRun(run)
    } catch (error) {
      if (error instanceof ProviderError && error.refused) observer.refused(error.refused)
      if (!failing) observer.runsUnknown(messageOf(error))
      failing = true
    }
  }
  const timer = setInterval(() => void poll(), pollEveryMs).unref()

  const recent = (): readonly ModelRun[] => {
    const last = known[0]
    const now = clock.now()
    if (!last || now - readAt <= pollEveryMs * pollsMissed + minuteMs) return known
    const missed = Math.floor((now - last.availableAt) / last.intervalMs)
    if (missed <= 0) return known
    // Kept until one more is missed: it is asked for with each read of the cache.
    if (assumed[0]?.availableAt !== last.availableAt + missed * last.intervalMs)
      assumed = [...assumedAfter(last, missed), ...known].slice(0, mostRecent)
    return assumed
  }

  return {
    newest: () => recent()[0],
    recent,
    poll,
    close: () => clearInterval(timer),
  }
}

/** The runs that came after one if all were in time, the last of so many first. */
const assumedAfter = (last: ModelRun, missed: number): ModelRun[] =>
  Array.from({ length: Math.min(missed, mostRecent) }, (_, i) => {
    const later = (missed - i) * last.intervalMs
    return { ...last, initialisedAt: last.initialisedAt + later, availableAt: last.availableAt + later }
  })

const runOf = (body: string, now: number): ModelRun => {
  const fields = fieldsOf(body)
  const secondsIn = (name: string): number => {
    const value = fields[name]
    if (typeof value !== 'number')
      throw garbled('wrong_shape', `meta.json: ${name} is ${excerptOf(value)}, expected a number of seconds`)
    return value
  }
  const initialised = secondsIn('last_run_initialisation_time')
  const available = secondsIn('last_run_availability_time')
  const interval = secondsIn('update_interval_seconds')
  // A run from the future would keep everything stale until then.
  if (available * 1000 > now + minuteMs)
    throw garbled('wrong_run', 'meta.json names a run that is not available yet')
  if (available * 1000 < now - oldestRunMs)
    throw garbled(
      'wrong_run',
      `meta.json: last_run_availability_time is ${available}, expected one within the last ${oldestRunMs / utcDayMs} days`,
    )
  if (initialised > available || initialised * 1000 < available * 1000 - longestMakingMs)
    throw garbled(
      'wrong_run',
      `meta.json: last_run_initialisation_time is ${initialised}, expected one within the ${longestMakingMs / utcDayMs} days before ${available}`,
    )
  // Runs that are assumed to come every moment would keep everything stale, for the price of all of the budget.
  if (interval * 1000 < shortestIntervalMs || interval * 1000 > longestIntervalMs)
    throw garbled(
      'wrong_run',
      `meta.json: update_interval_seconds is ${interval}, expected ${shortestIntervalMs / 1000} to ${longestIntervalMs / 1000}`,
    )
  return { initialisedAt: initialised * 1000, availableAt: available * 1000, intervalMs: interval * 1000 }
}

const fieldsOf = (body: string): Readonly<Record<string, unknown>> => {
  let fields: unknown
  try {
    fields = JSON.parse(body)
  } catch (cause) {
    throw new ProviderError('provider_cut_off', 'meta.json is not complete JSON', {
      cause,
      refused: 'damaged',
    })
  }
  if (typeof fields !== 'object' || fields === null)
    throw garbled('wrong_shape', `meta.json is ${excerptOf(fields)}, expected an object`)
  return fields as Record<string, unknown>
}
