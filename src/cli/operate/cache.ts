// `abohawa cache …`: shows what is cached for a place, purges it and loads it anew. `show` queries a running gateway, which alone
// knows its memory tier, else the shared tier; `purge` writes to the store, which every gateway polls; `warm` is in
// warm.ts, but for `--force`, which needs a gateway.

import { InvalidArgumentError } from 'commander'
import { createCalendar } from '../../common/calendar.ts'
import { InputError } from '../../common/errors.ts'
import { printable } from '../../common/outside-text.ts'
import { redactedUrl } from '../../common/redacted-url.ts'
import type { Config } from '../../config/schema.ts'
import type { CacheAdmin } from '../../operate/cache-admin.ts'
import { pointOrPlaceIn, targetIn } from '../../operate/cache-target.ts'
import type { PurgeReport } from '../../operate/listener/cell-report.ts'
import { openUsedStore, storeName } from '../../stores/open-store.ts'
import { type AddTopCommand, factsText, numbered, type Terminal } from '../terminal.ts'
import { asUsage, UsageError } from '../usage-error.ts'
import { cellText } from './cell-text.ts'
import { addGatewayOption, gatewayFor, queryGateway } from './gateway-query.ts'

export const addCacheCommands: AddTopCommand = (program, add, summary) => {
  const cache = program.command('cache').summary(summary).description('The cache of weather.')

  add<{ gateway?: string }>(cache, 'show', {
    summary: 'show what is cached for a place or a point: age, freshness, model run, last error',
    example: 'cache show district/3026',
    setUp: command =>
      void addGatewayOption(command.argument('<target>', 'a point lat,lng or a place type/id')),
    run: async (terminal, { gateway }, of = '') => {
      asUsage(() => pointOrPlaceIn(of))
      const { config, asked } = gatewayFor(terminal, gateway)
      const { address } = asked
      const found = await queryGateway(
        { ...asked, path: `/cache/cell?of=${encodeURIComponent(of)}` },
        async () => (await import('../../operate/listener/cell-report.ts')).cellReport,
      )
      const report =
        'report' in found ? found.report : await withCacheAdmin(terminal, config, admin => admin.explain(of))
      if ('unavailable' in found)
        terminal.remark(
          `No gateway answered at ${redactedUrl(address)} (${found.unavailable}): this is the shared tier alone.`,
        )
      const from = 'report' in found ? redactedUrl(address) : undefined
      terminal.show(
        { opsUrl: from ?? null, ...report },
        cellText(report, from, createCalendar(config.quota.timeZone)),
      )
      return 0
    },
  })

  add<{ hard?: boolean }>(cache, 'purge', {
    summary: 'purge cached weather in every gateway: mark it stale, or with --hard remove it',
    example: 'cache purge district/3026',
    setUp: command =>
      command
        .argument('<target>', 'all, a point lat,lng, a place type/id, or a box south,west,north,east')
        .option('--hard', 'remove it, so that a failed reload is an error; else it is served until reloaded'),
    run: async (terminal, { hard = false }, of = '') => {
      asUsage(() => targetIn(of))
      const config = terminal.config()
      const report = await withCacheAdmin(terminal, config, admin => admin.purge(of, hard))
      const where = storeName(config)
      terminal.show({ ...report, where }, purgeText(report, where))
      return 0
    },
  })

  add<{ top?: number; dryRun?: boolean; force?: boolean; gateway?: string }>(cache, 'warm', {
    summary: 'load the cells of a target that are absent or stale, within the budget; Ctrl-C stops',
    example: 'cache warm --top 100 --dry-run',
    setUp: command =>
      addGatewayOption(command)
        .argument(
          '[target]',
          'all, a point lat,lng, a place type/id, or a box south,west,north,east; the cells in demand if not given',
        )
        .option(
          '--top <number>',
          'the cells of this number of most populous places, instead of a target',
          places,
        )
        .option('--dry-run', 'report how much there is to load and its weight, and load nothing')
        .option('--force', 'load the cell of a point or a place in the running gateway, fresh or not'),
    run: async (terminal, { top, dryRun = false, force = false, gateway }, of) => {
      if (force) {
        if (dryRun || top !== undefined)
          throw new UsageError(
            '--force is of one cell; allowed: a point or a place, without --top, --dry-run',
          )
        return refresh(terminal, gateway, of ?? '')
      }
      if (of !== undefined && top !== undefined)
        throw new UsageError('a target and --top are both given; allowed: one of them')
      if (of !== undefined) asUsage(() => targetIn(of))
      const { config, asked } = gatewayFor(terminal, gateway)
      // Imported here, so that the other commands start without the parts of a gateway.
      const { warmFromHere } = await import('./warm.ts')
      return warmFromHere(terminal, config, asked, { of, top }, dryRun)
    },
  })
}

