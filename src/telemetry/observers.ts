// Turns what happens in the parts of a gateway into metrics, log lines and outages: a set of functions for each part.

import type { UpstreamObserver } from '../cache/upstream.ts'
import type { LiveCatalogueOptions } from '../catalogue/live-catalogue.ts'
import { isoOrNull } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import { AbohawaError, codeOf, messageOf } from '../common/errors.ts'
import { redactedUrls } from '../common/redacted-url.ts'
import type { ReloadObserver } from '../config/reload.ts'
import type { MeterObserver } from '../keys/meter.ts'
import type { StoreObserver } from '../stores/open-store.ts'
import type { RecordObserver } from '../stores/records.ts'
import { countCells } from '../weather/cell-set.ts'
import {
  accountLines,
  createCircuitLines,
  createFallbackObserver,
  createOddValues,
} from './fallback-observer.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Outages } from './outages.ts'
import { createThrottle } from './throttle.ts'

// Each names a key whose count was lost: more than a handful, and never a flood.
const linesOfKeysPerMinute = 60
// Of lost counts; one more line gives their sum.
const maxLinesAtStop = 1_000
const tierPath = 'quota.tiers.'

type Context = {
  readonly metrics: Metrics
  readonly log: Log
  readonly outages: Outages
  /** A warning once a minute for each subject. */
  warnOncePerMinute(subject: string, fields: object, sentence: string): void
}

/** The functions that each part of a gateway calls when something happens in it. */
export const createObservers = (metrics: Metrics, log: Log, outages: Outages, clock: Clock) => {
  const oncePerMinute = createThrottle(clock)
  const context: Context = {
    ...{ metrics, log, outages },
    warnOncePerMinute: (subject, fields, sentence) =>
      oncePerMinute(subject, left => log.warn({ ...fields, ...left }, sentence)),
  }
  return {
    ...storeObserver(context),
    meter: meterObserver(context),
    catalogue: catalogueObserver(context),
    reload: reloadObserver(context),
    api: apiObserver(context, createThrottle(clock, linesOfKeysPerMinute)),
    ops: opsObserver(context),
    upstream: upstreamObserver(context),
  }
}

const storeObserver = ({ metrics, log, outages, warnOncePerMinute }: Context) => {
  let messagesFault: string | null = null

  const store: StoreObserver & RecordObserver = {
    redisAway: reason => outages.storeAway('redis', reason),
    redisBack: () => outages.storeBack('redis'),
    redisMessages: fault => {
      messagesFault = fault
      if (fault === null) return log.info('gateway messages restored')
      log.warn(
        { reason: fault, next: 'abohawa doctor; docs/operating/redis.md#without-messages' },
        'gateway messages lost, polling counts instead',
      )
    },
    redisRequest: (outcome, ms) => metrics.redisRequest(outcome, '', ms / 1000),
    storeExposed: path =>
      log.warn(
        { path, next: 'chmod 600 the file, its -wal and its -shm' },
        'store file readable by other users',
      ),
    recordRefused: refused => {
      metrics.recordRefused(refused.record)
      warnOncePerMinute(`record ${refused.record}`, refused, 'store record rejected')
    },
  }
  return { store, messagesFault: () => messagesFault }
}

const meterObserver = ({ metrics, log, outages }: Context): MeterObserver => ({
  storeAway: reason => outages.storeAway('quota', reason),
  storeBack: reconciled => outages.storeBack('quota', { reconciled }),
  unitsLost: lost => {
    for (const each of lost.slice(0, maxLinesAtStop)) log.error(each, 'units of a key not counted')
    const units = lost.reduce((sum, each) => sum + each.units, 0)
    log.error({ units, counts: lost.length }, 'units not counted before the stop')
  },
  nearLimit: ({ percent, ...event }) => {
    metrics.nearLimit(String(percent))
    log.warn({ ...event, percent }, percent === 100 ? 'key quota exhausted' : 'key quota running low')
  },
})

const catalogueObserver = ({
  metrics,
  log,
}: Context): Pick<LiveCatalogueOptions, 'onChange' | 'onFault'> => ({
  onChange: change => {
    metrics.catalogueLoaded('taken')
    log.info(change, 'catalogue reloaded')
  },
  onFault: fault => {
    metrics.catalogueLoaded('refused')
    log.error({ reason: fault.message }, 'catalogue rejected, keeping the previous one')
  },
})

const reloadObserver = ({ metrics, log }: Context): ReloadObserver => ({
  onApplied: changed => {
    const changes = changed.map(
      ({ path, before = 'none', after = 'none' }) => `${path}: ${before} → ${after}`,
    )
    log.info({ changes }, changes.length > 0 ? 'configuration reloaded' : 'configuration valid again')
  },
  onRestartNeeded: paths => {
    if (paths.length === 0) return log.info('restart no longer needed')
    log.warn({ settings: paths }, 'settings need a restart')
    // Here a restart makes it worse.
    const tiers = paths.filter(path => path.startsWith(tierPath)).map(path => path.slice(tierPath.length))
    if (tiers.length > 0)
      log.warn(
        {
          tiers,
          next: 'put them back, or move their keys (abohawa keys set ID --tier NAME): after a restart these keys get 500',
        },
        'tiers removed from the configuration',
      )
  },
  onRefused: reason =>
    log.error(
      { reason, next: 'abohawa config check says what is wrong' },
      'configuration rejected, keeping the previous one',
    ),
  onOutcome: metrics.configReloaded,
})

