// The accounts at providers. Each has its own connections, requests, circuit, budget, model runs and pass-through; upstreams share none
// of them. They are opened, changed and closed together, and a load goes to one.

import type { Clock } from '../common/clock.ts'
import type { Config } from '../config/schema.ts'
import { type UpstreamConfig, upstreamsIn } from '../config/upstreams.ts'
import type { SpendingStore } from '../stores/spending-store.ts'
import { budgetSettingsIn, openBudget, protocolIn } from './account.ts'
import type { BatchObserver } from './batch.ts'
import { type BreakerState, createBreaker } from './breaker.ts'
import { Provider } from './client.ts'
import type { ProviderErrorCode } from './errors.ts'
import { createFailover } from './failover.ts'
import { createPassthrough } from './passthrough.ts'
import type { ModelRun, ProviderProtocol } from './protocol.ts'
import { createProviderCall, type ProviderCall, type TracedCall } from './provider-call.ts'
import { createRunWatch, type RunObserver } from './runs.ts'
import type { BudgetObserver } from './spending-ledger.ts'

/** When the provider last answered, ms since the epoch, and how its last failed request failed; null while there was none. */
type LastRequests = {
  successAt: number | null
  failure: { readonly at: number; readonly code: string; readonly message: string } | null
}

export type AccountObserver = BatchObserver &
  RunObserver &
  BudgetObserver & { breaker(state: BreakerState): void }

export type AccountParts = {
  readonly store: SpendingStore
  readonly clock: Clock
  /** The largest possible number of instances; undefined while it is unknown. */
  readonly instances: () => number | undefined
  /** The consumers that asked for weather last, at most two. */
  readonly recentConsumers: () => readonly string[]
  readonly observer: AccountObserver
  /** Undefined where requests are not traced. */
  readonly tracing: TracedCall | undefined
  /** Replaces the provider's HTTP or protocol, for tools that send nothing. */
  readonly stubs: AccountStubs | undefined
  /** How long a cold cell waits for the budget's next window, in ms; 0 where another upstream may have room now. */
  readonly queueForMs: number
  /** Whether another upstream comes after this one. */
  readonly hasFallback?: boolean | undefined
  /** The longest time for a call for weather, if it is shorter than the setting. */
  readonly longestCallMs?: number | undefined
}

type Account = ReturnType<typeof openAccount>

export type AccountStubs = {
  readonly call?: ProviderCall
  readonly protocolOf?: typeof protocolIn
}

// Nothing was sent, so the provider did not fail.
const unsentOutcomes: ReadonlySet<string> = new Set<ProviderErrorCode | 'left' | 'internal'>([
  'left',
  'internal',
  'provider_not_sent',
  'provider_circuit_open',
])

