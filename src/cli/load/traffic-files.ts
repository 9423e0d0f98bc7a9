// `abohawa traffic import|merge|cut|scrub|convert`: from files of traffic to files of traffic. traffic-rewrite.ts reads and
// writes them, traffic/ transforms requests.

import { type Command, InvalidArgumentError, Option } from 'commander'
import { type Destination, destinations } from '../../endpoints.ts'
import { isInstant } from '../../load/traffic/request-line.ts'
import type { Moment, Selection } from '../../load/traffic/selection.ts'
import { quoted } from '../../outside-text.ts'
import { collect, durationIn } from '../quantities.ts'
import type { AddCommand } from '../terminal.ts'
import { UsageError } from '../usage-error.ts'
import { configuredCellOf } from './traffic-cells.ts'
import { addRewriteOptions, listIn, momentIn, shareIn, wholeIn } from './traffic-options.ts'
import type { RewriteOptions } from './traffic-rewrite.ts'

// Each command imports its readers and writers itself, so that the others start without them.
const conversionNames = ['gor', 'vegeta', 'csv', 'libcachesim']
const rewriting = () => import('./traffic-rewrite.ts')
const selecting = () => import('../../load/traffic/selection.ts')

const cellsText = 'this share of the cells, with all of their requests: 0.1 or 10%'

export const addFileCommands = (traffic: Command, add: AddCommand): void => {
  add<RewriteOptions & { sample?: number }>(traffic, 'import', {
    summary:
      'read logs (ours, nginx, Apache, HAR, goreplay, plain or gzip) as one traffic file, in order and without keys',
    example: 'traffic import abohawa.log.1.gz abohawa.log --out day.ndjson.gz',
    setUp: command =>
      void addRewriteOptions(command).option('--sample <share>', `take ${cellsText}`, shareIn),
    run: async (terminal, { sample, ...options }, ...files) => {
      const { selected } = await selecting()
      const { rewrite } = await rewriting()
      const cellOf = sample === undefined ? undefined : await configuredCellOf(terminal)
      return rewrite(terminal, files, options, {
        pass: batches => selected(batches, { sample, cellOf }),
      })
    },
  })

  add<RewriteOptions>(traffic, 'merge', {
    summary: 'merge traffic files by arrival, such as those of several gateways',
    example: 'traffic merge samples/weekday.ndjson.gz samples/storm.ndjson.gz --out both.ndjson.gz',
    setUp: command => void addRewriteOptions(command),
    run: async (terminal, options, ...files) => (await rewriting()).rewrite(terminal, files, options),
  })

  add<RewriteOptions & CutOptions>(traffic, 'cut', {
    summary:
      'take a part of the requests: by time, endpoint, key, cell or place, a sample, the first or last',
    example: 'traffic cut samples/weekday.ndjson.gz --from 8h --duration 30m --out morning.ndjson',
    setUp: command =>
      void addRewriteOptions(command)
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
        .option(
          '--cell <names>',
          'for these cells, or places such as district/3026; may be given again',
          collect,
        )
        .option('--sample <share>', cellsText, shareIn)
        .option('--every <number>', 'one in this number of those that remain', wholeIn(1, 1_000_000_000))
        .addOption(
          new Option('--head <number>', 'this number of the first that remain')
            .argParser(wholeIn(1, 1_000_000_000))
            .conflicts('tail'),
        )
        .option('--tail <number>', 'this number of the last that remain', wholeIn(1, 1_000_000)),
    run: async (terminal, options, ...files) => {
      const selection = selectionOf(options)
      if (Object.values(selection).every(value => value === undefined))
        throw new UsageError(
          'there is nothing to cut by; allowed: --from, --to, --duration, --endpoint, --key, --cell, --sample, --every, --head, --tail',
        )
      const { selected } = await selecting()
      const { rewrite } = await rewriting()
      const needsCells = options.sample !== undefined || options.cell !== undefined
      const cellOf = needsCells ? await configuredCellOf(terminal) : undefined
      return rewrite(terminal, files, options, {
        pass: batches => selected(batches, { ...selection, cellOf }),
      })
    },
  })

  add<RewriteOptions & ScrubOptions>(traffic, 'scrub', {
    summary:
      'make a traffic file safe to share: new pseudonyms of keys, without parameters, keys or responses',
    example: 'traffic scrub samples/weekday.ndjson.gz --without-parameter q --out for-others.ndjson.gz',
    setUp: command =>
      void addRewriteOptions(command)
        .option('--without-parameter <names>', 'leave out these query parameters; may be given again', listIn)
        .option('--without-query', 'leave out all of them')
        .option('--without-keys', 'leave out keys instead of giving pseudonyms')
        .option('--without-answers', 'leave out status, outcome, tier, cell, bytes and ms')
        .option('--start <instant>', 'move all instants so that the first is this one', instantIn),
    run: async (terminal, options, ...files) => {
      const { withoutParameter = [], withoutQuery, withoutKeys, withoutAnswers, start } = options
      const { createPseudonyms } = await import('../../load/traffic/pseudonyms.ts')
      const { createScrub } = await import('../../load/traffic/scrub.ts')
      const { rewrite } = await rewriting()
      const nameOf = createPseudonyms()
      const scrubbing = {
        parameters: withoutQuery ? ('all' as const) : new Set(withoutParameter),
        withoutKeys: withoutKeys === true,
        withoutAnswers: withoutAnswers === true,
        start,
      }
      return rewrite(terminal, files, options, {
        async *pass(batches) {
          const scrub = createScrub(scrubbing, nameOf)
          for await (const batch of batches) yield batch.map(scrub)
        },
      })
    },
  })

  add<RewriteOptions & { to: string; target: URL }>(traffic, 'convert', {
    summary: 'write traffic for another tool: goreplay, vegeta, k6, libCacheSim',
    example:
      'traffic convert samples/weekday.ndjson.gz --to vegeta --target http://127.0.0.1:8080 --out targets.json',
    setUp: command =>
      void addRewriteOptions(command)
        .addOption(
          new Option(
            '--to <format>',
            'gor for goreplay, vegeta for its -format=json, csv for k6 and spreadsheets, libcachesim for cachesim (time,obj_id,size)',
          )
            .choices(conversionNames)
            .makeOptionMandatory(),
        )
        .option(
          '--target <url>',
          'the origin to put before paths',
          targetIn,
          new URL('http://127.0.0.1:8080'),
        ),
    run: async (terminal, { to, target, ...options }, ...files) => {
      const { conversionNamed, convertedText } = await import('../../load/traffic/convert.ts')
      const { rewrite } = await rewriting()
      const conversion = conversionNamed(to)
      return rewrite(terminal, files, options, {
        text: batches => convertedText(conversion, batches, target),
      })
    },
  })
}

