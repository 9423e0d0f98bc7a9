// `abohawa traffic import`: logs and traffic files, in order, become one traffic file, or a part of one, or one for others, or the
// list of their keys. traffic-rewrite.ts reads and writes them, traffic/ chooses and scrubs requests.

import { collect, durationIn, numberIn } from 'abohawa/command-line/quantities.ts'
import type { AddCommand } from 'abohawa/command-line/terminal.ts'
import { UsageError } from 'abohawa/command-line/usage-error.ts'
import { forceOption } from 'abohawa/command-line/writable.ts'
import { type Destination, destinations } from 'abohawa/common/endpoints.ts'
import { quoted } from 'abohawa/common/outside-text.ts'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { createPseudonyms } from '../traffic/pseudonyms.ts'
import { createScrub, type Scrubbing } from '../traffic/scrub.ts'
import { type Moment, type Selection, selected } from '../traffic/selection.ts'
import { isInstant } from '../traffic/traffic-request.ts'
import { addReadOptions, configuredCellOf, listIn, momentIn, outOption, shareIn } from './traffic-options.ts'
import { type RewriteOptions, rewrite } from './traffic-rewrite.ts'

export const addImportCommand = (traffic: Command, add: AddCommand): Command =>
  add<RewriteOptions & Selection & Scrubbing>(traffic, 'import', {
    summary:
      'make one traffic file of logs and traffic files: in order, without keys, cut and scrubbed as wanted',
    example:
      'traffic import abohawa.log.1.gz abohawa.log --out day.ndjson.gz\n  npm run -s abohawa -- traffic import samples/weekday.ndjson.gz --from 8h --duration 30m --out morning.ndjson',
    setUp: command =>
      void addReadOptions(command)
        .addOption(outOption())
        .addOption(forceOption())
        .option('--strict', 'end with 1 at the first faulty line, and write no file')
        .option('--longest-gap <duration>', 'shorten longer gaps without a request to this', durationIn)
        .option('--from <when>', 'an instant, or a duration from the first request', momentIn)
        .option('--to <when>', 'an instant or a duration too; requests from it on are left out', momentIn)
        .option(
          '--duration <duration>',
          'how much time to take, from --from or the first request',
          durationIn,
        )
        .option(
          '--endpoint <names>',
          `${destinations.slice(0, -1).join(', ')} or ${destinations.at(-1)}`,
          endpointsIn,
        )
        .option('--key <ids>', 'ids of the keys to take', listIn)
        .option('--cell <names>', 'these cells, or places such as district/3026; may be given again', collect)
        .option(
          '--sample <share>',
          'this share of the cells, with all of their requests: 0.1 or 10%',
          shareIn,
        )
        .option('--head <number>', 'this number of the first that remain', numberIn(1, 1_000_000_000))
        .option('--scrub', 'for others: new pseudonyms of all keys, also of ids, and of what looks secret')
        .option('--without-parameter <names>', 'leave out these query parameters, * for all', listIn)
        .option('--without-keys', 'leave out keys')
        .option('--without-answers', 'leave out status, outcome, tier, cell, bytes and ms')
        .option('--start <instant>', 'move all instants so that the first is this one', instantIn)
        .addOption(
          new Option('--as <what>', 'requests, or the ids of their keys as CSV for keys create --from')
            .choices(['requests', 'keys'])
            .default('requests'),
        )
        .option('--tier <name>', 'of --as keys: the tier of each key', 'enterprise'),
    run: async (terminal, options, ...files) => {
      checkSelection(options)
      const needsCells = options.sample !== undefined || options.cell !== undefined
      const cellOf = needsCells ? await configuredCellOf(terminal) : undefined
      const scrub = createScrub(options, createPseudonyms())
      return rewrite(terminal, files, options, async function* (batches) {
        for await (const batch of selected(batches, options, cellOf)) yield scrub ? batch.map(scrub) : batch
      })
    },
  })

/** @throws UsageError for what nothing can match */
const checkSelection = ({ from, to, cell }: Selection): void => {
  const wrong = cell?.find(name => !/^(-?\d+(\.\d+)?,-?\d+(\.\d+)?|[a-z]+\/\S+)$/.test(name))
  if (wrong !== undefined)
    throw new UsageError(
      `--cell is ${quoted(wrong)}; allowed: a cell such as 23.7,90.4, or a place such as district/3026`,
    )
  if (from && to && isAfter(from, to))
    throw new UsageError('--from is not before --to; allowed: an earlier one')
}

/** Where one is an instant and the other a duration, that is known with the first request alone. */
const isAfter = (from: Moment, to: Moment): boolean =>
  ('at' in from && 'at' in to && from.at >= to.at) ||
  ('after' in from && 'after' in to && from.after >= to.after)

const endpointsIn = (given: string, before?: Destination[]): Destination[] => {
  const names = listIn(given, before)
  const found = destinations.filter(name => names.includes(name))
  if (found.length === new Set(names).size) return found
  throw new InvalidArgumentError(`Allowed: ${destinations.join(', ')}.`)
}

const instantIn = (given: string): number => {
  const moment = momentIn(given)
  if ('at' in moment && isInstant(moment.at)) return moment.at
  throw new InvalidArgumentError('Allowed: an instant such as 2026-11-21T06:00:00Z, from 2000 to 2099.')
}
