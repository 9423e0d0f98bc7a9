// The retry policy of requests to the provider: which failures are retried, how often, and after what backoff. The client
// reserves budget for each retry and handles the last failure.

import { createRequire } from 'node:module'
import type { RetryPolicy } from 'cockatiel'
import { ProviderError } from './errors.ts'
import type { ProviderProtocol } from './protocol.ts'

export type RetryOptions = {
  /** How often a retryable request is retried, and the first backoff; later ones double. */
  readonly retries: number
  readonly retryDelayMs: number
}

const require = createRequire(import.meta.url)

/** Loads the library: a gateway that serves from its cache starts without it. */
export const retryPolicy = (
  { retries, retryDelayMs }: RetryOptions,
  { busyPauseMs }: Pick<ProviderProtocol, 'busyPauseMs'>,
): RetryPolicy => {
  const { DelegateBackoff, handleWhen, retry } = require('cockatiel') as typeof import('cockatiel')
  return retry(
    handleWhen(error => error instanceof ProviderError && error.retryable),
    {
      maxAttempts: retries,
      backoff: new DelegateBackoff(({ attempt, result }) => {
        const failed = 'error' in result ? result.error : undefined
        const pause = retryDelayMs * 2 ** (attempt - 1)
        const least = failed instanceof ProviderError && failed.code === 'provider_busy' ? busyPauseMs : 0
        // Half of the backoff is jitter, so that instances which failed together do not retry together.
        return Math.max(least, pause * (0.5 + Math.random() / 2))
      }),
    },
  )
}
