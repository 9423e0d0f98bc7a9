// Runs one action on the keys of the configured store: opens it, names it, and closes it. Makes no store unless the command
// says so. The commands are in keys/ and operate/.

import type { Command } from 'commander'
import { createCalendar } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { InputError } from '../common/errors.ts'
import type { Config } from '../config/schema.ts'
import { type Administration, createAdministration } from '../keys/administration.ts'
import { openStore, openUsedStore, storeName } from '../stores/open-store.ts'
import type { RefusedRecord } from '../stores/records.ts'
import type { Terminal } from './terminal.ts'
import { UsageError } from './usage-error.ts'

/** Adds `--create-store`. */
export const addCreateStoreOption = (command: Command): Command =>
  command.option('--create-store', 'create the store if there is none yet, before a gateway has started')

export type Action = (administration: Administration, store: string) => Promise<void>

/**
 * Runs one action on the store of the terminal's configuration, and says on standard error which one it was.
 * @param createStore makes the store where there is none
 */
export const administer = async (terminal: Terminal, act: Action, createStore = false): Promise<number> => {
  const config = terminal.config()
  const name = storeName(config)
  await administerWith(config, terminal.clock, administration => namingStore(name, act, administration), {
    open: createStore ? openStore : openUsedStore,
    recordRefused: ({ record, name, fault }) =>
      terminal.remark(`The record of ${record} ${name} is damaged: ${fault}.`),
  })
  terminal.remark(`Store: ${name}`)
  return 0
}

// A key that is not there is perhaps in another store.
const namingStore = async (name: string, act: Action, administration: Administration): Promise<void> => {
  try {
    await act(administration, name)
  } catch (cause) {
    if (!(cause instanceof InputError) || cause instanceof UsageError) throw cause
    throw new InputError(`${cause.message} (store: ${name})`, { cause })
  }
}

type Opening = {
  readonly open?: typeof openStore
  readonly recordRefused?: (refused: RefusedRecord) => void
}

/** Opens the store of a configuration, made where there is none, runs one action on it and closes it. */
export const administerWith = async (
  config: Config,
  clock: Clock,
  act: (administration: Administration) => Promise<void>,
  { open = openStore, recordRefused = () => {} }: Opening = {},
): Promise<void> => {
  // The command's own error reports a lost connection, so the observers stay silent.
  const store = await open(config, clock, { redisAway: () => {}, redisBack: () => {}, recordRefused })
  try {
    const { timeZone, tiers } = config.quota
    await act(createAdministration({ store, tiers, calendar: createCalendar(timeZone), clock }))
  } finally {
    await store.close()
  }
}
