// `abohawa cache …`: what is cached for a place, and purges. A running gateway is asked where one answers, because its
// memory is its own; purges go through the store, where every gateway finds them.

import type { Command } from 'commander'
import { createCalendar } from '../calendar.ts'
import type { Config } from '../config/schema.ts'
import { InputError, messageOf } from '../errors.ts'
import type { CacheAdmin } from '../gateway/cache-admin.ts'
import { spotIn, targetIn } from '../gateway/cache-target.ts'
import type { CellReport, PurgeReport } from '../gateway/cell-report.ts'
import { printable, safeText } from '../outside-text.ts'
import { redactedUrl } from '../redacted-url.ts'
import { openStore, storeName } from '../stores/open-store.ts'
import { cellText } from './cell-text.ts'
import { type AddCommand, factsText, Misuse, type Terminal } from './terminal.ts'

export const addCacheCommands = (program: Command, add: AddCommand): void => {
  const cache = program
    .command('cache')
    .summary('see what is cached for a place, and purge it')
    .description('The cache of weather.')

  add<{ gateway?: string }>(cache, 'show', {
    summary:
      'tell what is cached for a place or a point: how old, how fresh, which model run, what went wrong',
    example: 'cache show district/3026',
    setUp: command =>
      command
        .argument('<target>', 'a point lat,lng or a place type/id')
        .option(
          '--gateway <url>',
          'the ops address of the gateway to ask; that of the configuration if not given',
        ),
    run: async (terminal, { gateway }, of = '') => {
      meant(() => spotIn(of))
      if (gateway !== undefined && !/^https?:$/.test(URL.parse(gateway)?.protocol ?? ''))
        throw new Misuse(
          `--gateway is ${safeText(gateway, 60)}; allowed: an address such as http://127.0.0.1:9090`,
        )
      const config = terminal.config()
      const asked = gateway?.replace(/\/+$/, '') ?? opsAddress(config.ops)
      const told = await askGateway(asked, of)
      const report =
        'report' in told ? told.report : await withCacheAdmin(terminal, config, admin => admin.explain(of))
      if ('silent' in told)
        terminal.remark(
          `No gateway tells at ${redactedUrl(asked)} (${told.silent}): this is the shared tier alone.`,
        )
      const from = 'report' in told ? redactedUrl(asked) : undefined
      terminal.show(
        { asked: from ?? null, ...report },
        cellText(report, from, createCalendar(config.quota.timeZone)),
      )
      return 0
    },
  })

  add<{ soft?: boolean }>(cache, 'purge', {
    summary: 'declare what is cached gone, or with --soft stale, in every gateway',
    example: 'cache purge district/3026 --soft',
    setUp: command =>
      command
        .argument('<target>', 'all, a point lat,lng, a place type/id, or a box south,west,north,east')
        .option(
          '--soft',
          'go on serving it until it is loaded anew; without, consumers have no weather if that load fails',
        ),
    run: async (terminal, { soft = false }, of = '') => {
      meant(() => targetIn(of))
      const config = terminal.config()
      const report = await withCacheAdmin(terminal, config, admin => admin.purge(of, soft))
      const where = storeName(config)
      terminal.show({ ...report, where }, purgeText(report, where))
      return 0
    },
  })
}

/** Opens the admin over the store of the configuration for one act. */
const withCacheAdmin = async <Result>(
  { clock }: Terminal,
  config: Config,
  act: (admin: CacheAdmin) => Promise<Result>,
): Promise<Result> => {
  // Loaded here, so that the other commands start without the parts of a gateway.
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

const meant = (read: () => unknown): void => {
  try {
    read()
  } catch (error) {
    throw new Misuse(messageOf(error), { cause: error })
  }
}

/** The address at which a listener of this host and port is reached from the same machine. */
const opsAddress = ({ host, port }: Config['ops']): string => {
  const reached = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

const patienceMs = 10_000

/** What a gateway tells of a cell, or why none does. @throws InputError when it refuses the question */
const askGateway = async (
  address: string,
  of: string,
): Promise<{ report: CellReport } | { silent: string }> => {
  let status: number
  let body: unknown
  try {
    // Loaded here, and not fetch, which refuses some ports on principle.
    const { request } = await import('undici')
    const { statusCode, body: answer } = await request(`${address}/cache/cell?of=${encodeURIComponent(of)}`, {
      signal: AbortSignal.timeout(patienceMs),
    })
    status = statusCode
    const text = await answer.text()
    body = jsonIn(text)
  } catch (error) {
    return { silent: messageOf(error) }
  }
  const { cellReport } = await import('../gateway/cell-report.ts')
  const report = cellReport.safeParse(body).data
  if (report) return { report }
  const refusal = body instanceof Object && 'error' in body ? body.error : undefined
  if (status === 400 && typeof refusal === 'string') throw new InputError(refusal)
  // It is a gateway, and does not know the name it was asked by.
  if (status === 403 && typeof refusal === 'string') return { silent: refusal }
  return { silent: `what answers there, with ${status}, is no gateway of this version` }
}

const jsonIn = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
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
      ['gateways', 'running ones take it within a second'],
      [
        '',
        soft
          ? 'the old is served while it is loaded anew'
          : 'what is asked for is loaded before it is answered',
      ],
    ]),
  ].join('\n')
}
