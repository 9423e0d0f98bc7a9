// `abohawa cache …`: shows, purges and reloads what is cached. `show` and `warm --force` read the memory of a running gateway.

import { addGatewayOption, gatewayFor, queryGateway, reportOf } from '../../command-line/gateway-query.ts'
import { numberIn } from '../../command-line/quantities.ts'
import type { AddTopCommand, Terminal } from '../../command-line/terminal.ts'
import { asUsage, UsageError } from '../../command-line/usage-error.ts'
import { createCalendar } from '../../common/calendar.ts'
import { InputError } from '../../common/errors.ts'
import { printable } from '../../common/outside-text.ts'
import type { Config } from '../../config/schema.ts'
import type { CacheAdmin } from '../../operate/cache-admin.ts'
import { pointOrPlaceIn, targetIn } from '../../operate/cache-target.ts'
import type { CellReport } from '../../operate/reports/cell-report.ts'
import type { Store } from '../../stores/store.ts'
import { openCommandStore } from '../administer.ts'
import { cellText } from './cell-text.ts'
import { type PurgeOptions, purgeFromHere } from './purge.ts'

export const addCacheCommands: AddTopCommand = (program, add, summary) => {
  const cache = program.command('cache').summary(summary).description('The cache of weather.')

  add<{ gateway?: string }>(cache, 'show', {
    summary: 'show what is cached for a place or point',
    example: 'cache show district/3026',
    setUp: command => void addGatewayOption(command.argument('<target>', 'point lat,lng or place type/id')),
    run: async (terminal, { gateway }, of = '') => {
      asUsage(() => pointOrPlaceIn(of))
      const { config, asked } = gatewayFor(terminal, gateway)
      const { report, opsUrl, remark } = await reportOf<CellReport>(
        terminal,
        asked,
        `/cache/cell?of=${encodeURIComponent(of)}`,
        readCellReport,
        'only the shared tier',
        async () => {
          await using store = await openCommandStore(config, terminal.clock)
          return await (await cacheAdminOf(terminal, config, store)).explain(of)
        },
      )
      if (remark !== undefined) terminal.remark(remark)
      terminal.show({ opsUrl, ...report }, cellText(report, opsUrl, createCalendar(config.quota.timeZone)))
    },
  })

  add<PurgeOptions>(cache, 'purge', {
    summary: 'mark cached weather stale in every gateway, or remove it with --hard',
    example: 'cache purge district/3026 --area --dry-run',
    setUp: command =>
      command
        .argument('<target>', 'all, point lat,lng, place type/id, or box south,west,north,east')
        .option('--area', 'include the cells of all places inside the place')
        .option('--hard', 'remove it instead of serving it stale until it is reloaded')
        .option('--dry-run', 'show the price and purge nothing')
        .option('--yes', 'do not ask before a purge that exceeds the remaining budget'),
    run: (terminal, options, of = '') =>
      purgeFromHere(terminal, store => cacheAdminOf(terminal, terminal.config(), store), of, options),
  })

  add<{ top?: number; dryRun?: boolean; force?: boolean; gateway?: string }>(cache, 'warm', {
    summary: 'load absent or stale cells within the budget; Ctrl-C stops',
    example: 'cache warm --top 100 --dry-run',
    setUp: command =>
      addGatewayOption(command)
        .argument(
          '[target]',
          'all, point lat,lng, place type/id, or box south,west,north,east (default: cells in demand)',
        )
        .option(
          '--top <number>',
          'warm this many of the most populous places instead of a target',
          numberIn(1, 100_000),
        )
        .option('--dry-run', 'show the number of cells and the weight, and load nothing')
        .option('--force', 'reload the cell of a point or place in the running gateway, even if fresh'),
    run: async (terminal, { top, dryRun = false, force = false, gateway }, of) => {
      if (force) {
        if (dryRun || top !== undefined)
          throw new UsageError("--force reloads one cell: it can't be combined with --top or --dry-run")
        return refresh(terminal, gateway, of ?? '')
      }
      if (of !== undefined && top !== undefined) throw new UsageError("a target can't be combined with --top")
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
    readCellReport,
  )
  const { opsUrl } = asked
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

// Imported here, so that the other commands start without the parts of a gateway.
const readCellReport = async () => (await import('../../operate/reports/cell-report.ts')).cellReport

const cacheAdminOf = async ({ clock }: Terminal, config: Config, store: Store): Promise<CacheAdmin> => {
  const { createCacheAdmin } = await import('../../operate/cache-admin.ts')
  const { readCatalogue } = await import('../../catalogue/live-catalogue.ts')
  const current = await readCatalogue(config.catalogue.path)
  return createCacheAdmin(config, { store, catalogue: { current }, clock })
}
