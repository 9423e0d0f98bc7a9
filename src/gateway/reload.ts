// Applies a changed configuration to a running gateway, whole or not at all: everything that may fail (reading, checking,
// opening files) comes before anything is replaced. What needs a restart is named and left as it is. How each part takes its
// settings is for the parts; gateway.ts lists them.

import type { LoadedConfig } from '../config/load.ts'
import { ConfigError } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { type Change, changesBetween, withValuesOf } from '../config/values.ts'
import { messageOf } from '../errors.ts'
import { checkFiles } from './file-check.ts'

/** The step that replaces what was prepared, and can't fail. */
type Step = () => void

export type ReloadObserver = {
  /** Live settings are in effect; none where only the fault of a refused configuration is gone. */
  onApplied(changes: readonly Change[]): void
  /** Settings that differ from those in effect until the next start; called when that list changes. */
  onRestartNeeded(paths: readonly string[]): void
  /** The configuration could not be used: the former one stays in effect. */
  onRefused(reason: string): void
  onOutcome(outcome: ReloadOutcome): void
}

export type ReloadOutcome = 'applied' | 'unchanged' | 'refused'

export type ReloadOptions = {
  readonly running: Config
  /** @throws ConfigError */
  readonly read: () => LoadedConfig
  /** All that may fail, for a configuration: a step for each thing that is to be replaced. */
  readonly prepare: (next: Config) => Promise<readonly Step[]>
  /** Hands the live settings to the parts. Called when one has changed, and can't fail. */
  readonly apply: (next: Config) => void
  readonly observer: ReloadObserver
}

export type Reload = {
  /** Reads and applies now, one at a time. Never rejects. */
  now(): Promise<ReloadOutcome>
  /** What is in effect. */
  running(): Config
  /** Why the newest configuration is not in effect, if it could not be used. */
  fault(): string | undefined
  /** The settings that differ until the next start. */
  restartNeeded(): readonly string[]
}

// Reading the catalogue takes longest, and it is watched by itself.
const readsCatalogue = /^catalogue\.(path|bounds\.)/

export const createReload = (options: ReloadOptions): Reload => {
  const { read, prepare, apply, observer } = options
  let { running } = options
  let fault: string | undefined
  let restartNeeded: readonly string[] = []
  let reloading: Promise<ReloadOutcome> = Promise.resolve('unchanged')

  const reload = async (): Promise<ReloadOutcome> => {
    const { config, origins } = read()
    const changes = changesBetween(running, config)
    const isCatalogueMeant = changes.some(({ path }) => readsCatalogue.test(path))
    const faults = await checkFiles(config, origins, isCatalogueMeant)
    if (faults.length > 0) throw new ConfigError(faults)
    const live = changes.filter(({ effect }) => effect === 'live')
    const next = withValuesOf(
      running,
      config,
      live.map(({ path }) => path),
    )
    const steps = await prepare(next)
    // From here on nothing can fail, and nothing else runs in between.
    for (const step of steps) step()
    if (live.length > 0) apply(next)
    running = next
    const wasRefused = fault !== undefined
    fault = undefined
    const left = changes.filter(change => !live.includes(change)).map(({ path }) => path)
    const isNews = left.join() !== restartNeeded.join()
    restartNeeded = left
    if (live.length > 0 || wasRefused) observer.onApplied(live)
    if (isNews) observer.onRestartNeeded(left)
    return live.length + steps.length > 0 || wasRefused ? 'applied' : 'unchanged'
  }
  const reloadSafely = async (): Promise<ReloadOutcome> => {
    let outcome: ReloadOutcome = 'refused'
    try {
      outcome = await reload()
    } catch (error) {
      fault = messageOf(error)
      observer.onRefused(fault)
    }
    observer.onOutcome(outcome)
    return outcome
  }

  return {
    now: () => {
      reloading = reloading.then(reloadSafely)
      return reloading
    },
    running: () => running,
    fault: () => fault,
    restartNeeded: () => restartNeeded,
  }
}
