// An outage in three kinds of lines: one at its start with the cause, one each minute with what failed since the last one,
// one at its end with the sums. When it starts and ends is told by the caller; minutes follow the clock. Writes nothing.

import { minuteMs } from '../calendar.ts'
import type { Clock } from '../clock.ts'

/** A stable code and a sentence for operators. */
export type Cause = { readonly code: string; readonly reason: string }

type FailingCell = {
  readonly cell: string
  /** Until when its timeline may be served, ms since the epoch; null where nothing is cached. */
  readonly usableUntil: number | null
}

/** What consumers noticed since the start of the process. */
export type Noticed = { readonly stale: number; readonly errors: number }

type Fields = Readonly<Record<string, unknown>>

export type OutageOptions = {
  readonly clock: Clock
  readonly noticed: () => Noticed
  readonly write: (phase: 'begins' | 'goes on' | 'is over', fields: Fields) => void
}

export type Outage = {
  isOn(): boolean
  /** Nothing while it is on. */
  begin(cause: Cause): void
  /** Counts a failure by its code, and for its cell; nothing while it is not on. */
  failed(code: string, cell?: FailingCell): void
  /** Nothing while it is not on. @param fields more to tell in the last line */
  end(fields?: Fields): void
  /** Call at least once a second: writes the line of a minute that is over. */
  tick(): void
}

// One per cell of a fine grid; the cells beyond it are counted as failures alone.
const mostCells = 20_000

type Counts = { causes: Map<string, number>; failures: number; before: Noticed }
type Running = {
  readonly since: number
  toldAt: number
  readonly whole: Counts
  minute: Counts
  readonly cells: Map<string, { readonly failingSince: number; usableUntil: number | null }>
}

export const createOutage = ({ clock, noticed, write }: OutageOptions): Outage => {
  let running: Running | undefined

  const noCounts = (): Counts => ({ causes: new Map(), failures: 0, before: noticed() })
  const count = (counts: Counts, code: string): void => {
    counts.failures += 1
    counts.causes.set(code, (counts.causes.get(code) ?? 0) + 1)
  }
  const fieldsOf = ({ since, cells }: Running, { causes, failures, before }: Counts): Fields => {
    const { stale, errors } = noticed()
    return {
      seconds: Math.round((clock.now() - since) / 1000),
      failures,
      causes: Object.fromEntries(causes),
      ...(cells.size > 0 ? { cells: cells.size, worst: worstOf(cells) } : {}),
      stale: stale - before.stale,
      errors: errors - before.errors,
    }
  }
  const tick = (): void => {
    const now = clock.now()
    if (!running || now - running.toldAt < minuteMs) return
    write('goes on', fieldsOf(running, running.minute))
    running.minute = noCounts()
    // A process that stood still, or a clock that was moved, gets one line for all of it.
    running.toldAt = now - ((now - running.since) % minuteMs)
  }

  return {
    isOn: () => running !== undefined,
    begin: ({ code, reason }) => {
      if (running) return
      const now = clock.now()
      running = { since: now, toldAt: now, whole: noCounts(), minute: noCounts(), cells: new Map() }
      write('begins', { code, reason })
    },
    failed: (code, cell) => {
      if (!running) return
      tick()
      count(running.whole, code)
      count(running.minute, code)
      if (!cell) return
      const { cells } = running
      const known = cells.get(cell.cell)
      if (known) known.usableUntil = cell.usableUntil
      else if (cells.size < mostCells)
        cells.set(cell.cell, { failingSince: clock.now(), usableUntil: cell.usableUntil })
    },
    end: (fields = {}) => {
      if (!running) return
      write('is over', { ...fieldsOf(running, running.whole), ...fields })
      running = undefined
    },
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

const isoOf = (instant: number): string => new Date(instant).toISOString()
