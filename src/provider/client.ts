// Timelines from the provider, one cell asked for at a time, in as few requests as possible: cells that miss together
// travel together in one list request, with as many requests out as the provider runs for us. Keeps nothing.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { DelegateBackoff, handleWhen, retry } from 'cockatiel'
import pLimit from 'p-limit'
import type { Calendar } from '../calendar.ts'
import type { Clock } from '../clock.ts'
import type { Cell } from '../weather/cell.ts'
import type { Timeline } from '../weather/timeline.ts'
import { decodeTimelines } from './decode.ts'
import { ProviderError } from './errors.ts'
import { createExchange, type ExchangeOptions } from './exchange.ts'
import { type Horizon, pathFor } from './query.ts'

export type ProviderOptions = ExchangeOptions & {
  readonly maxPointsPerRequest: number
  /** How often a request is sent again when that can help, and the first pause before it; later pauses double. */
  readonly retries: number
  readonly retryDelayMs: number
  readonly horizon: Horizon
}

/** Hears of every request to the provider: its outcome (`ok` or a ProviderErrorCode), points and duration. */
export type ProviderObserver = { request(outcome: string, points: number, ms: number): void }

export type Provider = {
  /** The timeline of a cell. @throws ProviderError */
  load(cell: Cell): Promise<Timeline>
  close(): Promise<void>
}

type Waiting = PromiseWithResolvers<Timeline> & { cell: Cell }

export const createProvider = (
  options: ProviderOptions,
  parts: { clock: Clock; calendar: Calendar; observer: ProviderObserver },
): Provider => {
  const { clock, calendar, observer } = parts
  const exchange = createExchange(options, clock)
  const limit = pLimit(options.maxConcurrent)
  const again = retryPolicy(options)
  const waiting: Waiting[] = []

  const ask = async (cells: readonly Cell[]): Promise<(Timeline | ProviderError)[]> => {
    const started = performance.now()
    const askedAt = clock.now()
    let outcome = 'ok'
    try {
      const body = await exchange.get(pathFor(cells, options.horizon, calendar.zone))
      const { horizon } = options
      const results = decodeTimelines(body, {
        cells: cells.length,
        horizon,
        calendar,
        askedAt,
        answeredAt: clock.now(),
      })
      outcome = results.find(result => result instanceof ProviderError)?.code ?? 'ok'
      return results
    } catch (error) {
      outcome = error instanceof ProviderError ? error.code : 'internal'
      throw error
    } finally {
      observer.request(outcome, cells.length, performance.now() - started)
    }
  }

  // A batch is refused as a whole; halving it finds the point that spoils it, so that one bad point costs nobody else.
  const serve = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const results = await again.execute(() => ask(batch.map(({ cell }) => cell)))
      batch.forEach(({ resolve, reject }, i) => {
        const result = results[i]
        if (result === undefined || result instanceof ProviderError) reject(result)
        else resolve(result)
      })
    } catch (error) {
      if (batch.length > 1 && error instanceof ProviderError && splittable.has(error.code)) {
        const half = Math.ceil(batch.length / 2)
        await serve(batch.slice(0, half))
        await serve(batch.slice(half))
      } else for (const { reject } of batch) reject(error)
    }
  }

  // Runs when the provider has room for one more request of ours, and takes along all who wait by then: those of the
  // same turn of the event loop, and those who came while earlier requests were out.
  const sendWaiting = async (): Promise<void> => {
    await nextTurn()
    const batch = waiting.splice(0, options.maxPointsPerRequest)
    if (batch.length > 0) await serve(batch)
  }

  return {
    load: cell => {
      const entry = { ...Promise.withResolvers<Timeline>(), cell }
      waiting.push(entry)
      void limit(sendWaiting)
      return entry.promise
    },
    close: () => exchange.close(),
  }
}

const splittable = new Set(['provider_refused', 'provider_too_much'])

// The provider says that a refused concurrent call has room again in about a second.
const busyPauseMs = 1_000

const retryPolicy = ({ retries, retryDelayMs }: ProviderOptions) =>
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
