// The metrics, outages and observers of a gateway, and the consumers' status page.

import type { Upstream } from '../cache/upstream.ts'
import type { Calendar } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Config } from '../config/schema.ts'
import { upstreamNamesIn } from '../config/upstreams.ts'
import { createFleetOutages } from '../operate/fleet-outages.ts'
import type { Store } from '../stores/store.ts'
import type { Log } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createObservers } from '../telemetry/observers.ts'
import { type OutageParts, openOutages } from '../telemetry/outages.ts'
import { openServiceDays } from '../telemetry/service-days.ts'
import { createServiceStatus } from '../telemetry/service-status.ts'

/** Takes a part that was opened, to be closed before those opened earlier. */
export type Opened = <Part extends { close(): unknown }>(part: Part) => Part

export type Telemetry = ReturnType<typeof openTelemetry>

export const openTelemetry = (
  config: Config,
  { clock, log, opened }: { readonly clock: Clock; readonly log: Log; readonly opened: Opened },
  provider: Pick<OutageParts, 'room' | 'onProvider'>,
) => {
  const metrics = createMetrics({
    clock,
    store: config.redis.url === null ? 'embedded' : 'redis',
    upstreams: config.provider.fallbacks.length > 0 ? upstreamNamesIn(config) : [],
  })
  const outages = opened(openOutages(log, clock, { staleReads: metrics.staleReads, ...provider }))
  return { metrics, outages, observers: createObservers(metrics, log, outages, clock) }
}

export const openStatusPage = ({
  store,
  upstream: { timelines, accounts, account },
  telemetry: { metrics, outages },
  calendar,
  clock,
  opened,
}: {
  readonly store: Store
  readonly upstream: Upstream
  readonly telemetry: Telemetry
  readonly calendar: Calendar
  readonly clock: Clock
  readonly opened: Opened
}) =>
  createServiceStatus({
    timelines,
    run: () => (accounts.next().upstream?.account ?? account).runs?.newestRead(),
    outages: createFleetOutages(store, timelines.instance, outages),
    days: opened(
      openServiceDays({
        ...{ store, calendar, clock },
        instance: timelines.instance,
        answered: metrics.answered,
        outages: outages.open,
      }),
    ),
    clock,
  })
