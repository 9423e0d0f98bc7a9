// The guard before a provider that is down: after so many failures in a row no request leaves for a rest, which grows
// with each probe that fails; then one request tries. Counts only what says that the provider as a whole is unwell.

import {
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  DelegateBackoff,
  handleWhen,
  isBrokenCircuitError,
} from 'cockatiel'
import type { Clock } from '../clock.ts'
import { ProviderError, type ProviderErrorCode } from './errors.ts'

export type BreakerOptions = {
  /** Failures in a row that open it. */
  readonly after: number
  /** The first rest and the longest; each failed probe doubles it. */
  readonly halfOpenAfterMs: number
  readonly halfOpenAfterAtMostMs: number
}

export type BreakerState = 'closed' | 'open' | 'half-open'

export type Breaker = {
  /** Runs a request. @throws ProviderError `provider_circuit_open`, with the end of the rest, when none may leave */
  run<Result>(request: () => Promise<Result>): Promise<Result>
  /** The error that a request would meet now, so that nothing is prepared in vain. */
  resting(): ProviderError | undefined
  /** Whether a rest is over and no request has tried since. */
  isProbeDue(): boolean
  state(): { state: BreakerState; restsUntil: number | null }
}

const unwell: ReadonlySet<ProviderErrorCode> = new Set([
  'provider_unreachable',
  'provider_broke_off',
  'provider_timeout',
  'provider_failing',
  'provider_overloaded',
  'provider_denied',
  'provider_cut_off',
  'provider_garbled',
])

/** @param changed hears of every opening and closing */
export const createBreaker = (
  { after, halfOpenAfterMs, halfOpenAfterAtMostMs }: BreakerOptions,
  clock: Clock,
  changed: (state: BreakerState) => void,
): Breaker => {
  // The rest passes on the machine's own time, like every other wait for the network.
  let restEndsAt = 0
  const policy: CircuitBreakerPolicy = circuitBreaker(
    handleWhen(error => error instanceof ProviderError && unwell.has(error.code)),
    {
      breaker: new ConsecutiveBreaker(after),
      halfOpenAfter: new DelegateBackoff(({ attempt }) => {
        const rest = Math.min(halfOpenAfterMs * 2 ** (attempt - 1), halfOpenAfterAtMostMs)
        // Up to a quarter less by chance, so that a fleet does not probe in step.
        const drawn = rest * (1 - Math.random() / 4)
        // The policy reckons in whole milliseconds, so that its rest may end up to one later.
        restEndsAt = performance.now() + drawn + 1
        return drawn
      }),
    },
  )
  policy.onStateChange(() => changed(stateOf(policy.state)))

  const resting = (): ProviderError | undefined => {
    const leftMs = restEndsAt - performance.now()
    if (policy.state !== CircuitState.Open || leftMs <= 0) return undefined
    return new ProviderError('provider_circuit_open', 'the provider has been failing and is given a rest', {
      retryAt: Math.ceil(clock.now() + leftMs),
    })
  }

  return {
    run: async request => {
      try {
        return await policy.execute(request)
      } catch (error) {
        if (!isBrokenCircuitError(error)) throw error
        throw resting() ?? new ProviderError('provider_circuit_open', 'the provider has been failing')
      }
    },
    resting,
    isProbeDue: () => policy.state === CircuitState.Open && resting() === undefined,
    state: () => ({
      state: stateOf(policy.state),
      restsUntil: resting()?.retryAt ?? null,
    }),
  }
}

const stateOf = (state: CircuitState): BreakerState =>
  state === CircuitState.Closed ? 'closed' : state === CircuitState.HalfOpen ? 'half-open' : 'open'
