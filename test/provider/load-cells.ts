// Loads cells from providers with the gateway's own client, one provider after the other, in a process whose memory a test can
// limit. Prints a line of JSON for each: the outcomes, the longest block of the event loop, and the growth of memory so far.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createBreaker } from '../../src/provider/breaker.ts'
import { createProvider } from '../../src/provider/client.ts'
import { createProviderCall } from '../../src/provider/provider-call.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { manualClock } from './manual-clock.ts'
import { callOptions, openMeteo } from './open-meteo.ts'

export type LoadRequest = {
  /** Loaded first, so that code and pools are warm before anything is measured. */
  goodUrl: string
  urls: readonly string[]
  points: number
  totalTimeoutMs: number
}

export type Outcome = {
  /** How many cells were loaded. */
  loaded: number
  /** The other cells by error: `code: sentence`. */
  failed: Record<string, number>
  /** Refusals by reason. */
  refused: Record<string, number>
  ms: number
  /** The longest time that the event loop was blocked. */
  stoodStillMs: number
  /** The highest memory so far, beyond that of the first load: what earlier providers left behind counts too. */
  grewMiB: number
}

const { goodUrl, urls, points, totalTimeoutMs } = JSON.parse(process.argv[2] ?? '') as LoadRequest

const loadAll = async (baseUrl: string) => {
  const clock = manualClock()
  const refused: Record<string, number> = {}
  const options = {
    ...callOptions(baseUrl),
    connectTimeoutMs: 2_000,
    timeoutMs: 10_000,
    bodyTimeoutMs: 10_000,
  }
  const call = createProviderCall({ ...options, totalTimeoutMs }, { protocol: openMeteo, clock })
  const breaker = { after: 100, halfOpenAfterMs: 1_000, halfOpenAfterAtMostMs: 1_000 }
  const provider = createProvider(
    { maxConcurrent: 1, maxPointsPerRequest: points, retries: 0, retryDelayMs: 1, queueForMs: 1_000 },
    {
      call,
      protocol: openMeteo,
      breaker: createBreaker(breaker, clock, () => {}),
      budget: {
        reserve: async points => ({
          ...{ points, claims: [], retryAt: null, isValid: () => true },
          limited: async () => {},
          settle: async () => {},
        }),
      },
      recentConsumers: () => [],
      clock,
      observer: {
        request: () => {},
        loaded: () => {},
        shareUsedUp: () => {},
        refused: why => {
          refused[why] = (refused[why] ?? 0) + 1
        },
      },
    },
  )
  const grid = createGrid(0.1)
  const cellOf = (i: number) => grid.cellOf(21 + Math.floor(i / 40) / 10, 88 + (i % 40) / 10)
  const loads = Array.from({ length: points }, (_, i) => provider.load(cellOf(i)))
  const results = await Promise.allSettled(loads)
  provider.close()
  // Not awaited: some tests look for a connection that is never released.
  void call.close()
  return { results, refused }
}

const measured = async (url: string, before: number): Promise<Outcome> => {
  const delay = monitorEventLoopDelay({ resolution: 2 })
  delay.enable()
  const started = performance.now()
  const { results, refused } = await loadAll(url)
  const ms = performance.now() - started
  // A block at the very end is recorded only in the next turn of the event loop.
  await new Promise(resolve => setTimeout(resolve, 10))
  delay.disable()
  const failed: Record<string, number> = {}
  for (const result of results)
    if (result.status === 'rejected') {
      const name = `${result.reason.code}: ${result.reason.message}`
      failed[name] = (failed[name] ?? 0) + 1
    }
  return {
    loaded: results.filter(({ status }) => status === 'fulfilled').length,
    failed,
    refused,
    ms: Math.round(ms),
    stoodStillMs: Math.round(delay.max / 1e6),
    grewMiB: Math.round((process.resourceUsage().maxRSS - before) / 1024),
  }
}

await loadAll(goodUrl)
const before = process.resourceUsage().maxRSS
for (const url of urls) process.stdout.write(`${JSON.stringify(await measured(url, before))}\n`)
process.stdout.write('', () => process.exit(0))
