// `abohawa cache warm`: lets a running gateway load cells, or loads them itself without one. A signal stops it after the current
// request.

import { setTimeout as pause } from 'node:timers/promises'
import { silentObserver } from '../../cache/silent-observer.ts'
import { openUpstream } from '../../cache/upstream.ts'
import { readCatalogue } from '../../catalogue/live-catalogue.ts'
import { type AskedGateway, queryGateway } from '../../command-line/gateway-query.ts'
import { interruption } from '../../command-line/interruption.ts'
import { factsText } from '../../command-line/tables.ts'
import { counted, type Terminal } from '../../command-line/terminal.ts'
import { InputError, messageOf } from '../../common/errors.ts'
import { printable } from '../../common/outside-text.ts'
import type { Config } from '../../config/schema.ts'
import { fleetHashOf } from '../../config/values.ts'
import { type CacheWarm, createCacheWarm, type WarmOrder } from '../../operate/cache-warm.ts'
import { type WarmReport, warmReport } from '../../operate/reports/warm-report.ts'
import { openCommandStore } from '../administer.ts'

type Warmer = Pick<CacheWarm, 'planWarm' | 'startWarm' | 'stopWarm'> & {
  readonly by: string
  warmState(): WarmReport | Promise<WarmReport>
}

/** Resolves to the exit code: 1 when cells failed or it was stopped. */
export const warmFromHere = async (
  terminal: Terminal,
  config: Config,
  asked: AskedGateway,
  order: WarmOrder,
  dryRun: boolean,
): Promise<number> => {
  await using opening = new AsyncDisposableStack()
  const warmer = (await gatewayAt(asked)) ?? (await ownWarmer(terminal, config, opening))
  if (dryRun) {
    const plan = await warmer.planWarm(order)
    terminal.show({ ...plan, by: warmer.by }, planText(plan))
    return 0
  }
  const plan = await warmer.startWarm(order)
  terminal.remark(planText(plan))
  const stopped = interruption().then(() => warmer.stopWarm())
  const ended = await Promise.race([stopped, finished(warmer, terminal)])
  terminal.show({ ...ended, by: warmer.by }, reportText(ended, warmer.by))
  return ended.state === 'done' && ended.failed.length === 0 ? 0 : 1
}

const lookEveryMs = 300
const tellEveryMs = 2_000

const finished = async (warmer: Warmer, { remark }: Terminal): Promise<WarmReport> => {
  let toldAt = performance.now()
  for (;;) {
    await pause(lookEveryMs)
    const report = await warmer.warmState()
    if (report.state === 'done' || report.state === 'stopped') return report
    if (report.state === 'idle')
      throw new InputError(
        `the gateway at ${warmer.by} has restarted and no longer warms: run the command again`,
      )
    if (performance.now() - toldAt > tellEveryMs) {
      remark(`${counted(report.loaded)} of ${counted(report.toLoad)} cells are loaded.`)
      toldAt = performance.now()
    }
  }
}

const requestTimeoutMs = 60_000

/** Undefined where no gateway answers. @throws InputError for one that refuses, and for none where `--gateway` says */
const gatewayAt = async (asked: AskedGateway): Promise<Warmer | undefined> => {
  const by = asked.opsUrl
  const ask = (method: 'GET' | 'POST' | 'DELETE', body?: object) =>
    queryGateway(
      { ...asked, path: '/cache/warm', method, body, timeoutMs: requestTimeoutMs },
      async () => warmReport,
    )
  const reportOf = async (...request: Parameters<typeof ask>): Promise<WarmReport> => {
    const found = await ask(...request)
    if ('report' in found) return found.report
    throw new InputError(`the gateway at ${by} answers no more: ${found.unavailable}`)
  }
  if ('unavailable' in (await ask('GET'))) return undefined
  return {
    by,
    planWarm: ({ of: scope, top }) => reportOf('POST', { scope, top, dryRun: true }),
    startWarm: ({ of: scope, top }) => reportOf('POST', { scope, top, dryRun: false }),
    warmState: () => reportOf('GET'),
    stopWarm: () => reportOf('DELETE'),
  }
}

const ownWarmer = async (
  { clock, remark }: Terminal,
  config: Config,
  opening: AsyncDisposableStack,
): Promise<Warmer> => {
  const catalogue = { current: await readCatalogue(config.catalogue.path) }
  const store = opening.use(await openCommandStore(config, clock))
  // Nothing but what was ordered.
  const quiet: Config = { ...config, cache: { ...config.cache, prefetchPlaces: 0 } }
  let instances: number | undefined
  const upstream = openUpstream(quiet, {
    store,
    catalogue,
    clock,
    instances: () => instances,
    settings: () => fleetHashOf(config),
    report: () => '',
    observer: {
      ...silentObserver,
      onHeartbeat: fleet => {
        instances = fleet.instances
      },
      runsUnknown: reason => remark(`Model runs are not known: ${reason}.`),
      storeAway: reason => remark(`The budget is counted only here: ${reason}.`),
    },
  })
  opening.defer(upstream.close)
  await upstream.start().catch(cause => {
    throw new InputError(`the cache can't be warmed: ${messageOf(cause)}`, { cause })
  })
  const warm = createCacheWarm(quiet, { timelines: upstream.timelines, catalogue, clock })
  opening.defer(async () => void (await warm.stopWarm()))
  return { ...warm, by: 'this command, because no gateway answered' }
}

const planText = ({ target, cells, fresh, toLoad, weight }: WarmReport): string =>
  `${printable(target)}: ${counted(cells)} cells, ${counted(fresh)} are fresh, ${counted(toLoad)} are to be loaded and weigh ${counted(weight)}.`

const reportText = (report: WarmReport, by: string): string => {
  const { state, target, loaded, fresh, failed, stoppedBy, reason } = report
  const facts = factsText([
    ['loaded', counted(loaded)],
    ['fresh already', counted(fresh)],
    ['failed', counted(failed.reduce((sum, { cells }) => sum + cells, 0))],
    ...failed.map(({ code, message, cells }) => ['', `${counted(cells)}: ${code}, ${message}`] as const),
    ['stopped', stoppedBy === null ? undefined : `by the ${stoppedBy}: ${reason ?? ''}`],
    ['by', by],
  ])
  return `${state === 'done' ? 'Warmed' : 'Stopped before all was loaded'}: ${printable(target)}.\n${facts}`
}