const openAccount = (config: Config, parts: AccountParts) => {
  const { store, clock, instances, recentConsumers, observer: given, tracing, stubs, queueForMs } = parts
  const { totalTimeoutMs } = config.provider
  const lastRequests: LastRequests = { successAt: null, failure: null }
  const observer: AccountObserver = {
    ...given,
    request: (outcome, points, ms, message) => {
      if (outcome === 'ok') lastRequests.successAt = clock.now()
      else if (!unsentOutcomes.has(outcome))
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
    { ...config.provider.breaker, hasFallback: parts.hasFallback },
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
    applyBudget: (next: Config): void => {
      budget.apply(budgetSettingsIn(next))
      provider.budgetChanged()
    },
    /** How far ahead later requests reach, from now on. */
    applyHorizon: (next: Config): void => {
      fetching = protocolOf(next)
    },
    close: async (): Promise<void> => {
      runs?.close()
      const ended = provider.close()
      await call.close()
      await ended
      await budget.end()
    },
  }
}

export type OpenUpstream = {
  /** The name that consumers and operators see; undefined where it is the only upstream. */
  readonly name: string | undefined
  /** The gateway's settings with the settings of this upstream. */
  readonly config: Config
  readonly account: Account
}

export type AccountsParts = Omit<AccountParts, 'observer' | 'queueForMs'> & {
  /** @param fallback its name; undefined for the primary upstream */
  readonly observerOf: (fallback: string | undefined) => AccountObserver
}

// For an upstream that is not the last. A call that hangs, and a second one queued after it, leave time for the next upstream within
// `cache.waitFor`; after these two the circuit opens.
const callsWithinWait = 3
const failuresInARow = 2

const noRuns: readonly ModelRun[] = []

/** The budget settings that need a restart, because their host or key changed too: no account runs under the limits of another. */
export const settingsThatNeedRestart = (started: Config, next: Config): readonly string[] => {
  const before = upstreamsIn(started)
  return upstreamsIn(next).flatMap(({ config: { provider } }, i) => {
    const one = before[i]?.config.provider
    if (one?.baseUrl === provider.baseUrl && one.apiKey === provider.apiKey) return []
    const path = i === 0 ? 'provider' : `provider.fallbacks[${i - 1}]`
    return Object.keys(provider.budget).map(name => `${path}.budget.${name}`)
  })
}

export type Accounts = ReturnType<typeof openAccounts>

export const openAccounts = (config: Config, { observerOf, ...parts }: AccountsParts) => {
  const { clock } = parts
  const { refusedForMs } = config.provider
  // Half of `cache.waitFor` for the budget's next window, half for the provider's response.
  const queueForMs = config.cache.waitForMs / 2
  const configs = upstreamsIn(config)
  const isAlone = configs.length === 1
  const open = ({ name, config: own }: UpstreamConfig, i: number) => {
    const observer = observerOf(i === 0 ? undefined : name)
    if (isAlone) return { name, config: own, account: openAccount(own, { ...parts, observer, queueForMs }) }
    const isLast = i === configs.length - 1
    const { provider: settings, cache } = own
    const breaker = { ...settings.breaker, after: Math.min(settings.breaker.after, failuresInARow) }
    const account = openAccount(isLast ? own : { ...own, provider: { ...settings, breaker } }, {
      ...parts,
      observer,
      queueForMs: 0,
      hasFallback: !isLast,
      longestCallMs: isLast ? undefined : cache.waitForMs / callsWithinWait,
    })
    return { name, config: own, account }
  }
  const [primary, ...others] = configs
  const first = open(primary, 0)
  const named = [first, ...others.map((each, i) => open(each, i + 1))] as const
  const all: readonly [OpenUpstream, ...OpenUpstream[]] = isAlone ? [{ ...first, name: undefined }] : named
  // The only upstream waits for its budget itself.
  const failover = createFailover(all, { queueForMs: isAlone ? 0 : queueForMs, refusedForMs }, clock)
  const byName = new Map(named.map(each => [each.name, each]))

  return {
    ...failover,
    /** The primary account. A gateway without fallbacks has only this one. */
    first: first.account,
    all,
    /** Who the accounts are: gateways with the same ones fail together. */
    id: isAlone
      ? first.account.name
      : all
          .map(({ account }) => account.name)
          .toSorted()
          .join(' '),
    /** The model runs that decide on entries of an upstream. */
    runsOf: (name: string | undefined): readonly ModelRun[] =>
      (name === undefined ? first : byName.get(name))?.account.runs?.recent() ?? noRuns,
    /** When the first poll comes that may find a newer run, ms since the epoch; Infinity where runs are not followed. */
    nextRunAt: (): number =>
      Math.min(...all.map(({ account }) => account.runs?.nextAt() ?? Number.POSITIVE_INFINITY)),
    /** Whether a limit that a load met then holds no more. */
    isLifted: (at: number): boolean => all.some(({ account }) => account.budget.isLifted(at)),
    applyBudgets: (next: Config): void => {
      for (const [i, own] of upstreamsIn(next).entries()) all[i]?.account.applyBudget(own.config)
    },
    applyHorizon: (next: Config): void => {
      for (const { account } of all) account.applyHorizon(next)
    },
    poll: async (): Promise<void> => {
      await Promise.all(all.map(({ account }) => account.runs?.poll()))
    },
    reconcile: async (): Promise<void> => {
      await Promise.all(all.map(({ account }) => account.budget.reconcile()))
    },
    /** Resolves when no request to any of them is under way. */
    settled: async (): Promise<void> => {
      // In their order, which loads follow.
      for (const { account } of all) await account.provider.settled()
    },
    isSettled: (): boolean => all.every(({ account }) => account.budget.isSettled()),
    close: async (): Promise<void> => {
      await Promise.all(all.map(({ account }) => account.close()))
    },
  }
}