const apiObserver = (
  { metrics, log, outages, warnOncePerMinute }: Context,
  throttle: ReturnType<typeof createThrottle>,
) => ({
  admission: metrics.admission,
  rateLimited: metrics.rateLimited,
  connectionClosed: (reason: string, client?: string): void => {
    metrics.connectionClosed(reason)
    if (reason !== 'address') return
    const sentence = 'too many connections from an address'
    warnOncePerMinute('connections of an address', { client }, sentence)
  },
  responded: metrics.requestAnswered,
  respondedToTest: (status: number): void => metrics.requestOfTestAnswered(String(status)),
  writerFellBack: (reason: string): void =>
    log.warn({ reason }, 'unknown Node version, writing responses more slowly'),
  failed: (error: unknown, requestId: string): void => {
    if (outages.answered500(error)) return
    const fields =
      error instanceof AbohawaError ? { code: error.code, reason: error.message } : { err: unforeseen(error) }
    throttle(`failed ${codeOf(error)}`, left => log.error({ requestId, ...fields, ...left }, 'failed'))
  },
})

const opsObserver = ({ metrics, log, warnOncePerMinute }: Context) => ({
  unloadable: (cause: unknown): void => log.error({ err: unforeseen(cause) }, 'listener did not load'),
  refused: (reason: string, from?: string): void => {
    metrics.opsRefused(reason)
    if (reason === 'token_wrong') warnOncePerMinute('ops token', { from }, 'ops request with a wrong token')
  },
})

const upstreamObserver = ({ metrics, log, outages, warnOncePerMinute }: Context) => {
  const oddValues = createOddValues(metrics.upstreams, log)
  const [firstName] = metrics.upstreams.names
  const circuit = createCircuitLines(log, firstName)
  const lines = accountLines(log, firstName)
  const upstream: Omit<UpstreamObserver, 'loaded'> = {
    ...lines,
    onRead: metrics.cacheRead,
    onCollapsed: metrics.cacheCollapsed,
    onLoadFailure: failure => {
      const { id: cell, error, purpose } = failure
      const isOfOutage = outages.loadFailed(failure)
      // The reason of a failed cold load is logged with its 500.
      if (purpose === 'cold') return
      metrics.refreshFailed(purpose)
      if (isOfOutage) return
      const code = codeOf(error)
      const fields = { code, reason: messageOf(error), cell, purpose }
      warnOncePerMinute(`refresh ${code}`, fields, 'refresh failed, keeping the cached weather')
    },
    onShortfall: (met, error) => {
      if (met === 'failed') metrics.cacheReadFailed()
      outages.shortfall(met, error)
    },
    onSharedTierFailure: (step, error) => {
      metrics.sharedTierFailed(step)
      outages.sharedTierFailed(step)
      // An outage of the store has its own log lines; single failures are only counted.
      log.debug({ step, reason: messageOf(error) }, 'shared cache tier failed')
    },
    onEntryRefused: (reason, key) => {
      metrics.entryRefused(reason)
      const sentence = 'shared cache entry rejected'
      warnOncePerMinute(`entry ${reason}`, { reason, key }, sentence)
    },
    onHeartbeat: metrics.heartbeat,
    onPurge: (kind, scope) => {
      metrics.purged(kind)
      const shown = 'cells' in scope ? { ...scope, cells: countCells(scope.cells) } : scope
      log.info({ kind, scope: shown }, 'cache purged')
    },
    onPurgesMissed: () => log.warn('purges missed, all cached weather is stale'),
    request: (outcome, points, ms, reason) => {
      metrics.providerRequest(outcome, points, ms)
      if (reason === undefined) return
      circuit.failed(outcome, reason)
      // Requests of operators load no points for the cache.
      if (points > 0) outages.requestFailed({ code: outcome, reason })
    },
    refused: metrics.providerAnswerRefused,
    odd: oddValues(firstName),
    onShareUsedUp: metrics.keyShareUsedUp,
    storeAway: reason => outages.storeAway('budget', reason),
    storeBack: () => outages.storeBack('budget'),
    reopened: closedUntil => {
      if (closedUntil !== null) metrics.budgetReopened()
      lines.reopened(closedUntil)
    },
    breaker: state => {
      log.debug({ state }, 'provider circuit changed')
      // Where there is one upstream, the lines of the outage say it.
      if (firstName !== undefined) circuit.breaker(state)
    },
    onLoaded: name => {
      outages.loaded()
      if (name !== undefined) metrics.upstreams.loaded(name)
    },
    onNextUpstream: next => {
      if (next.upstream) {
        const { name } = next.upstream
        const sentence = 'upstream switched'
        return log[name === firstName ? 'info' : 'warn']({ upstream: name }, sentence)
      }
      const { code, until } = next
      log.warn({ code, until: isoOrNull(until) }, 'no upstream available')
    },
    ofFallback: createFallbackObserver(metrics.upstreams, log, outages, oddValues),
  }
  return upstream
}

// Only its message and stack: errors of libraries carry their arguments, such as a URL or a password.
const unforeseen = (error: unknown): object => {
  const message = messageOf(error)
  if (!(error instanceof Error)) return { message }
  // Of the same kind, whose name the log takes.
  const bare: object = Object.create(Object.getPrototypeOf(error))
  return Object.assign(bare, { message, stack: redactedUrls(error.stack ?? '') })
}