type CutOptions = {
  from?: Moment
  to?: Moment
  duration?: number
  endpoint?: Destination[]
  key?: string[]
  cell?: string[]
  sample?: number
  every?: number
  head?: number
  tail?: number
}

type ScrubOptions = {
  withoutParameter?: string[]
  withoutQuery?: boolean
  withoutKeys?: boolean
  withoutAnswers?: boolean
  start?: number
}

/** Where one is an instant and the other a duration, that is known with the first request alone. */
const isAfter = (from: Moment, to: Moment): boolean =>
  ('at' in from && 'at' in to && from.at >= to.at) ||
  ('after' in from && 'after' in to && from.after >= to.after)

/** @throws UsageError for what nothing can match */
const selectionOf = (options: CutOptions): Selection => {
  const { from, to, duration, endpoint, key, cell, sample, every, head, tail } = options
  const wrong = cell?.find(name => !/^(-?\d+(\.\d+)?,-?\d+(\.\d+)?|[a-z]+\/\S+)$/.test(name))
  if (wrong !== undefined)
    throw new UsageError(
      `--cell is ${quoted(wrong)}; allowed: a cell such as 23.7,90.4, or a place such as district/3026`,
    )
  if (from && to && isAfter(from, to))
    throw new UsageError('--from is not before --to; allowed: an earlier one')
  const setOf = <Value>(values: Value[] | undefined) => (values === undefined ? undefined : new Set(values))
  return {
    from,
    to,
    duration,
    endpoints: setOf(endpoint),
    keys: setOf(key),
    cells: setOf(cell),
    sample,
    every,
    head,
    tail,
  }
}

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

const targetIn = (given: string): URL => {
  const url = URL.parse(given)
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.pathname === '/')
    return url
  throw new InvalidArgumentError('Allowed: a URL such as http://127.0.0.1:8080, without a path.')
}
