// The observers of the parts: each turns events into metrics and log lines. Also the details of /readyz. One function per
// part; decides nothing.

import type { ApiParts } from '../api/api.ts'
import type { Access } from '../api/request-state.ts'
import type { CatalogueChange } from '../catalogue/live-catalogue.ts'
import { isoOf } from '../common/calendar.ts'
import { AbohawaError, codeOf, messageOf } from '../common/errors.ts'
import { redactedUrls } from '../common/redacted-url.ts'
import type { MeterObserver } from '../keys/meter.ts'
import type { MeterState } from '../keys/outage.ts'
import type { UsageDetail } from '../keys/usage-detail.ts'
import type { RefusalObserver } from '../operate/listener/refusal.ts'
import type { Breaker } from '../provider/breaker.ts'
import type { BudgetState } from '../provider/budget.ts'
import type { ModelRun } from '../provider/protocol.ts'
import type { RecordObserver } from '../stores/records.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Outages } from '../telemetry/outages.ts'
import type { Throttle } from '../telemetry/throttle.ts'
import type { FleetSettingsObserver } from './fleet-settings.ts'
import type { ReloadObserver } from './reload.ts'

/**
 * @param onWriteFault receives why the store can not be written, and null once it can
 */
export const observeRecords = (
  metrics: Metrics,
  log: Log,
  seldom: Throttle,
  onWriteFault: (reason: string | null) => void,
): RecordObserver => ({
  recordRefused: refused => {
    metrics.recordRefused(refused.record)
    seldom(`record ${refused.record}`, left =>
      log.warn({ ...refused, ...left }, 'record of the store refused'),
    )
  },
  reserveUsed: reason => {
    metrics.reserveUsed(true)
    onWriteFault(reason)
    log.error(
      { reason, next: 'make room, and do not stop the gateway before; docs/runbook.md#abohawastorefull' },
      'the store can not be written, counts are kept in the reserve',
    )
  },
  reserveWrittenBack: counts => {
    metrics.reserveUsed(false)
    onWriteFault(null)
    log.info({ counts }, 'counts of the reserve are in the store')
  },
  reserveMissing: reason =>
    log.warn(
      { reason },
      'the store has no reserve: with a full disk, counts are lost when the gateway stops',
    ),
})

// Of lost counts; one more line gives their sum.
const maxLinesAtStop = 1_000

export const observeMeter = (metrics: Metrics, log: Log, outages: Outages): MeterObserver => ({
  storeAway: reason => outages.storeAway('quota', reason),
  storeBack: reconciled => outages.storeBack('quota', { reconciled }),
  unitsLost: lost => {
    for (const each of lost.slice(0, maxLinesAtStop))
      log.error(each, 'units of a key were admitted and not counted before the stop')
    const units = lost.reduce((sum, each) => sum + each.units, 0)
    log.error({ units, counts: lost.length }, 'units were admitted and not counted before the stop')
  },
  nearLimit: ({ percent, ...event }) => {
    metrics.nearLimit(String(percent))
    log.warn(
      { ...event, percent },
      percent === 100 ? 'quota of a key is exhausted' : 'quota of a key runs low',
    )
  },
})

export const observeCatalogue = (metrics: Metrics, log: Log) => ({
  onChange: (change: CatalogueChange) => {
    metrics.catalogueLoaded('taken')
    log.info(change, 'catalogue swapped')
  },
  onFault: (fault: Error) => {
    metrics.catalogueLoaded('refused')
    log.error({ reason: fault.message }, 'catalogue refused, the former one stays in force')
  },
})

const tierPath = 'quota.tiers.'

export const observeReload = (metrics: Metrics, log: Log): ReloadObserver => ({
  onApplied: changes => {
    const changed = changes.map(
      ({ path, before = 'none', after = 'none' }) => `${path}: ${before} → ${after}`,
    )
    log.info(
      { changes: changed },
      changed.length > 0 ? 'configuration applied' : 'configuration applied, none is refused any more',
    )
  },
  onRestartNeeded: paths => {
    if (paths.length === 0) return log.info('no setting needs a restart any more')
    log.warn({ settings: paths }, `needs a restart: ${paths.join(', ')}`)
    // The one change for which a restart makes it worse.
    const tiers = paths.filter(path => path.startsWith(tierPath)).map(path => path.slice(tierPath.length))
    if (tiers.length > 0)
      log.warn(
        { tiers, next: 'put them back, or move their keys first: abohawa keys set ID --tier NAME' },
        `tiers are gone from the configuration: ${tiers.join(', ')}; each keeps its limit until the next start, and keys of it then get 500`,
      )
  },
  onRefused: reason => log.error({ reason }, 'configuration refused, the former one stays in effect'),
  onOutcome: metrics.configReloaded,
})

export const observeFleetSettings = (log: Log): FleetSettingsObserver => ({
  onDiffer: variants =>
    log.warn(
      { variants, next: 'abohawa status says which instances differ; docs/runbook.md#abohawaconfigdiffers' },
      'the instances of the fleet run different settings',
    ),
  onAgree: () => log.info('the instances of the fleet run the same settings again'),
})