/** Loads one cell in the running gateway, whose memory is to have the new entry. Resolves to the exit code. */
const refresh = async (terminal: Terminal, gateway: string | undefined, of: string): Promise<number> => {
  asUsage(() => pointOrPlaceIn(of))
  const { config, asked } = gatewayFor(terminal, gateway)
  const found = await queryGateway(
    {
      ...asked,
      path: `/cache/refresh?of=${encodeURIComponent(of)}`,
      method: 'POST',
      timeoutMs: config.provider.totalTimeoutMs + refreshExtraMs,
    },
    async () => (await import('../../operate/listener/cell-report.ts')).cellReport,
  )
  const opsUrl = redactedUrl(asked.address)
  if ('unavailable' in found)
    throw new InputError(
      `nothing was loaded, because no gateway answered at ${opsUrl} (${found.unavailable}); without --force this command loads what is absent or stale`,
    )
  const { report } = found
  const failure = report.gateway?.lastFailure
  terminal.show({ opsUrl, ...report }, cellText(report, opsUrl, createCalendar(config.quota.timeZone)))
  if (!failure) return 0
  terminal.remark(
    `The cell ${report.cell.id} was not loaded: ${printable(`${failure.code}: ${failure.message}`)}.`,
  )
  return 1
}

// As long as the ops listener takes for a response beyond the time of a request to the provider.
const refreshExtraMs = 30_000

const places = (given: string): number => {
  const number = /^\d{1,6}$/.test(given) ? Number(given) : 0
  if (number < 1 || number > 100_000)
    throw new InvalidArgumentError('Allowed: a whole number from 1 to 100000.')
  return number
}

/** Opens the cache admin on the configured store for one action. */
const withCacheAdmin = async <Result>(
  terminal: Terminal,
  config: Config,
  act: (admin: CacheAdmin) => Promise<Result>,
): Promise<Result> => {
  const { clock } = terminal
  // Of a broken file it throws: no command takes the default store in place of the configured one.
  terminal.config()
  // Imported here, so that the other commands start without the parts of a gateway.
  const { createCacheAdmin } = await import('../../operate/cache-admin.ts')
  const { readCatalogue } = await import('../../catalogue/live-catalogue.ts')
  const { path } = config.catalogue
  const store = await openUsedStore(config, clock, { redisAway: () => {}, redisBack: () => {} })
  try {
    const catalogue = () => readCatalogue(path)
    return await act(createCacheAdmin(config, { store, catalogue, clock }))
  } finally {
    await store.close()
  }
}

const purgeText = (report: PurgeReport, where: string): string => {
  const { kind, of, place, scope, cells, removed, store } = report
  const soft = kind === 'soft'
  const what =
    'all' in scope
      ? 'everything'
      : 'cell' in scope
        ? `the cell ${scope.cell}${place ? ` of ${printable(`${place.name} (${place.type} ${place.id})`)}` : ''}`
        : `the box ${of}`
  return [
    `Purged ${soft ? 'softly' : 'hard'}: ${what}.`,
    factsText([
      ['covers', numbered(cells, 'cell', 'cells')],
      [
        'shared tier',
        soft
          ? 'nothing removed; what is there counts as stale'
          : `${numbered(removed, 'entry', 'entries')} removed`,
      ],
      ['', `${store}, ${where}`],
      ['gateways', 'running gateways apply it within a second'],
      [
        '',
        soft
          ? 'it is served as stale until it is reloaded; --hard removes it'
          : 'the next request of a cell waits for its load',
      ],
    ]),
  ].join('\n')
}
