// Polls the provider for its newest model run. While the provider does not answer, runs are assumed to come at the usual interval.

import { minuteMs } from '../common/calendar.ts'
import { type Clock, every } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import { ProviderError, type RefusedAnswer } from './errors.ts'
import type { ModelRun, ProviderProtocol } from './protocol.ts'
import type { ProviderCall } from './provider-call.ts'

export type RunObserver = {
  newRun(run: ModelRun): void
  /** The newest run could not be read; called once until one is read again. */
  runsUnknown(reason: string): void
  /** Called for every response about runs that was refused. */
  refused(why: RefusedAnswer): void
}

export type RunWatch = ReturnType<typeof createRunWatch>

// An older run than the last of so many is treated as older than all.
const mostRecent = 32

// After so many failed polls runs are assumed at the usual interval.
const pollsMissed = 3

export const createRunWatch = (
  { model, pollEveryMs }: { model: string; pollEveryMs: number },
  {
    call,
    protocol,
    clock,
    observer,
  }: {
    readonly call: Pick<ProviderCall, 'text'>
    readonly protocol: Pick<ProviderProtocol, 'runs'>
    readonly clock: Clock
    readonly observer: RunObserver
  },
) => {
  // Newest first: runs that were read, and runs that were assumed while none could be read.
  let known: readonly ModelRun[] = []
  let assumed: readonly ModelRun[] = known
  let readAt = Number.NEGATIVE_INFINITY
  let failing = false

  /** Polls now. Never throws: errors go to the observer. */
  const poll = async (): Promise<void> => {
    try {
      const text = await call.text(protocol.runs.requestFor(model))
      const run = protocol.runs.decode(text, clock.now())
      const before = recent()
      readAt = clock.now()
      failing = false
      // Servers that are not in step may name the previous run again.
      if (known[0] && run.availableAt <= known[0].availableAt) return
      // The last run assumed meanwhile may be the one that was read.
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
  const begunAt = clock.now()
  const endTimer = every(clock, pollEveryMs, poll)

  /** The last runs that were read or, while none can be, assumed; newest first, none until one was read. */
  const recent = (): readonly ModelRun[] => {
    const last = known[0]
    const now = clock.now()
    if (!last || Math.abs(now - readAt) <= pollEveryMs * pollsMissed + minuteMs) return known
    const missed = Math.floor((now - last.availableAt) / last.intervalMs)
    if (missed <= 0) return known
    // Memoised until one more is missed: every read of the cache calls this.
    if (assumed[0]?.availableAt !== last.availableAt + missed * last.intervalMs)
      assumed = [...assumedAfter(last, missed), ...known].slice(0, mostRecent)
    return assumed
  }

  return {
    /** Undefined until a run was read once. */
    newest: (): ModelRun | undefined => recent()[0],
    /** The newest one that was read, and not assumed. */
    newestRead: (): ModelRun | undefined => known[0],
    recent,
    /** When the first poll comes that may read a newer one, by the interval of runs. */
    nextAt: (): number => {
      const last = known[0]
      const from = Math.max(clock.now(), last ? last.availableAt + last.intervalMs : 0)
      return begunAt + Math.ceil((from - begunAt) / pollEveryMs) * pollEveryMs
    },
    poll,
    close: endTimer,
  }
}

/** The runs that came after one if all were in time, the last of so many first. */
const assumedAfter = (last: ModelRun, missed: number): ModelRun[] =>
  Array.from({ length: Math.min(missed, mostRecent) }, (_, i) => {
    const later = (missed - i) * last.intervalMs
    return { ...last, initialisedAt: last.initialisedAt + later, availableAt: last.availableAt + later }
  })
