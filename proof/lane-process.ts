// A process that takes one seed after the other from the one that started it: `node lane-process.ts <folder> [<sabotage>]`. It
// runs a seed, judges its history, keeps one that broke a promise, and shrinks it. A planted fault is in place before any
// file of the product is loaded. lanes.ts is the other end.

import { mkdirSync, writeFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { serveCalls } from './fleet/calls.ts'
import type { Lane } from './fleet/lane.ts'
import type { Verdict } from './promises.ts'
import type { StoreKind } from './steps.ts'

/** What it is sent: a seed, and whether to shrink what breaks a promise, and to print its history. */
export type Order = { readonly seed: number; readonly shrink: boolean; readonly isPrinted: boolean }

export type Judged = {
  readonly seed: number
  readonly ms: number
  readonly verdict: Verdict
  readonly store: StoreKind
  readonly hasProcesses: boolean
  readonly requests: number
  readonly steps: number
  /** Promises were broken, but the machine let the history wait for so long, each time that it was tried: no evidence. */
  readonly stalledMs?: number
  /** The file of a history that broke a promise, and that of the smallest schedule that does. */
  readonly kept?: string
  readonly smallest?: { readonly file: string; readonly steps: number }
  readonly printed?: string
}

const attemptsAtMost = 4

const [folder = '', sabotage] = process.argv.slice(2)

let opening: Promise<Lane> | undefined
let isEnding = false

/** Ends what the lane has started, also what it is just starting, and the process. */
const end = (): void => {
  if (isEnding) return
  isEnding = true
  void Promise.resolve(opening)
    .then(lane => lane?.close())
    .finally(() => process.exit(0))
}

// Nobody would send it anything any more. A terminal sends its signal to this process as well, and people send it twice.
for (const event of ['disconnect', 'SIGINT', 'SIGTERM']) process.on(event, end)

const main = async (): Promise<void> => {
  if (sabotage) (await import('./sabotage/plant.ts')).plant(sabotage)
  const [{ openLane }, { runUndisturbed }, { scheduleOf }, { shrink }, { historyText }] = await Promise.all([
    import('./fleet/lane.ts'),
    import('./undisturbed.ts'),
    import('./schedule.ts'),
    import('./shrink.ts'),
    import('./print.ts'),
  ])
  // For the gateways in processes, which are killed before they could.
  flushCompileCache()
  if (isEnding) return
  opening = openLane(sabotage)
  const lane = await opening

  const take = async ({ seed, shrink: isShrunk, isPrinted }: Order): Promise<Judged> => {
    const begun = performance.now()
    const { history, verdict, isDisturbed } = await runUndisturbed(lane, scheduleOf(seed), attemptsAtMost)
    const judged = {
      seed,
      ms: performance.now() - begun,
      verdict,
      store: history.schedule.store,
      hasProcesses: history.schedule.hasProcesses,
      requests: history.events.filter(({ kind }) => kind === 'answer').length,
      steps: history.schedule.steps.length,
      ...(isDisturbed && { stalledMs: history.stalledMs }),
      ...(isPrinted && { printed: historyText(history) }),
    }
    const [first] = verdict.violations
    if (!first || sabotage) return judged
    mkdirSync(folder, { recursive: true })
    const kept = join(folder, `seed-${seed}.json`)
    writeFileSync(kept, JSON.stringify({ verdict, history }))
    if (!isShrunk || isDisturbed) return { ...judged, kept }
    const smallest = await shrink(history.schedule, async schedule => {
      const again = await runUndisturbed(lane, schedule, 1)
      return !again.isDisturbed && again.verdict.violations.some(({ promise }) => promise === first.promise)
    })
    const file = join(folder, `seed-${seed}-small.json`)
    writeFileSync(file, JSON.stringify(smallest))
    return { ...judged, kept, smallest: { file, steps: smallest.steps.length } }
  }

  serveCalls(take)
}

await main()
