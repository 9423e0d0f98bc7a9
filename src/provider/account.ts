// One account at a provider: its base URL and key, and what belongs to them: connections, requests, circuit, budget, model runs
// and the operators' way to it. A second upstream is a second one of these, and nothing of limits or circuits is shared between
// them. The one place that chooses the provider's protocol.

import { hash } from 'node:crypto'
import { createCalendar } from '../common/calendar.ts'
import type { Clock } from '../common/clock.ts'
import type { Config } from '../config/schema.ts'
import type { SpendingStore } from '../stores/spending-store.ts'
import { type Horizon, horizonFor, longestUseMs } from '../weather/horizon.ts'
import { type BreakerState, createBreaker } from './breaker.ts'
import { Budget, type BudgetSettings } from './budget.ts'
import { Provider, type ProviderObserver } from './client.ts'
import type { ProviderErrorCode } from './errors.ts'
import { createOpenMeteo } from './open-meteo/protocol.ts'
import { createPassthrough } from './passthrough.ts'
import type { ProviderProtocol } from './protocol.ts'
import { createProviderCall, type ProviderCall, type TracedCall } from './provider-call.ts'
import { createRunWatch, type RunObserver } from './runs.ts'
import type { BudgetObserver, LedgerParts } from './spending-ledger.ts'

/** When the provider last answered, ms since the epoch, and how its last failed request failed; null while there was none. */
type LastRequests = {
  successAt: number | null
  failure: { readonly at: number; readonly code: string; readonly message: string } | null
}

export type AccountObserver = ProviderObserver &
  RunObserver &
  BudgetObserver & { breaker(state: BreakerState): void }

export type AccountParts = {
  readonly store: SpendingStore
  readonly clock: Clock
  /** The largest possible number of instances; undefined while it is unknown. */
  readonly instances: () => number | undefined
  /** Those that asked for weather of late, at most two. */
  readonly recentConsumers: () => readonly string[]
  readonly observer: AccountObserver
  /** Undefined where requests are not traced. */
  readonly tracing: TracedCall | undefined
  /** In place of the provider's HTTP or protocol, for tools that send nothing. */
  readonly stubs: AccountStubs | undefined
  /** How long a cold cell waits for the budget's next window, in ms; 0 where another upstream may have room now. */
  readonly queueForMs: number
  /** Whether another upstream is behind this one. */
  readonly isBacked?: boolean | undefined
  /** The longest time for a call for weather; undefined for that of the settings. */
  readonly longestCallMs?: number | undefined
}

export type Account = ReturnType<typeof openAccount>

export type AccountStubs = {
  readonly call?: ProviderCall
  readonly protocolOf?: typeof protocolIn
}

/** How far ahead a gateway of this configuration requests weather. */
export const horizonOf = ({ cache, weather }: Config): Horizon =>
  horizonFor(longestUseMs(cache), weather.hourlyHours)

/** The protocols by their names in the setting `provider.protocol`. */
const protocols = { 'open-meteo': createOpenMeteo } as const

/** The protocol of the provider of this configuration. */
export const protocolIn = (config: Config): ProviderProtocol =>
  protocols[config.provider.protocol]({
    horizon: horizonOf(config),
    calendar: createCalendar(config.quota.timeZone),
  })

/** The budget that gateways of this configuration share. */
export const budgetSettingsIn = ({
  provider: { baseUrl, apiKey, budget, totalTimeoutMs },
  redis,
  server,
}: Config): BudgetSettings => ({
  provider: hash('sha256', `${baseUrl} ${apiKey}`).slice(0, 12),
  limits: { minute: budget.perMinute, hour: budget.perHour, day: budget.perDay },
  reserve: budget.reserve,
  keyShare: budget.keyShare,
  outageShare: redis.url === null && !server.reusePort ? null : budget.outageShare,
  longestRequestMs: totalTimeoutMs,
})

// Nothing was sent, so the provider did not fail.
const ofNoRequest: ReadonlySet<string> = new Set<ProviderErrorCode | 'left' | 'internal'>([
  'left',
  'internal',
  'provider_not_sent',
  'provider_circuit_open',
])

/** The budget of this configuration's account. */
export const openBudget = (
  config: Config,
  { instances, ...parts }: LedgerParts & Pick<AccountParts, 'instances'>,
  {
    weightPerCell,
    weightOfFailure,
  }: Pick<ProviderProtocol, 'weightPerCell' | 'weightOfFailure'> = protocolIn(config),
): Budget =>
  new Budget({ ...budgetSettingsIn(config), unit: weightPerCell, weightOfFailure, instances }, parts)

export const openAccount = (config: Config, parts: AccountParts) => {
  const { store, clock, instances, recentConsumers, observer: given, tracing, stubs, queueForMs } = parts
  const { totalTimeoutMs } = config.provider
  const lastRequests: LastRequests = { successAt: null, failure: null }
  const observer: AccountObserver = {
    ...given,
    request: (outcome, points, ms, message) => {
      if (outcome === 'ok') lastRequests.successAt = clock.now()
      else if (!ofNoRequest.has(outcome))
        lastRequests.failure = { at: clock.now(), code: outcome, message: message ?? '' }
      given.request(outcome, points, ms, message)
    },
  }
  // How far a request reaches is live.
  const protocolOf = stubs?.protocolOf ?? protocolIn
  let fetching = protocolOf(config)
  const protocol: ProviderProtocol = { ...fetching, requestFor: cells => fetching.requestFor(cells) }
  const { provider: name } = budgetSettingsIn(config)
  const plainCall =
    stubs?.call ??
    createProviderCall(
      { ...config.provider, totalTimeoutMs: Math.min(totalTimeoutMs, parts.longestCallMs ?? totalTimeoutMs) },
      { protocol, clock },
    )
  const call = tracing?.call(plainCall, config.provider.baseUrl) ?? plainCall
  const breaker = createBreaker(
    { ...config.provider.breaker, isBacked: parts.isBacked },
    clock,
    observer.breaker,
  )
  const budget = openBudget(config, { store, clock, instances, observer }, protocol)
  const provider = new Provider(
    { ...config.provider, queueForMs },
    { call, protocol, breaker, budget, recentConsumers, clock, observer },
  )
  const passthrough = createPassthrough(() => totalTimeoutMs, {
    call,
    inTurn: provider.inTurn,
    protocol,
    breaker,
    budget,
    clock,
    observer,
  })
  const runs =
    config.cache.freshness === 'run'
      ? createRunWatch(config.provider.runs, { call, protocol, clock, observer })
      : undefined

  return {
    /** A short hash of base URL and key: gateways with the same one share the budget. */
    name,
    protocol,
    provider,
    budget,
    breaker,
    passthrough,
    lastRequests: lastRequests as Readonly<LastRequests>,
    /** Undefined when `cache.freshness` is `age`. */
    runs,
    /** The budget from now on. */
    applyBudget: (next: Config): void => {
      budget.apply(budgetSettingsIn(next))
      provider.budgetChanged()
    },
    /** How far ahead later requests reach, from now on. */
    applyHorizon: (next: Config): void => {
      fetching = protocolOf(next)
    },
    /** Ends what is under way. */
    close: async (): Promise<void> => {
      runs?.close()
      const ended = provider.close()
      await call.close()
      await ended
      await budget.end()
    },
  }
}
