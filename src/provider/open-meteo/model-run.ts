// Decodes meta.json, which describes the newest run of a model, into a ModelRun, or throws a ProviderError. runs.ts polls it
// and derives what follows.

import { minuteMs, utcDayMs } from '../../common/calendar.ts'
import { excerptOf, garbled, ProviderError } from '../errors.ts'
import type { ModelRun, RunProtocol } from '../protocol.ts'

// It has some 300 bytes, and 2 kB where it describes the model's grid.
const maxMetaBytes = 64 * 1024
// A model whose newest run is older is abandoned; such a run would make all weather fresh.
const oldestRunMs = 30 * utcDayMs
// Models take hours to compute, the slowest some days; the quickest run every quarter of an hour.
const longestMakingMs = 7 * utcDayMs
const shortestIntervalMs = 10 * minuteMs
const longestIntervalMs = 7 * utcDayMs

export const modelRuns: RunProtocol = {
  requestFor: model => ({ path: modelRunPath(model), maxBytes: maxMetaBytes }),
  decode: (text, now) => runOf(fieldsOf(text), now),
}

const modelRunPath = (model: string): string => `/data/${encodeURIComponent(model)}/static/meta.json`

/** Whether a path is the meta.json of a model. Model names are lower case, digits and underscores. */
export const isModelRunPath = (path: string): boolean =>
  /^\/data\/[a-z0-9_]{1,40}\/static\/meta\.json$/.test(path)

const wrongRun = (sentence: string) => garbled('wrong_run', `meta.json: ${sentence}`)

const runOf = (fields: Readonly<Record<string, unknown>>, now: number): ModelRun => {
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
    throw wrongRun(
      `last_run_availability_time is ${available}, expected one within the last ${oldestRunMs / utcDayMs} days`,
    )
  if (initialised > available || initialised * 1000 < available * 1000 - longestMakingMs)
    throw wrongRun(
      `last_run_initialisation_time is ${initialised}, expected one within the ${longestMakingMs / utcDayMs} days before ${available}`,
    )
  // A tiny interval would keep everything stale and spend the whole budget.
  if (interval * 1000 < shortestIntervalMs || interval * 1000 > longestIntervalMs)
    throw wrongRun(
      `update_interval_seconds is ${interval}, expected ${shortestIntervalMs / 1000} to ${longestIntervalMs / 1000}`,
    )
  return { initialisedAt: initialised * 1000, availableAt: available * 1000, intervalMs: interval * 1000 }
}

const fieldsOf = (body: string): Readonly<Record<string, unknown>> => {
  let fields: unknown
  try {
    fields = JSON.parse(body)
  } catch (cause) {
    const refused = 'damaged'
    throw new ProviderError('provider_cut_off', 'meta.json is not complete JSON', { cause, refused })
  }
  if (typeof fields !== 'object' || fields === null)
    throw garbled('wrong_shape', `meta.json is ${excerptOf(fields)}, expected an object`)
  return fields as Record<string, unknown>
}
