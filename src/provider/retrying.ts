// When a failed request to the provider is sent again, and after what pause. Whether it may be paid for once more, and
// what becomes of it in the end, is the client's.

import { DelegateBackoff, handleWhen, type RetryPolicy, retry } from 'cockatiel'
import { ProviderError } from './errors.ts'
import type { ProviderProtocol } from './protocol.ts'

export type RetryOptions = {
  /** How often a request is sent again when that can help, and the first pause before it; later pauses double. */
  readonly retries: number
  readonly retryDelayMs: number
}

export const retryPolicy = (
  { retries, retryDelayMs }: RetryOptions,
  { busyPauseMs }: Pick<ProviderProtocol, 'busyPauseMs'>,
): RetryPolicy =>
  retry(
    handleWhen(error => error instanceof ProviderError && error.retryable),
    {
      maxAttempts: retries,
      backoff: new DelegateBackoff(({ attempt, result }) => {
        const failed = 'error' in result ? result.error : undefined
        const pause = retryDelayMs * 2 ** (attempt - 1)
        const least = failed instanceof ProviderError && failed.code === 'provider_busy' ? busyPauseMs : 0
        // Half of the pause is by chance, so that instances which failed together do not return together.
        return Math.max(least, pause * (0.5 + Math.random() / 2))
      }),
    },
  )
