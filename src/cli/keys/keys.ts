// `abohawa keys …`: the arguments and results of the key commands. A new key is shown once.

import { type Command, Option } from 'commander'
import { addGatewayOption } from '../../command-line/gateway-query.ts'
import { checkTier } from '../../command-line/key-tier.ts'
import { collect, durationIn, numberIn } from '../../command-line/quantities.ts'
import {
  type AddCommand,
  type AddTopCommand,
  counted,
  csvOption,
  type Terminal,
  zoneOf,
} from '../../command-line/terminal.ts'
import { asUsage, UsageError } from '../../command-line/usage-error.ts'
import { utcDayMs } from '../../common/calendar.ts'
import { InputError, messageOf } from '../../common/errors.ts'
import { printable } from '../../common/outside-text.ts'
import type { Administration, RotatedKey, UsageOfKey } from '../../keys/administration.ts'
import { limitIn } from '../../keys/key-request.ts'
import type { TermTexts } from '../../keys/key-terms.ts'
import { administer } from '../administer.ts'
import { addCreateCommand } from './key-create.ts'
import { keysCsv, keyTable } from './key-table.ts'
import type { WhyOptions } from './key-why.ts'
import { addTermOptions, termsOf } from './term-options.ts'
import { allUsageCsv, allUsageText, usageCsv, usageText } from './usage-text.ts'

export const addKeyCommands: AddTopCommand = (program, add, summary) => {
  const keys = program.command('keys').summary(summary).description('API keys.')

  addCreateCommand(keys, add)
  addListCommand(keys, add)

  add(keys, 'show', {
    summary: 'show one key',
    example: 'keys show key_9hK2mPq4XyZa',
    setUp: command => command.argument('<id>', idHelp),
    run: (terminal, _options, id = '') => showOne(terminal, administration => administration.showKey(id)),
  })

  add<{ undo?: boolean }>(keys, 'revoke', {
    summary: 'revoke a key, or accept it again with --undo',
    example: 'keys revoke key_9hK2mPq4XyZa',
    setUp: command => command.argument('<id>', idHelp).option('--undo', 'accept a revoked key again'),
    run: (terminal, { undo = false }, id = '') =>
      showOne(terminal, administration =>
        undo ? administration.reinstateKey(id) : administration.revokeKey(id),
      ),
  })

  addRotateCommand(keys, add)
  addSetCommand(keys, add)
  addWhyCommand(keys, add)
  addUsageCommand(keys, add)
}

const addListCommand = (keys: Command, add: AddCommand): Command =>
  add<{ filter?: string; csv?: boolean }>(keys, 'list', {
    summary: 'list all or matching keys',
    example: "keys list --filter 'tier=starter status=active subscriber=~Dhaka used=0 expires<30d'",
    setUp: command =>
      command
        .option(
          '--filter <terms>',
          'conditions that must all hold: a field (id, external_id, subscriber, tier, status, limit, created, expires, used today, last_used), an operator (= != =~ < <= > >=) and a value',
        )
        .addOption(csvOption('print CSV')),
    run: (terminal, { filter, csv = false }) =>
      administer(terminal, async (administration, store) => {
        const all = await administration.listKeys(filter)
        const none = filter === undefined ? `There is no key yet in ${store}.` : 'No key matches.'
        if (csv) await terminal.writeAll(keysCsv(all))
        else terminal.show(all, all.length === 0 ? none : keyTable(all, zoneOf(terminal)))
      }),
  })

const addRotateCommand = (keys: Command, add: AddCommand): Command =>
  add<{ overlap: number }>(keys, 'rotate', {
    summary: 'replace a key under the same id; the old key works during the overlap',
    example: 'keys rotate key_9hK2mPq4XyZa --overlap 24h',
    setUp: command =>
      command
        .argument('<id>', 'id of the key')
        .addOption(
          new Option('--overlap <duration>', 'how long the old key still works; 0s stops it immediately')
            .argParser(durationIn)
            .default(utcDayMs, '24h'),
        ),
    run: (terminal, { overlap }, id = '') =>
      administer(terminal, async (administration, store) => {
        let isShown = false
        const show = async (rotated: RotatedKey): Promise<void> => {
          await terminal.showOnce({ ...rotated, store }, rotatedText(rotated, overlap)).catch(cause => {
            throw new InputError(`${messageOf(cause)}; key ${rotated.id} was not replaced`, { cause })
          })
          isShown = true
        }
        await administration.rotateKey(id, overlap, show).catch(cause => {
          if (!isShown) throw cause
          throw new InputError(`${messageOf(cause)}; the new key may not be valid: keep both keys`, { cause })
        })
      }),
  })

