// Which model run the provider's weather is made of: asks meta.json at intervals and knows the newest run that is
// available. While meta.json can't be read, runs are taken to come as often as they did. Judges no timeline.

import * as z from 'zod'
import { minuteMs } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import { ProviderError } from './errors.ts'
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
}

export type RunWatch = {
  /** Undefined until meta.json was read once. */
  newest(): ModelRun | undefined
  /** Asks now. Never throws: the observer is told. */
  poll(): Promise<void>
  close(): void
}

const meta = z.object({
  last_run_initialisation_time: z.number().positive(),
  last_run_availability_time: z.number().positive(),
  update_interval_seconds: z.number().min(60),
})

// After so many polls without an answer the usual interval is believed instead.
const pollsMissed = 3

export const createRunWatch = (
  { model, pollEveryMs }: { model: string; pollEveryMs: number },
  { exchange, clock, observer }: { exchange: Exchange; clock: Clock; observer: RunObserver },
): RunWatch => {
  let known: ModelRun | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let failing = false

  const poll = async (): Promise<void> => {
    try {
      const run = runOf(
        await exchange.text(`/data/${encodeURIComponent(model)}/static/meta.json`),
        clock.now(),
      )
      readAt = clock.now()
      failing = false
      // Servers that are not in step may name the former run once more.
      if (known && run.availableAt <= known.availableAt) return
      known = run
      observer.newRun(run)
    } catch (error) {
      if (!failing) observer.runsUnknown(messageOf(error))
      failing = true
    }
  }
  const timer = setInterval(() => void poll(), pollEveryMs).unref()

  return {
    newest: () => {
      if (!known) return undefined
      const missed = Math.floor((clock.now() - known.availableAt) / known.intervalMs)
      const isRead = clock.now() - readAt <= pollEveryMs * pollsMissed + minuteMs
      if (isRead || missed <= 0) return known
      const later = missed * known.intervalMs
      return { ...known, initialisedAt: known.initialisedAt + later, availableAt: known.availableAt + later }
    },
    poll,
    close: () => clearInterval(timer),
  }
}

const runOf = (body: string, now: number): ModelRun => {
  const parsed = meta.safeParse(jsonOf(body))
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new ProviderError(
      'provider_garbled',
      `meta.json: ${issue?.path.join('.') || 'the body'}: ${issue?.message}`,
    )
  }
  const run = {
    initialisedAt: parsed.data.last_run_initialisation_time * 1000,
    availableAt: parsed.data.last_run_availability_time * 1000,
    intervalMs: parsed.data.update_interval_seconds * 1000,
  }
  // A run from the future would keep everything stale until then.
  if (run.availableAt > now + minuteMs)
    throw new ProviderError('provider_garbled', 'meta.json names a run that is not available yet')
  return run
}

const jsonOf = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch (cause) {
    throw new ProviderError('provider_cut_off', 'meta.json is not complete JSON', { cause })
  }
}
