// When the provider last answered, and how its last failed request failed. What became of requests of operators counts only
// where the provider is at fault.

import type { Clock } from '../common/clock.ts'
import type { ProviderErrorCode } from './errors.ts'

export type LastRequests = {
  /** @param outcome `ok`, or what went wrong; @param message of the error */
  record(outcome: string, message?: string): void
  /** Ms since the epoch; null while there was none. */
  lastSuccessAt(): number | null
  lastFailure(): { readonly at: number; readonly code: string; readonly message: string } | null
}

// Nothing was sent, so the provider did not fail.
const notSent: ReadonlySet<string> = new Set<ProviderErrorCode | 'left' | 'internal'>([
  'left',
  'internal',
  'provider_not_sent',
  'provider_circuit_open',
])

export const createLastRequests = (clock: Clock): LastRequests => {
  let success: number | null = null
  let failure: ReturnType<LastRequests['lastFailure']> = null
  return {
    record: (outcome, message = '') => {
      if (outcome === 'ok') success = clock.now()
      else if (!notSent.has(outcome)) failure = { at: clock.now(), code: outcome, message }
    },
    lastSuccessAt: () => success,
    lastFailure: () => failure,
  }
}
