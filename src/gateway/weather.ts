// The upstreams of a gateway with their cache, and what is counted and reported about them.

import { openUpstream } from '../cache/upstream.ts'
import type { LiveCatalogue } from '../catalogue/live-catalogue.ts'
import type { Clock } from '../common/clock.ts'
import type { Reload } from '../config/reload.ts'
import type { Config } from '../config/schema.ts'
import { createLoadsByKey } from '../keys/loads-by-key.ts'
import type { Metering } from '../keys/metering.ts'
import type { UsageDetail } from '../keys/usage-detail.ts'
import { createSelfReport, reportText } from '../operate/instance-report.ts'
import { createForecast } from '../provider/forecast.ts'
import type { Store } from '../stores/store.ts'
import { watchBudget } from '../telemetry/budget-watch.ts'
import { createFleetSettings } from '../telemetry/fleet-settings.ts'
import { createHistory } from '../telemetry/history.ts'
import type { Log } from '../telemetry/log.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import type { Opened, Telemetry } from './telemetry.ts'

type WeatherParts = {
  readonly store: Store
  readonly catalogue: LiveCatalogue
  readonly metering: Metering
  readonly usageDetail: UsageDetail
  readonly reload: Reload
  readonly telemetry: Telemetry
  readonly tracing: Tracing | undefined
  readonly phase: Parameters<typeof createSelfReport>[0]['phase']
  readonly clock: Clock
  readonly log: Log
  readonly opened: Opened
}

export const openWeather = (config: Config, parts: WeatherParts) => {
  const { store, catalogue, metering, usageDetail, reload, tracing, phase, clock, log, opened } = parts
  const { metrics, outages, observers } = parts.telemetry
  const forecast = createForecast()
  const recordSpending = () => forecast.record(account.budget.state().windows, clock.now())
  const history = opened(createHistory(metrics.totals, clock, recordSpending))
  const self = createSelfReport({
    circuit: () => account.breaker.state().state,
    ...{ phase, reload, outages, history, clock },
  })
  const fleetSettings = createFleetSettings(clock, log)
  const loads = createLoadsByKey({
    now: clock.now,
    weightPerCell: () => account.protocol.weightPerCell,
    limitOfDay: () => account.budget.state().windows.find(({ name }) => name === 'day')?.limit,
    countLoad: usageDetail.countLoad,
  })
  const upstream = opened(
    openUpstream(config, {
      ...{ store, catalogue, clock, tracing, instances: metering.instances, settings: reload.hash },
      report: () => reportText(self),
      observer: {
        ...observers.upstream,
        loaded: loads.record,
        onHeartbeat: fleet => {
          metrics.heartbeat(fleet)
          metering.onHeartbeat(fleet.instances)
          fleetSettings.onHeartbeat(fleet.variants)
        },
      },
    }),
  )
  const { account, accounts } = upstream
  for (const { name, account: each } of accounts.all) {
    const lines = name === undefined ? log : log.child({ upstream: name })
    opened(watchBudget(each.budget.state, clock.now, lines))
  }
  return { upstream, loads, forecast, history, self, fleetSettings }
}
