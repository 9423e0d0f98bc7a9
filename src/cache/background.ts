// The work of a cache that no request waits for, twice a second: it reads the purge log, sends the heartbeat when it is due,
// starts refresh-ahead, probes providers with an open circuit, and reports which upstream loads next.

import { type Clock, every } from '../common/clock.ts'
import type { Accounts } from '../provider/accounts.ts'
import { maxProbePoints } from '../provider/batch.ts'
import { type Next, soonMs } from '../provider/failover.ts'
import type { Cell } from '../weather/cell.ts'
import type { Demand } from './demand.ts'
import type { FreshnessPolicy } from './freshness.ts'
import { inStep } from './heartbeat.ts'
import { createProbe } from './refresh-ahead.ts'

const tickEveryMs = 500
const passEveryMs = 10_000

type BackgroundParts = {
  readonly accounts: Accounts
  readonly demand: Demand<Cell>
  /** The same list for as long as the cells are the same. */
  readonly pinned: () => readonly Cell[]
  readonly policy: FreshnessPolicy
  readonly readPurges: () => Promise<void>
  readonly sendHeartbeatIfDue: () => Promise<void>
  /** Starts the loads that are due; returns how many. */
  readonly refreshAhead: () => number
  readonly reload: (cell: Cell) => Promise<void>
  readonly renewStretch: () => void
  readonly onNextUpstream: ((next: Next<{ readonly name: string | undefined }>) => void) | undefined
  readonly clock: Clock
}

export const startBackground = (parts: BackgroundParts) => {
  const { accounts, clock } = parts
  const passes = createPasses(parts)
  const probes = createProbes(parts)
  const reportNext = accounts.all.length > 1 ? createNextReport(parts) : () => {}

  const tick = async (): Promise<void> => {
    await parts.readPurges()
    await parts.sendHeartbeatIfDue()
    passes.startIfDue()
    for (const probe of probes) probe()
    reportNext()
  }
  let isTicking = false
  const end = every(clock, tickEveryMs, () => {
    if (isTicking) return
    isTicking = true
    return tick().finally(() => {
      isTicking = false
    })
  })
  return {
    end,
    /** The next tick starts a pass of refresh-ahead. */
    passSoon: passes.soon,
  }
}

/** A pass looks at every cell in demand, within the lead. A new run or new pinned cells make many cells due: a pass starts immediately. */
const createPasses = ({ accounts, pinned, policy, refreshAhead, clock }: BackgroundParts) => {
  let last = { at: Number.NEGATIVE_INFINITY, runs: '', pinned: pinned() }
  const newestRuns = (): string =>
    accounts.all.map(({ name }) => accounts.runsOf(name)[0]?.availableAt).join()
  return {
    startIfDue: (): void => {
      const [at, runs, pinnedNow] = [clock.now(), newestRuns(), pinned()]
      const isUnchanged = runs === last.runs && pinnedNow === last.pinned
      const everyMs = Math.min(policy.leadMs / 6, passEveryMs)
      const since = at - last.at
      if (isUnchanged && Math.abs(since) < everyMs) return
      const started = refreshAhead()
      const from = isUnchanged ? inStep(at, since, everyMs) : at
      // The loads that did not fit now come next.
      last = { at: started > 0 ? Number.NEGATIVE_INFINITY : from, runs, pinned: pinnedNow }
    },
    soon: (): void => {
      last.at = Number.NEGATIVE_INFINITY
    },
  }
}

const createProbes = ({ accounts, demand, pinned, reload }: BackgroundParts) =>
  accounts.all.map(({ account: { breaker, provider } }) =>
    createProbe<Cell>({
      isDue: breaker.isProbeDue,
      // The cells requested last are the most useful ones to load.
      cells: () => {
        const requested = demand.latest(maxProbePoints)
        return requested.length > 0 ? requested : pinned().slice(0, 1)
      },
      // With several upstreams the cache would load from a healthy one. The weather of such a probe is not kept, because a failed probe
      // must not count as a failure of cells that another upstream serves.
      load: accounts.all.length > 1 ? provider.probe : ([cell]) => reload(cell),
    }),
  )

const createNextReport = ({ accounts, renewStretch, onNextUpstream }: BackgroundParts) => {
  let reported: { readonly name: string | undefined } | undefined = accounts.all[0]
  return (): void => {
    renewStretch()
    const next = accounts.next(soonMs)
    if (next.upstream === reported) return
    reported = next.upstream
    onNextUpstream?.(next)
  }
}
