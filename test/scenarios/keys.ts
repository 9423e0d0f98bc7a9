// Creates keys for a scenario and reads their usage in this process, which is faster than a command for each. Offers a time
// zone far from midnight, so that no scenario splits its counts over two days.

import { openCommandStore } from '../../src/cli/administer.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import { systemClock } from '../../src/common/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type Administration, createAdministration } from '../../src/keys/administration.ts'
import { tiersOf } from '../../src/keys/test-keys.ts'
import { openStore } from '../../src/stores/open-store.ts'
import type { Env } from './set-up.ts'

/** It is about noon in this zone, so that no run crosses a midnight and splits its counts over two days. */
export const quietZone = (): string => {
  const hoursAhead = 12 - new Date().getUTCHours()
  return `Etc/GMT${hoursAhead > 0 ? '-' : '+'}${Math.abs(hoursAhead)}`
}

export type Issued = { readonly id: string; readonly key: string; readonly limit: number }

/** Runs one action on the store of this environment, which is made where there is none. */
export const administerWith = async (
  env: Env,
  act: (administration: Administration) => Promise<void>,
): Promise<void> => {
  const config = loadConfig({ files: [], env })
  const { quota } = config
  await using store = await openCommandStore(config, systemClock, openStore)
  const calendar = createCalendar(quota.timeZone)
  await act(createAdministration({ store, tiers: tiersOf(quota), calendar, clock: systemClock }))
}

/** A key for each of the tiers. */
export const issueKeys = async (env: Env, tiers: readonly string[]): Promise<Issued[]> => {
  const issued: Issued[] = []
  await administerWith(env, async administration => {
    for (const tier of tiers) issued.push(await administration.createKey('Bench', tier))
  })
  return issued
}

/** Today's usage of each key, in their order. */
export const usedToday = async (env: Env, ids: readonly string[]): Promise<number[]> => {
  const used: number[] = []
  await administerWith(env, async administration => {
    for (const id of ids) used.push((await administration.usage(id, 1)).days[0]?.used ?? 0)
  })
  return used
}
