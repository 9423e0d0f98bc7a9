// Warms the cache: loads the absent and stale cells of a target in batches, without the reserve for cold cells. It waits for
// the next minute of the budget, and stops at a longer wait or a failing provider.

import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { retryAtOf } from '../cache/failures.ts'
import { mostPopulous } from '../cache/pinned-cells.ts'
import type { Timelines } from '../cache/upstream.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { isoOf } from '../common/calendar.ts'
import { type Clock, isStillToCome } from '../common/clock.ts'
import { AbohawaError, codeOf, InputError, messageOf } from '../common/errors.ts'
import type { Config } from '../config/schema.ts'
import { protocolIn } from '../provider/account.ts'
import { type Cell, type Cells, createGrid, type Grid, inParts } from '../weather/cell.ts'
import { scopeOf, targetIn } from './cache-target.ts'
import type { WarmReport } from './reports/warm-report.ts'

/** The cells to warm: a target as for a purge, the most populous places, or without both the cells in demand. */
export type WarmOrder = { readonly of?: string | undefined; readonly top?: number | undefined }

class WarmingError extends AbohawaError {
  override name = 'WarmingError'

  constructor() {
    super('already_warming', 'the cache is being warmed already; wait until it ends, or stop it')
  }
}

export type CacheWarm = ReturnType<typeof createCacheWarm>

export type CacheWarmParts = {
  readonly timelines: Pick<Timelines, 'wanted' | 'isFresh' | 'ensure'>
  readonly catalogue: { readonly current: Catalogue }
  readonly clock: Clock
}

type Progress = { -readonly [Name in keyof WarmReport]: WarmReport[Name] }

const idle: WarmReport = {
  state: 'idle',
  target: '',
  cells: 0,
  toLoad: 0,
  weight: 0,
  loaded: 0,
  fresh: 0,
  failed: [],
  stoppedBy: null,
  reason: null,
}
// A full minute of the budget ends within it, with a margin for clocks that differ.
const longestWaitMs = 65_000
const lookEveryMs = 250
// Simultaneous reads of the shared tier. The embedded store reads and decodes all of them in one turn of the event loop.
const readAtOnce = 8

const cellsOf = async (
  { of, top }: WarmOrder,
  { timelines, catalogue }: Pick<CacheWarmParts, 'timelines' | 'catalogue'>,
  grid: Grid,
): Promise<{ target: string; cells: Cells }> => {
  if (of !== undefined && top !== undefined)
    throw new InputError("a target can't be combined with a number of places")
  if (top !== undefined)
    return { target: `the ${top} most populous places`, cells: mostPopulous(catalogue, grid, top)() }
  if (of === undefined) return { target: 'the cells in demand', cells: await timelines.wanted() }
  return { target: of, ...scopeOf(targetIn(of), { catalogue: catalogue.current, grid }) }
}

export const createCacheWarm = (config: Config, { timelines, catalogue, clock }: CacheWarmParts) => {
  const grid = createGrid(config.cache.cellDegrees)
  const { weightPerCell } = protocolIn(config)
  let progress: Progress = { ...idle }
  let running: Promise<void> | undefined
  let isStopping = false

  /** @param goesOn is called with the cells to load, in parts, and returns whether to look for more */
  const planned = async (
    order: WarmOrder,
    goesOn: (cells: readonly Cell[]) => boolean,
  ): Promise<WarmReport> => {
    const { target, cells } = await cellsOf(order, { timelines, catalogue }, grid)
    let [toLoad, fresh] = [0, 0]
    for (const part of inParts(cells, readAtOnce)) {
      const isFresh = await Promise.all(part.map(timelines.isFresh))
      const others = part.filter((_, i) => !isFresh[i])
      toLoad += others.length
      fresh += part.length - others.length
      if (!goesOn(others)) break
      await nextTurn()
    }
    const weight = toLoad * weightPerCell
    return { ...idle, target, cells: cells.length, toLoad, weight, fresh, state: 'planned' }
  }

  /** Loads a batch. Returns the cells that the budget has no room for now, and when it may have. */
  const load = async (batch: readonly Cell[]): Promise<{ left: Cell[]; retryAt: number; reason: string }> => {
    const results = await Promise.allSettled(batch.map(timelines.ensure))
    const left: Cell[] = []
    let [retryAt, reason] = [0, '']
    let lost = ''
    results.forEach((result, i) => {
      const cell = batch[i]
      if (result.status === 'fulfilled') {
        if (result.value) progress.loaded += 1
        else progress.fresh += 1
        return
      }
      const error: unknown = result.reason
      const code = codeOf(error)
      if (code === 'provider_limited' && cell) {
        left.push(cell)
        retryAt = Math.max(retryAt, retryAtOf(error) ?? 0)
        reason = messageOf(error)
        return
      }
      lost = messageOf(error)
      const known = progress.failed.find(failure => failure.code === code)
      if (known) known.cells += 1
      else progress.failed.push({ code, message: lost, cells: 1 })
    })
    // All failed, so the provider is the cause and more requests would fail too.
    if (lost !== '' && results.every(({ status }) => status === 'rejected') && left.length === 0)
      stop('provider', lost)
    return { left, retryAt, reason }
  }
  const stop = (by: NonNullable<WarmReport['stoppedBy']>, reason: string): void => {
    progress.stoppedBy ??= by
    progress.reason ??= reason
  }

  const run = async (cells: readonly Cell[]): Promise<void> => {
    const { maxPointsPerRequest } = config.provider
    if (isStopping) return stop('operator', 'it was stopped')
    let next = 0
    let again: readonly Cell[] = []
    while ((next < cells.length || again.length > 0) && progress.stoppedBy === null) {
      if (isStopping) return stop('operator', 'it was stopped')
      const more = cells.slice(next, next + maxPointsPerRequest - again.length)
      next += more.length
      const refused = await load([...again, ...more])
      again = refused.left
      if (again.length === 0) continue
      if (refused.retryAt - clock.now() > longestWaitMs)
        return stop('budget', `${refused.reason}; it has room at ${isoOf(refused.retryAt)}`)
      while (!isStopping && isStillToCome(clock, refused.retryAt, longestWaitMs)) await pause(lookEveryMs)
    }
  }

  const warmState = (): WarmReport => ({
    ...progress,
    failed: progress.failed.map(failure => ({ ...failure })),
  })
  return {
    /** How much there is to load; loads nothing. @throws InputError, StoreError */
    planWarm: (order: WarmOrder): Promise<WarmReport> => planned(order, () => true),
    /** Starts in the background, and returns the plan. @throws InputError, StoreError, WarmingError */
    startWarm: async (order: WarmOrder): Promise<WarmReport> => {
      if (running) throw new WarmingError()
      isStopping = false
      const toLoad: Cell[] = []
      const plan = planned(order, cells => {
        toLoad.push(...cells)
        return !isStopping
      })
      // Set before the plan is made, so that no second order starts meanwhile.
      const carriedOut = async (): Promise<void> => {
        // An order that can't be planned keeps the report of the previous one.
        const report = await plan.catch(() => undefined)
        if (!report) return
        progress = { ...report, failed: [], state: 'running' }
        await run(toLoad).catch((error: unknown) => stop('provider', messageOf(error)))
        progress.state = progress.stoppedBy === null ? 'done' : 'stopped'
      }
      running = carriedOut().finally(() => {
        running = undefined
      })
      return plan
    },
    warmState,
    /** Stops after the requests in progress. Resolves when it has ended. */
    stopWarm: async (): Promise<WarmReport> => {
      isStopping = true
      await running
      return warmState()
    },
  }
}
