// `abohawa keys …`: what an operator does with API keys. Keys are named by id; the key itself is shown once.

import type { Command } from 'commander'
import { createCalendar } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import { type Administration, createAdministration, type ListedKey } from '../metering/administration.ts'
import { openStore, storeName } from '../stores/open-store.ts'
import { type AddCommand, Misuse, type Terminal, tableOf } from './terminal.ts'

export const addKeyCommands = (program: Command, add: AddCommand): void => {
  const keys = program
    .command('keys')
    .summary('create, list, revoke and look at API keys')
    .description('API keys.')

  add<{ subscriber: string; tier: string }>(keys, 'create', {
    summary: 'create a key; it is shown this once',
    example: 'keys create --subscriber "Dhaka Tribune" --tier starter',
    setUp: command =>
      command
        .requiredOption('--subscriber <name>', 'who gets the key; a new name adds a subscriber')
        .requiredOption(
          '--tier <name>',
          'the daily quota: free, starter, business, enterprise, or as configured',
        ),
    run: async (terminal, { subscriber, tier }) => {
      const tiers = Object.keys(terminal.config().quota.tiers)
      if (!tiers.includes(tier)) throw new Misuse(`--tier is "${tier}"; allowed: ${tiers.join(', ')}`)
      return administer(terminal, async administration => {
        const issued = await administration.createKey(subscriber, tier)
        terminal.show(
          issued,
          `${issued.key}\n\n${issued.id} for ${issued.subscriber}, tier ${tier}: ${issued.limit} requests a day.\nKeep the key now: it can't be shown again.`,
        )
      })
    },
  })

  add(keys, 'list', {
    summary: 'list all keys',
    example: 'keys list --json',
    run: terminal =>
      administer(terminal, async administration => {
        const all = await administration.listKeys()
        terminal.show(
          all,
          all.length === 0 ? `There is no key yet in ${storeName(terminal.config())}.` : keyTable(all),
        )
      }),
  })

  const oneKey = (
    name: string,
    summary: string,
    act: (administration: Administration, id: string) => Promise<ListedKey>,
  ) =>
    add(keys, name, {
      summary,
      example: `keys ${name} key_9hK2mPq4XyZa`,
      setUp: command => command.argument('<id>', 'id of the key'),
      run: (terminal, _options, id = '') =>
        administer(terminal, async administration => {
          const key = await act(administration, id)
          terminal.show(key, keyTable([key]))
        }),
    })
  oneKey('show', 'show one key', (administration, id) => administration.showKey(id))
  oneKey('revoke', 'refuse a key from now on', (administration, id) => administration.revokeKey(id))
  oneKey('reinstate', 'accept a revoked key again', (administration, id) => administration.reinstateKey(id))

  add<{ days: string }>(keys, 'usage', {
    summary: 'show what a key used, by local day',
    example: 'keys usage key_9hK2mPq4XyZa --days 7',
    setUp: command =>
      command
        .argument('<id>', 'id of the key')
        .option('--days <number>', 'how many days, today included', '7'),
    run: async (terminal, { days }, id = '') => {
      const count = /^\d{1,3}$/.test(days) ? Number(days) : 0
      if (count < 1 || count > 400)
        throw new Misuse(`--days is ${days}; allowed: a whole number from 1 to 400`)
      return administer(terminal, async administration => {
        const usage = await administration.usage(id, count)
        const rows = usage.days.map(({ day, used }) => [day, String(used), String(usage.limit ?? '–')])
        terminal.show(usage, tableOf(['day', 'used', 'limit'], rows))
      })
    },
  })
}

/** Runs one act on the store of the terminal's configuration. */
export const administer = async (
  terminal: Terminal,
  act: (administration: Administration) => Promise<void>,
): Promise<number> => {
  await administerWith(terminal.config(), terminal.clock, act)
  return 0
}

/** Opens the store of a configuration, runs one act on it and closes it again. */
export const administerWith = async (
  config: Config,
  clock: Clock,
  act: (administration: Administration) => Promise<void>,
): Promise<void> => {
  // The outcome of the command tells what a connection's log lines would.
  const store = await openStore(config, clock, { redisAway: () => {}, redisBack: () => {} })
  try {
    const { timeZone, tiers } = config.quota
    await act(createAdministration({ store, tiers, calendar: createCalendar(timeZone), clock }))
  } finally {
    await store.close()
  }
}

const keyTable = (keys: readonly ListedKey[]): string =>
  tableOf(
    ['id', 'subscriber', 'tier', 'limit', 'status', 'created (UTC)'],
    keys.map(key => [
      key.id,
      key.subscriber,
      key.tier,
      String(key.limit ?? 'not configured'),
      key.status,
      key.createdAt.slice(0, 16),
    ]),
  )
