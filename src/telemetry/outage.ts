// One outage as log lines: one at its start, one for each further cause, one a minute with the failures of that minute, and one at its
// end with the sums. The caller decides when it starts and ends.

import { isoOf, minuteMs } from '../common/calendar.ts'
import { type Clock, presentInstant } from '../common/clock.ts'

/** A stable code and a sentence for operators. */
export type Cause = { readonly code: string; readonly reason: string }

type FailingCell = {
  readonly cell: string
  /** Until when its timeline may be served, ms since the epoch; null where nothing is cached. */
  readonly usableUntil: number | null
}

/** The stale answers and errors since the start of the process. */
export type Noticed = { readonly stale: number; readonly errors: number }

/** An outage that is on, with its newest cause and its sums so far. */
export type OutageState = Cause &
  Noticed & {
    /** Ms since the epoch. */
    readonly since: number
    /** When something failed last, ms since the epoch. */
    readonly failedAt: number
    readonly failures: number
  }

type Fields = Readonly<Record<string, unknown>>

export type OutageOptions = {
  readonly clock: Clock
  readonly noticed: () => Noticed
  /** Causes of one kind are reported once in an outage. */
  readonly kindOf: (cause: Cause) => string
  readonly write: (phase: 'started' | 'has another cause' | 'continues' | 'ended', fields: Fields) => void
  /** It has begun or ended. */
  readonly changed?: () => void
}

export type Outage = ReturnType<typeof createOutage>

// Of further cells, only the failures are counted.
const maxCells = 20_000
// Each is a line.
const maxCauses = 20

type Counts = { causes: Map<string, number>; failures: number; before: Noticed }
type Running = {
  cause: Cause
  readonly reported: Set<string>
  /** Ms since the epoch, by the clock as it is now. */
  since: () => number
  failedAt: () => number
  reportedAt: number
  readonly whole: Counts
  minute: Counts
  readonly cells: Map<string, { readonly failingSince: number; usableUntil: number | null }>
}

/** Apart from `begin`, no function does anything while the outage is not on. */
export const createOutage = ({ clock, noticed, kindOf, write, changed }: OutageOptions) => {
  let running: Running | undefined

  const noCounts = (): Counts => ({ causes: new Map(), failures: 0, before: noticed() })
  const count = (counts: Counts, code: string): void => {
    counts.failures += 1
    counts.causes.set(code, (counts.causes.get(code) ?? 0) + 1)
  }
  const noticedSince = (before: Noticed): Noticed => {
    const { stale, errors } = noticed()
    return { stale: stale - before.stale, errors: errors - before.errors }
  }
  const fieldsOf = ({ since, cells }: Running, { causes, failures, before }: Counts): Fields => ({
    seconds: Math.max(0, Math.round((clock.now() - since()) / 1000)),
    failures,
    causes: Object.fromEntries(causes),
    ...(cells.size > 0 ? { cells: cells.size, worst: worstOf(cells) } : {}),
    ...noticedSince(before),
  })
  const tick = (): void => {
    const now = clock.now()
    if (!running) return
    // The clock may have been set back.
    if (running.since() > now) running.since = () => now
    running.reportedAt = Math.min(running.reportedAt, now)
    if (now - running.reportedAt < minuteMs) return
    write('continues', fieldsOf(running, running.minute))
    running.minute = noCounts()
    // A process that stood still, or a clock that was moved, gets one line for all of it.
    running.reportedAt = now - ((now - running.since()) % minuteMs)
  }

  return {
    isOn: () => running !== undefined,
    state: (): OutageState | undefined => {
      if (!running) return undefined
      const { cause, since, failedAt, whole } = running
      return {
        ...cause,
        since: since(),
        failedAt: failedAt(),
        failures: whole.failures,
        ...noticedSince(whole.before),
      }
    },
    /** Nothing while it is on. @param since the first failure, ms since the epoch */
    begin: ({ code, reason }: Cause, since = clock.now()): void => {
      if (running) return
      const now = clock.now()
      const begun = presentInstant(clock)
      const cause = { code, reason }
      running = {
        cause,
        reported: new Set([kindOf(cause)]),
        since: () => begun() - (now - since),
        failedAt: begun,
        reportedAt: now,
        whole: noCounts(),
        minute: noCounts(),
        cells: new Map(),
      }
      write('started', { ...cause, ...(since < now && { since: isoOf(since) }) })
      changed?.()
    },
    /** Writes a cause that it did not have yet. */
    further: (cause: Cause): void => {
      if (!running || running.reported.size >= maxCauses || running.reported.has(kindOf(cause))) return
      running.reported.add(kindOf(cause))
      running.cause = cause
      write('has another cause', cause)
    },
    /** Counts a failure by its code, and for its cell. */
    failed: (code: string, cell?: FailingCell): void => {
      if (!running) return
      tick()
      running.failedAt = presentInstant(clock)
      count(running.whole, code)
      count(running.minute, code)
      if (!cell) return
      const { cells } = running
      const known = cells.get(cell.cell)
      if (known) known.usableUntil = cell.usableUntil
      else if (cells.size < maxCells)
        cells.set(cell.cell, { failingSince: clock.now(), usableUntil: cell.usableUntil })
    },
    /** A consumer meets it now. */
    met: (): void => {
      if (running) running.failedAt = presentInstant(clock)
    },
    /** @param fields more of the last line */
    end: (fields: Fields = {}): void => {
      if (!running) return
      write('ended', { ...fieldsOf(running, running.whole), ...fields })
      running = undefined
      changed?.()
    },
    /** Call at least once a second: writes the line of a minute that is over. */
    tick,
  }
}

/** The cell whose timeline runs out first, those without one before all others; of equals, the one that fails longest. */
const worstOf = (cells: Running['cells']): Fields => {
  let worst: [string, { failingSince: number; usableUntil: number | null }] | undefined
  for (const each of cells) {
    // In order of their first failure.
    if (!worst || (each[1].usableUntil ?? 0) < (worst[1].usableUntil ?? 0)) worst = each
  }
  if (!worst) return {}
  const [cell, { failingSince, usableUntil }] = worst
  return {
    cell,
    failingSince: isoOf(failingSince),
    usableUntil: usableUntil === null ? null : isoOf(usableUntil),
  }
}