/** The connection for messages of other gateways fails, or holds again. */
export const observeMessages = (log: Log, fault: string | null): void => {
  if (fault === null) log.info('messages of other gateways arrive again')
  else
    log.warn(
      { reason: fault, next: 'abohawa doctor; docs/operating/redis.md#without-messages' },
      'messages of other gateways do not arrive, their counts are read every second',
    )
}

/**
 * The store line of /readyz, of a store that answers. @param writeFault why it can not be written
 * @param fileFault why its file is not the one that is open
 * @param messageFault why messages of other gateways do not arrive
 */
export const storeDetail = (
  kind: string,
  faults: { writeFault: string | null; fileFault: string | undefined; messageFault: string | null },
): string => {
  const { writeFault, fileFault, messageFault } = faults
  return [
    kind,
    ...(writeFault === null ? [] : [`can not be written, counts are kept in its reserve: ${writeFault}`]),
    ...(fileFault === undefined ? [] : [fileFault]),
    ...(messageFault === null ? [] : [`without messages of other gateways: ${messageFault}`]),
  ].join(', ')
}

/** The configuration line of /readyz. */
export const configDetail = (
  fault: string | undefined,
  restartNeeded: readonly string[],
  variants: number,
): string =>
  [
    fault === undefined ? 'in effect' : `newer one refused: ${fault.split('\n')[0]}`,
    ...(restartNeeded.length > 0 ? [`needs a restart: ${restartNeeded.join(', ')}`] : []),
    ...(variants > 1 ? [`the fleet runs ${variants} different ones`] : []),
  ].join('; ')

export const observeApi = (
  metrics: Metrics,
  log: Log,
  accessLog: ((access: Access) => void) | undefined,
  usageDetail: UsageDetail,
  { seldom, often, outages }: { seldom: Throttle; often: Throttle; outages: Outages },
): ApiParts['observer'] => ({
  admission: metrics.admission,
  connectionClosed: (reason, client) => {
    metrics.connectionClosed(reason)
    if (reason === 'address')
      seldom('connections of an address', left =>
        log.warn(
          { client, ...left },
          'an address has too many connections without a good key, and gets no more',
        ),
      )
  },
  responded: metrics.requestAnswered,
  used: usageDetail.count,
  access: accessLog,
  writerFellBack: reason =>
    log.warn({ reason }, 'responses are written header by header: this Node is not one that is known'),
  failed: (error, requestId) => {
    if (outages.answered500(error)) return
    const fields =
      error instanceof AbohawaError ? { code: error.code, reason: error.message } : { err: unforeseen(error) }
    often(`failed ${codeOf(error)}`, left => log.error({ requestId, ...fields, ...left }, 'failed'))
  },
})

export const observeOps = (metrics: Metrics, log: Log, seldom: Throttle): RefusalObserver => ({
  refused: (reason, from) => {
    metrics.opsRefused(reason)
    if (reason === 'token_wrong')
      seldom('ops token', left =>
        log.warn({ from, ...left }, 'a request to the ops listener had a wrong token'),
      )
  },
})

// Its message and stack alone: errors of libraries carry what they were called with, a URL or a password too.
const unforeseen = (error: unknown): object => {
  const message = messageOf(error)
  if (!(error instanceof Error)) return { message }
  // Of the same kind, whose name the log takes.
  const bare: object = Object.create(Object.getPrototypeOf(error))
  return Object.assign(bare, { message, stack: redactedUrls(error.stack ?? '') })
}

/**
 * The quota line of /readyz.
 * @param isUp whether the store answers now: counting notices it with its next batch
 * @param reason why it can't count although it answers
 */
export const quotaDetail = (state: MeterState, isUp: boolean, offsetMs: number, reason?: string): string => {
  const away = `counted locally${isUp && reason !== undefined ? `: ${reason}` : ', the store is away'}`
  const words = isUp
    ? { counting: 'counted in the store', away, reconciling: 'reconciling with the store' }
    : { counting: 'counted locally from the next request on, the store is away', away, reconciling: away }
  const skew = Math.abs(offsetMs) >= 1000 ? `, clock here is ${Math.round(-offsetMs / 1000)} s off` : ''
  return `${words[state]}${skew}`
}

/** How the provider is doing and what is left to spend, in one line of /readyz. */
export const providerDetail = (
  { state, openUntil }: ReturnType<Breaker['state']>,
  outage: string | null,
  { windows, closedUntil, shared }: BudgetState,
  stretch: number,
): string => {
  const circuit = `circuit ${state}${openUntil === null ? '' : ` until ${isoOf(openUntil)}`}`
  const failing = outage === null ? [] : [`outage (${outage})`]
  const limited = closedUntil === null ? [] : [`limited until ${isoOf(closedUntil)}`]
  const spent = windows.map(({ name, used, limit }) => `${Math.round(used)} of ${limit} this ${name}`)
  const stretched = stretch >= 1.05 ? [`weather stays fresh ${stretch.toFixed(1)} times longer`] : []
  return [
    circuit,
    ...failing,
    ...limited,
    ...spent,
    ...stretched,
    ...(shared ? [] : ['budget not shared']),
  ].join(', ')
}

export const runDetail = (run: ModelRun | undefined): string =>
  run
    ? `${isoOf(run.initialisedAt)}, available ${isoOf(run.availableAt)}`
    : 'not known, freshness goes by age'
