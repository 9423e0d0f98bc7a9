// `abohawa keys …`: parses the arguments of the key commands and prints their results. Keys are named by id; a new key is
// shown once. metering/administration.ts does the work.

import type { Command } from 'commander'
import { parseDuration } from '../config/units.ts'
import { messageOf } from '../errors.ts'
import type { Administration, ListedKey } from '../metering/administration.ts'
import { printable, quoted, safeText } from '../outside-text.ts'
import { type Action, addCreateStoreOption, administer } from './administer.ts'
import { type AddCommand, counted, type Terminal, tableOf, UsageError } from './terminal.ts'
import { usageCsv, usageText } from './usage-text.ts'

export const addKeyCommands = (program: Command, add: AddCommand): void => {
  const keys = program
    .command('keys')
    .summary('create, rotate, revoke and inspect API keys')
    .description('API keys.')

  add<{ subscriber: string; tier: string; createStore?: boolean }>(keys, 'create', {
    summary: 'create a key; it is shown this once',
    example: 'keys create --subscriber "Dhaka Tribune" --tier starter',
    setUp: command =>
      addCreateStoreOption(
        command
          .requiredOption('--subscriber <name>', 'who gets the key; a new name adds a subscriber')
          .requiredOption(
            '--tier <name>',
            'the daily quota: free, starter, business, enterprise, or as configured',
          ),
      ),
    run: async (terminal, { subscriber, tier, createStore }) => {
      checkTier(terminal, '--tier', tier)
      const create: Action = async (administration, store) => {
        const meant = await administration.nearlyNamed(subscriber)
        if (meant !== undefined)
          terminal.remark(
            `${quoted(subscriber.trim(), 100)} is a new subscriber, and nearly ${quoted(meant, 100)}. If that was meant, revoke this key and create another.`,
          )
        const issued = await administration.createKey(subscriber, tier)
        terminal.show(
          { ...issued, store },
          `${issued.key}\n\n${issued.id} for ${printable(issued.subscriber)}, tier ${tier}: ${counted(issued.limit)} requests a day.\nKeep the key now: it can't be shown again.`,
        )
      }
      return administer(terminal, create, createStore)
    },
  })

  add(keys, 'list', {
    summary: 'list all keys',
    example: 'keys list --json',
    run: terminal =>
      administer(terminal, async (administration, store) => {
        const all = await administration.listKeys()
        terminal.show(all, all.length === 0 ? `There is no key yet in ${store}.` : keyTable(all))
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
        administer(terminal, async (administration, store) => {
          const key = await act(administration, id)
          terminal.show({ ...key, store }, keyTable([key]))
        }),
    })
  oneKey('show', 'show one key', (administration, id) => administration.showKey(id))
  oneKey('revoke', 'refuse a key from now on', (administration, id) => administration.revokeKey(id))
  oneKey('reinstate', 'accept a revoked key again', (administration, id) => administration.reinstateKey(id))

  add<{ overlap: string }>(keys, 'rotate', {
    summary: 'replace a key by a new one under the same id; the former goes on working for a while',
    example: 'keys rotate key_9hK2mPq4XyZa --overlap 24h',
    setUp: command =>
      command
        .argument('<id>', 'id of the key')
        .option('--overlap <duration>', 'how long the former key goes on working; 0s: no longer', '24h'),
    run: async (terminal, { overlap }, id = '') => {
      const overlapMs = overlapOf(overlap)
      return administer(terminal, async (administration, store) => {
        const rotated = await administration.rotateKey(id, overlapMs)
        const { key, subscriber, tier, limit, formerKeyUntil } = rotated
        const former =
          overlapMs === 0
            ? 'The former key is refused within a second.'
            : `The former key works until ${formerKeyUntil.slice(0, 19).replace('T', ' ')} UTC.`
        terminal.show(
          { ...rotated, store },
          `${key}\n\n${id} for ${printable(subscriber)}, tier ${tier}: ${counted(limit)} requests a day, those of today included.\n${former}\nKeep the new key now: it can't be shown again.`,
        )
      })
    },
  })

  add(keys, 'tier', {
    summary: 'put a key on another tier, within a second and with what it used today',
    example: 'keys tier key_9hK2mPq4XyZa business',
    setUp: command =>
      command.argument('<id>', 'id of the key').argument('<tier>', 'name of a tier of the configuration'),
    run: async (terminal, _options, id = '', tier = '') => {
      checkTier(terminal, 'the tier', tier)
      return administer(terminal, async (administration, store) => {
        const key = await administration.setTier(id, tier)
        if (key.ownLimit)
          terminal.remark(
            `Its own limit of ${counted(key.limit ?? 0)} stays; \`abohawa keys limit ${id} --tier\` lifts it.`,
          )
        terminal.show({ ...key, store }, keyTable([key]))
      })
    },
  })

  add<{ tier?: boolean }>(keys, 'limit', {
    summary: 'give a key a daily limit of its own, or with --tier that of its tier again',
    example: 'keys limit key_9hK2mPq4XyZa 2500',
    setUp: command =>
      command
        .argument('<id>', 'id of the key')
        .argument('[requests]', 'requests a day')
        .option('--tier', "back to the tier's limit"),
    run: async (terminal, { tier = false }, id = '', requests) => {
      if (tier === (requests !== undefined))
        throw new UsageError('the limit is a number of requests a day or --tier, one of the two')
      if (requests !== undefined && !/^[1-9]\d{0,11}$/.test(requests))
        throw new UsageError(`the limit is ${safeText(requests, 60)}; allowed: a whole number of at least 1`)
      return administer(terminal, async (administration, store) => {
        const key = await administration.setLimit(id, requests === undefined ? null : Number(requests))
        terminal.show({ ...key, store }, keyTable([key]))
      })
    },
  })

  add<{ days: string; csv?: boolean }>(keys, 'usage', {
    summary: 'show what a key used, by local day, and how it was answered today',
    example: 'keys usage key_9hK2mPq4XyZa --days 30',
    setUp: command =>
      command
        .argument('<id>', 'id of the key')
        .option('--days <number>', 'how many days, today included', '30')
        .option('--csv', 'print CSV: day, used, limit'),
    run: async (terminal, { days, csv = false }, id = '') => {
      if (csv && terminal.json) throw new UsageError('--csv and --json are two forms; allowed: one of them')
      const count = /^\d{1,3}$/.test(days) ? Number(days) : 0
      if (count < 1 || count > 400)
        throw new UsageError(`--days is ${safeText(days, 60)}; allowed: a whole number from 1 to 400`)
      return administer(terminal, async (administration, store) => {
        const usage = await administration.usage(id, count)
        if (csv) terminal.write(usageCsv(usage))
        else terminal.show({ ...usage, store }, usageText(usage, terminal.columns))
      })
    },
  })
}

const checkTier = (terminal: Terminal, name: string, tier: string): void => {
  const tiers = Object.keys(terminal.config().quota.tiers)
  if (!tiers.includes(tier)) throw new UsageError(`${name} is ${quoted(tier)}; allowed: ${tiers.join(', ')}`)
}

const overlapOf = (given: string): number => {
  try {
    return parseDuration(given)
  } catch (error) {
    throw new UsageError(`--overlap: ${messageOf(error)}`, { cause: error })
  }
}

const keyTable = (keys: readonly ListedKey[]): string => {
  const anyFormer = keys.some(key => key.formerKeyUntil !== null)
  return tableOf(
    [
      'id',
      'subscriber',
      'tier',
      'limit',
      'status',
      'created (UTC)',
      ...(anyFormer ? ['former key until (UTC)'] : []),
    ],
    keys.map(key => [
      key.id,
      key.subscriber,
      key.tier,
      `${key.limit ?? 'not configured'}${key.ownLimit ? ' (own)' : ''}`,
      key.status,
      minuteOf(key.createdAt),
      ...(anyFormer ? [key.formerKeyUntil === null ? '' : minuteOf(key.formerKeyUntil)] : []),
    ]),
  )
}

const minuteOf = (iso: string): string => iso.slice(0, 16).replace('T', ' ')
