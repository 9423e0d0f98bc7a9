// Applies a changed configuration to a running gateway, whole or not at all: all that may fail comes before the first change.

import { type Clock, presentInstant } from '../common/clock.ts'
import { messageOf } from '../common/errors.ts'
import { checkFiles } from './file-check.ts'
import { ConfigError, type LoadedConfig } from './load.ts'
import type { Config } from './schema.ts'
import { type Change, changesBetween, fleetHashOf, withValuesOf } from './values.ts'

export type ReloadObserver = {
  /** Live settings are in effect; none where only the fault of a refused configuration is gone. */
  onApplied(changes: readonly Change[]): void
  /** Settings that differ from those in effect until the next start; called when that list changes. */
  onRestartNeeded(paths: readonly string[]): void
  /** The configuration could not be used: the previous one stays in effect. */
  onRefused(reason: string): void
  onOutcome(outcome: ReloadOutcome): void
}

export type ReloadOutcome = 'applied' | 'unchanged' | 'refused'

export type ReloadOptions = {
  readonly running: Config
  /** @throws ConfigError */
  readonly read: () => LoadedConfig
  /** Does all that may fail, and returns steps that can't fail, one for each replacement. */
  readonly prepare: (next: Config) => Promise<readonly (() => void)[]>
  /** Hands the live settings to the parts that have changed ones, by the beginnings of their paths. Can't fail. */
  readonly apply: (next: Config, isChanged: (begin: string) => boolean) => void
  /** Live settings among the changed ones that need a restart this time. */
  readonly needRestart: (next: Config) => readonly string[]
  readonly clock: Clock
  readonly observer: ReloadObserver
}

export type Reload = {
  /** Reads and applies now. Never rejects. Call it again when it has ended, as the watch of the files does. */
  now(): Promise<ReloadOutcome>
  /**
   * Tries again what was refused, in silence while it still is: a file that the configuration names may be there by now, which
   * nothing else tells.
   */
  again(): Promise<void>
  /** The configuration in effect. */
  running(): Config
  /** The hash of the settings that all instances should share. */
  hash(): string
  /** Since when it is in effect, ms since the epoch. */
  appliedAt(): number
  /** Why the newest configuration is not in effect, if it could not be used. */
  fault(): string | undefined
  /** The settings that differ until the next start. */
  restartNeeded(): readonly string[]
}

export const createReload = (options: ReloadOptions): Reload => {
  const { read, prepare, apply, needRestart, clock, observer } = options
  let { running } = options
  let hash = fleetHashOf(running)
  let appliedAt = presentInstant(clock)
  let fault: string | undefined
  let restartNeeded: readonly string[] = []

  const readAll = async (): Promise<LoadedConfig> => {
    const loaded = read()
    const changed = new Set(changesBetween(running, loaded.config).map(({ path }) => path))
    const faults = await checkFiles(loaded.config, loaded.origins, clock.now(), path => changed.has(path))
    if (faults.length > 0) throw new ConfigError(faults)
    return loaded
  }
  const reload = async (): Promise<ReloadOutcome> => {
    const { config } = await readAll()
    const changes = changesBetween(running, config)
    const later = new Set(needRestart(config))
    const live = changes.filter(({ path, effect }) => effect === 'live' && !later.has(path))
    const next = withValuesOf(
      running,
      config,
      live.map(({ path }) => path),
    )
    const steps = await prepare(next)
    // From here on nothing can fail, and nothing else runs in between.
    for (const step of steps) step()
    if (live.length > 0) {
      hash = fleetHashOf(next)
      appliedAt = presentInstant(clock)
      apply(next, begin => live.some(({ path }) => path.startsWith(begin)))
    }
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
  const reloadSafely = async (isAgain: boolean): Promise<ReloadOutcome> => {
    let outcome: ReloadOutcome = 'refused'
    try {
      outcome = await reload()
    } catch (error) {
      // Logs and probes have other readers than the files.
      fault = error instanceof ConfigError ? error.withoutText : messageOf(error)
      // What is new in a file is read and reported by itself.
      if (isAgain) return outcome
      observer.onRefused(fault)
    }
    observer.onOutcome(outcome)
    return outcome
  }

  return {
    now: () => reloadSafely(false),
    again: async () => {
      if (fault !== undefined) await reloadSafely(true)
    },
    running: () => running,
    hash: () => hash,
    appliedAt: () => appliedAt(),
    fault: () => fault,
    restartNeeded: () => restartNeeded,
  }
}
