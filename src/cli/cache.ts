// `abohawa cache …`: shows what is cached for a place, and purges. `show` queries a running gateway, which alone knows its
// memory tier, else the shared tier; `purge` writes to the store, which every gateway polls.

import type { Command } from 'commander'
import { createCalendar } from '../calendar.ts'
import type { Config } from '../config/schema.ts'
import { messageOf } from '../errors.ts'
import type { CacheAdmin } from '../gateway/cache-admin.ts'
import { spotIn, targetIn } from '../gateway/cache-target.ts'
import type { PurgeReport } from '../gateway/cell-report.ts'
import { printable } from '../outside-text.ts'
import { redactedUrl } from '../redacted-url.ts'
import { openStore, storeName } from '../stores/open-store.ts'
import { cellText } from './cell-text.ts'
import { addGatewayOption, checkGateway, opsAddress, queryGateway } from './gateway-query.ts'
import { type AddCommand, factsText, type Terminal, UsageError } from './terminal.ts'

export const addCacheCommands = (program: Command, add: AddCommand): void => {
  const cache = program
    .command('cache')
    .summary('see what is cached for a place, and purge it')
    .description('The cache of weather.')

  add<{ gateway?: string }>(cache, 'show', {
    summary: 'show what is cached for a place or a point: age, freshness, model run, last error',
    example: 'cache show district/3026',
    setUp: command =>
      void addGatewayOption(command.argument('<target>', 'a point lat,lng or a place type/id')),
    run: async (terminal, { gateway }, of = '') => {
      checkArgument(() => spotIn(of))
      checkGateway(gateway)
      const config = terminal.config()
      const address = opsAddress(gateway, config)
      const found = await queryGateway(
        { address, path: `/cache/cell?of=${encodeURIComponent(of)}`, token: config.ops.token },
        async () => (await import('../gateway/cell-report.ts')).cellReport,
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

  add<{ soft?: boolean }>(cache, 'purge', {
    summary: 'purge cached weather in every gateway: remove it, or with --soft mark it stale',
    example: 'cache purge district/3026 --soft',
    setUp: command =>
      command
        .argument('<target>', 'all, a point lat,lng, a place type/id, or a box south,west,north,east')
        .option(
          '--soft',
          'serve it as stale until it is reloaded; without this option a failed reload is an error',
        ),
    run: async (terminal, { soft = false }, of = '') => {
      checkArgument(() => targetIn(of))
      const config = terminal.config()
      const report = await withCacheAdmin(terminal, config, admin => admin.purge(of, soft))
      const where = storeName(config)
      terminal.show({ ...report, where }, purgeText(report, where))
      return 0
    },
  })
}

/** Opens the cache admin on the configured store for one action. */
const withCacheAdmin = async <Result>(
  { clock }: Terminal,
  config: Config,
  act: (admin: CacheAdmin) => Promise<Result>,
): Promise<Result> => {
  // Imported here, so that the other commands start without the parts of a gateway.
  const { createCacheAdmin } = await import('../gateway/cache-admin.ts')
  const { createCatalogue } = await import('../catalogue/catalogue.ts')
  const { catalogueFile } = await import('../catalogue/catalogue-file.ts')
  const { readSnapshot } = await import('../catalogue/snapshot-reader.ts')
  const { path, bounds } = config.catalogue
  const store = await openStore(config, clock, { redisAway: () => {}, redisBack: () => {} })
  try {
    const catalogue = async () => createCatalogue(await readSnapshot(catalogueFile(path), bounds))
    return await act(createCacheAdmin(config, { store, catalogue, clock }))
  } finally {
    await store.close()
  }
}

const checkArgument = (read: () => unknown): void => {
  try {
    read()
  } catch (error) {
    throw new UsageError(messageOf(error), { cause: error })
  }
}

const purgeText = ({ kind, of, place, scope, cells, removed, store }: PurgeReport, where: string): string => {
  const soft = kind === 'soft'
  const what =
    'all' in scope
      ? 'everything'
      : 'cell' in scope
        ? `the cell ${scope.cell}${place ? ` of ${printable(`${place.name} (${place.type} ${place.id})`)}` : ''}`
        : `the box ${of}`
  const count = (number: number, one: string, more: string) =>
    `${number.toLocaleString('en-US')} ${number === 1 ? one : more}`
  return [
    `Purged${soft ? ' softly' : ''}: ${what}.`,
    factsText([
      ['covers', count(cells, 'cell', 'cells')],
      [
        'shared tier',
        soft
          ? 'nothing removed; what is there counts as stale'
          : `${count(removed, 'entry', 'entries')} removed`,
      ],
      ['', `${store}, ${where}`],
      ['gateways', 'running gateways apply it within a second'],
      [
        '',
        soft
          ? 'stale weather is served until it is reloaded'
          : 'the next request of a cell waits for its load',
      ],
    ]),
  ].join('\n')
}
