// The configured store in a command: opens it, runs an action on its keys, names it, and closes it. It makes a store only with
// --create-store.

import type { Command } from 'commander'
import type { Terminal } from '../command-line/terminal.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { createCalendar } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { InputError } from '../common/errors.ts'
import { type Administration, createAdministration } from '../keys/administration.ts'
import { tiersOf } from '../keys/test-keys.ts'
import { openStore, openUsedStore, type StoreOptions, storeName } from '../stores/open-store.ts'
import type { RefusedRecord } from '../stores/records.ts'
import type { Store } from '../stores/store.ts'

export const addCreateStoreOption = (command: Command): Command =>
  command.option('--create-store', 'create the store if it does not exist yet')

/**
 * Runs one action on the store of the terminal's configuration, and says on standard error which one it was.
 * @param createStore makes the store where there is none
 */
export const administer = async (
  terminal: Terminal,
  act: (administration: Administration, store: string) => Promise<void>,
  createStore = false,
): Promise<undefined> => {
  const config = terminal.config()
  const name = storeName(config)
  const open = createStore ? openStore : openUsedStore
  await using store = await openCommandStore(config, terminal.clock, open, ({ record, name, fault }) =>
    terminal.remark(`The record of ${record} ${name} is damaged: ${fault}.`),
  )
  const { quota } = config
  const calendar = createCalendar(quota.timeZone)
  const parts = { store, tiers: tiersOf(quota), calendar, clock: terminal.clock }
  await act(createAdministration(parts), name).catch(withStoreName(name))
  terminal.remark(`Store: ${name}`)
}

/** Throws an error again with the name of the store: a missing key may be in another one. */
export const withStoreName =
  (name: string) =>
  (cause: unknown): never => {
    if (!(cause instanceof InputError) || cause instanceof UsageError) throw cause
    throw new InputError(`${cause.message} (store: ${name})`, { cause })
  }

/** The store of a configuration, for the scope of a command; by default one that a gateway or a key has used. */
export const openCommandStore = async (
  options: StoreOptions,
  clock: Clock,
  open: typeof openStore = openUsedStore,
  recordRefused: (refused: RefusedRecord) => void = () => {},
): Promise<Store & AsyncDisposable> => {
  // The command's own error reports a lost connection, so the observers stay silent.
  const store = await open(options, clock, { redisAway: () => {}, redisBack: () => {}, recordRefused })
  return { ...store, [Symbol.asyncDispose]: () => store.close() }
}