const addSetCommand = (keys: Command, add: AddCommand): Command =>
  add<{ tier?: string; limit?: string; expires?: string } & TermTexts>(keys, 'set', {
    summary: 'change tier, limits, expiry or restrictions of a key within a second',
    example:
      'keys set key_9hK2mPq4XyZa --tier business\n  npm run -s abohawa -- keys set key_9hK2mPq4XyZa --limit 2500 --expires 2027-01-31\n  npm run -s abohawa -- keys set key_9hK2mPq4XyZa --origins https://app.example.org --endpoints weather,forecast',
    setUp: command =>
      addTermOptions(
        command
          .argument('<id>', idHelp)
          .option('--tier <name>', 'new tier; a custom limit stays')
          .option(
            '--limit <requests>',
            'requests per day (overrides the tier), or `tier` to remove the limit',
          )
          .option('--expires <when>', 'never, day (until its end), timestamp, or duration such as 90d'),
        ', or `none`',
      ),
    run: async (terminal, options, id = '') => {
      const { tier, limit, expires } = options
      const terms = termsOf(options)
      if (
        tier === undefined &&
        limit === undefined &&
        expires === undefined &&
        Object.keys(terms).length === 0
      )
        throw new UsageError(
          'nothing to change: give at least one of --tier, --limit, --expires, --origins, --addresses, --endpoints, --per-second, --burst and --per-minute',
        )
      if (tier !== undefined) checkTier(terminal, tier)
      const change = {
        ...(tier === undefined ? {} : { tier }),
        ...(limit === undefined ? {} : { limit: limit === 'tier' ? null : asUsage(() => limitIn(limit)) }),
        ...(expires === undefined ? {} : { expires }),
        ...terms,
      }
      return showOne(terminal, async administration => {
        const key = await administration.setKey(id, change)
        if (tier !== undefined && limit === undefined && key.ownLimit)
          terminal.remark(
            `Its custom limit of ${counted(key.limit ?? 0)} stays; \`abohawa keys set ${id} --limit tier\` removes it.`,
          )
        return key
      })
    },
  })

const addWhyCommand = (keys: Command, add: AddCommand): Command =>
  add<WhyOptions>(keys, 'why', {
    summary: 'show why a key was refused at a time: its state, usage, outages and log lines',
    example: 'keys why key_9hK2mPq4XyZa --at 14:05 --log abohawa.log',
    setUp: command =>
      addGatewayOption(
        command
          .argument('<id>', idHelp)
          .requiredOption('--at <time>', 'time such as 14:05 today, or 2026-11-26T14:05')
          .option(
            '--log <file>',
            'log of a gateway, plain or gzip; `-` for standard input (repeatable)',
            collect,
          ),
      ),
    // Imported here, so that the other commands start without the sentences of the API.
    run: async (terminal, options, id = '') => (await import('./why-text.ts')).showWhy(terminal, id, options),
  })

const addUsageCommand = (keys: Command, add: AddCommand): Command =>
  add<{ days: number; csv?: boolean; all?: boolean; sort?: 'used' }>(keys, 'usage', {
    summary: "show the daily usage of one or all keys, and today's responses by status",
    example:
      'keys usage key_9hK2mPq4XyZa --days 30\n  npm run -s abohawa -- keys usage --all --csv --days 31 > usage.csv',
    setUp: command =>
      command
        .argument('[id]', 'id of the key')
        .option('--all', 'show the usage of all keys')
        .addOption(
          new Option('--sort <field>', 'show the usage of all keys, most used first').choices(['used']),
        )
        .option('--days <number>', 'number of days, including today', numberIn(1, 400), 30)
        .addOption(csvOption('print CSV: day, used, limit; with --all also the key, without empty days')),
    run: async (terminal, { days, csv = false, all: isOfAll = false, sort }, id = '') => {
      const all = isOfAll || sort !== undefined
      if (all === (id !== ''))
        throw new UsageError(
          all ? "an id can't be combined with --all or --sort" : 'give the id of a key, or --all',
        )
      return administer(terminal, async (administration, store) => {
        if (all) return usageOfAll(terminal, administration, days, csv, sort)
        const usage = await administration.usage(id, days)
        if (csv) await terminal.writeAll(usageCsv(usage))
        else terminal.show({ ...usage, store }, usageText(usage, terminal.columns))
      })
    },
  })

/** Printed as it is read, so that many keys need little memory; the table for people and an order need all of it. */
const usageOfAll = async (
  terminal: Terminal,
  administration: Administration,
  days: number,
  csv: boolean,
  sort: 'used' | undefined,
): Promise<void> => {
  const total = await administration.countKeys()
  const rows: UsageOfKey[] = []
  let read = 0
  if (csv) await terminal.writeAll(allUsageCsv.head)
  for await (const part of administration.usageOfAll(days)) {
    read += part.length
    terminal.progress(`${counted(read)} of ${counted(total)} keys`)
    if (csv && !sort) await terminal.writeAll(part.map(allUsageCsv.lines).join(''))
    else rows.push(...part)
  }
  terminal.progress('')
  if (sort) rows.sort((one, other) => other.used - one.used)
  if (csv) await terminal.writeAll(rows.map(allUsageCsv.lines).join(''))
  else terminal.show(rows, allUsageText(rows))
}

const rotatedText = (
  { id, key, subscriber, tier, limit, formerKeyUntil }: RotatedKey,
  overlap: number,
): string => {
  const oldKey =
    overlap === 0
      ? 'The old key is refused within a second.'
      : `The old key works until ${formerKeyUntil.slice(0, 19).replace('T', ' ')} UTC.`
  return `${key}

${id} for ${printable(subscriber)}, tier ${tier}: ${counted(limit)} requests a day, including today's.
${oldKey}
Keep the new key now: it can't be shown again.`
}

const idHelp = 'id of the key, or external: and its external id'

const showOne = (
  terminal: Terminal,
  act: (administration: Administration) => ReturnType<Administration['showKey']>,
): Promise<undefined> =>
  administer(terminal, async (administration, store) => {
    const key = await act(administration)
    terminal.show({ ...key, store }, keyTable([key], zoneOf(terminal)))
  })
