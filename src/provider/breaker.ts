// The circuit breaker of the provider: opens after a number of failures with no success in between, and lets one probe through after a
// wait that doubles with each failed probe. Only failures of the provider as a whole count, not failures of single points. Waits use
// monotonic time, because clocks may be set. Where another upstream follows, the first request after a probe is a trial: no other request is sent meanwhile, and
// its failure opens the circuit again, for longer.

import {
  type CircuitBreakerPolicy,
  CircuitState,
  circuitBreaker,
  DelegateBackoff,
  handleWhen,
} from 'cockatiel'
import type { Clock } from '../common/clock.ts'
import { ProviderError } from './errors.ts'

export type BreakerOptions = {
  /** Failures with no success in between that open it. */
  readonly after: number
  /** The first wait of the open circuit and the longest; each failed probe doubles it. */
  readonly halfOpenAfterMs: number
  readonly halfOpenAfterAtMostMs: number
  /** Whether another upstream follows, which serves while this one is on trial. */
  readonly hasFallback?: boolean | undefined
}

export type BreakerState = 'closed' | 'open' | 'half-open'

export type Breaker = ReturnType<typeof createBreaker>

/** @param onStateChange is called with each new state */
export const createBreaker = (
  options: BreakerOptions,
  clock: Clock,
  onStateChange: (state: BreakerState) => void,
) => {
  /** Of `performance.now`. */
  let halfOpenAt = 0
  let waitMs = 0
  let probe: Promise<unknown> | undefined
  let failures = 0
  /** How often it opened in a row, failed probes included; and when it closed last, undefined since it opened. */
  let openings = 0
  let closedAt: number | undefined
  /** A probe has closed it, and no request has succeeded since. */
  let isUnproven = false
  let isOnTrial = false
  const { after, halfOpenAfterMs, halfOpenAfterAtMostMs, hasFallback = false } = options
  const policy: CircuitBreakerPolicy = circuitBreaker(
    // Any other error of a probe is an answer, which closes the circuit.
    handleWhen(
      error =>
        error instanceof ProviderError &&
        (error.opensCircuit || (error.code === 'provider_not_sent' && policyState() === 'half-open')),
    ),
    {
      breaker: {
        state: undefined,
        success: () => {
          failures = 0
          isUnproven = false
        },
        failure: () => {
          failures += 1
          return isUnproven || failures >= after
        },
      },
      halfOpenAfter: new DelegateBackoff(() => {
        // Soon after a recovery it is a relapse, and counts on.
        const isRelapse = hasFallback && performance.now() - (closedAt ?? 0) < halfOpenAfterAtMostMs
        if (closedAt !== undefined && !isRelapse) openings = 0
        closedAt = undefined
        const wait = Math.min(halfOpenAfterMs * 2 ** openings, halfOpenAfterAtMostMs)
        openings += 1
        // Up to 25 % jitter, so that the instances of a fleet do not probe at the same time.
        waitMs = wait * (1 - Math.random() / 4)
        // The library would wait by the machine's clock, so it gets no wait: `run` waits.
        return Number.NEGATIVE_INFINITY
      }),
    },
  )
  const policyState = (): BreakerState =>
    policy.state === CircuitState.Closed
      ? 'closed'
      : policy.state === CircuitState.HalfOpen
        ? 'half-open'
        : 'open'
  const state = (): BreakerState => (isOnTrial ? 'half-open' : policyState())
  policy.onStateChange(() => {
    const changed = policyState()
    const now = performance.now()
    if (changed === 'open') halfOpenAt = now + waitMs
    if (changed === 'closed') closedAt = now
    isUnproven = hasFallback && changed === 'closed'
    onStateChange(changed)
  })

  /** The error that `run` would throw now; undefined when it would send the request. */
  const openError = (): ProviderError | undefined => {
    const leftMs = halfOpenAt - performance.now()
    if (state() !== 'open' || leftMs <= 0) return undefined
    const retryAt = Math.ceil(clock.now() + leftMs)
    const sentence = 'the provider has been failing, and the circuit is open'
    return new ProviderError('provider_circuit_open', sentence, { retryAt })
  }

  return {
    /** Runs a request. @throws ProviderError `provider_circuit_open`, with `retryAt`, while the circuit is open */
    run: async <Result>(request: () => Promise<Result>): Promise<Result> => {
      // A caller that waits for a probe must not send the next one when it fails.
      while (state() === 'half-open') await probe
      const refusal = openError()
      if (refusal) throw refusal
      const sent = policy.execute(request)
      isOnTrial = isUnproven
      if (state() === 'half-open')
        probe = sent
          .catch(() => {})
          .finally(() => {
            isOnTrial = false
          })
      return sent
    },
    openError,
    /** Whether the wait of the open circuit is over and no probe has been sent. */
    isProbeDue: (): boolean => state() === 'open' && openError() === undefined,
    state: () => ({ state: state(), openUntil: openError()?.retryAt ?? null }),
  }
}
