// `abohawa traffic import`: merges logs and traffic files into one traffic file, selects and scrubs requests, or lists their keys.

import { choiceOption, collect, durationIn, numberIn } from 'abohawa/command-line/quantities.ts'
import type { AddCommand } from 'abohawa/command-line/terminal.ts'
import { UsageError } from 'abohawa/command-line/usage-error.ts'
import { forceOption } from 'abohawa/command-line/writable.ts'
import { type Destination, destinations } from 'abohawa/common/endpoints.ts'
import { quoted } from 'abohawa/common/outside-text.ts'
import { type Command, InvalidArgumentError } from 'commander'
import { createPseudonyms } from '../traffic/pseudonyms.ts'
import { createScrub, type Scrubbing } from '../traffic/scrub.ts'
import { type Moment, type Selection, selected } from '../traffic/selection.ts'
import { isInstant } from '../traffic/traffic-request.ts'
import { addReadOptions, configuredCellOf, listIn, momentIn, outOption, shareIn } from './traffic-options.ts'
import { type RewriteOptions, rewrite } from './traffic-rewrite.ts'

export const addImportCommand = (traffic: Command, add: AddCommand): Command =>
  add<RewriteOptions & Selection & Scrubbing>(traffic, 'import', {
    summary: 'merge logs and traffic files into one traffic file: sorted, filtered, scrubbed',
    example:
      'traffic import abohawa.log.1.gz abohawa.log --out day.ndjson.gz\n  npm run -s abohawa -- traffic import samples/weekday.ndjson.gz --from 8h --duration 30m --out morning.ndjson',
    setUp: command =>
      void addReadOptions(command)
        .addOption(outOption())
        .addOption(forceOption())
        .option('--strict', 'exit with code 1 at the first faulty line and write no file')
        .option('--longest-gap <duration>', 'shorten longer gaps between requests to this', durationIn)
        .option('--from <when>', 'start: timestamp, or duration after the first request', momentIn)
        .option('--to <when>', 'end (exclusive): timestamp, or duration after the first request', momentIn)
        .option('--duration <duration>', 'time to keep, from --from or the first request', durationIn)
        .option(
          '--endpoint <names>',
          `${destinations.slice(0, -1).join(', ')} or ${destinations.at(-1)}`,
          endpointsIn,
        )
        .option('--key <ids>', 'keep requests of these key ids', listIn)
        .option('--cell <names>', 'keep these cells, or places such as district/3026 (repeatable)', collect)
        .option(
          '--sample <share>',
          'keep this share of the cells with all their requests: 0.1 or 10%',
          shareIn,
        )
        .option('--head <number>', 'keep only this many requests', numberIn(1, 1_000_000_000))
        .option('--scrub', 'replace all keys, ids and secret-looking values by new pseudonyms, for sharing')
        .option('--without-parameter <names>', 'remove these query parameters; * for all', listIn)
        .option('--without-keys', 'remove keys')
        .option('--without-answers', 'remove status, outcome, tier, cell, bytes and ms')
        .option('--start <instant>', 'move all times so that the first is this timestamp', instantIn)
        .addOption(
          choiceOption('--as <what>', 'write requests, or their key ids as CSV for keys create --from', [
            'requests',
            'keys',
          ]),
        )
        .option('--tier <name>', 'with --as keys: tier of each key', 'enterprise'),
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

/** @throws UsageError for a selection that nothing can match */
const checkSelection = ({ from, to, cell }: Selection): void => {
  const wrong = cell?.find(name => !/^(-?\d+(\.\d+)?,-?\d+(\.\d+)?|[a-z]+\/\S+)$/.test(name))
  if (wrong !== undefined)
    throw new UsageError(
      `--cell must be a cell such as 23.7,90.4 or a place such as district/3026, got ${quoted(wrong)}`,
    )
  if (from && to && isAfter(from, to)) throw new UsageError('--from must be before --to')
}

/** An instant and a duration can be compared only once the first request is known. */
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
