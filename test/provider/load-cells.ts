// Loads cells from providers with the gateway's own client, one provider after the other, in a process whose memory a test can
// limit. Prints a line of JSON for each: the outcomes, the longest block of the event loop, and the growth of memory so far.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { cellsFrom, providerAt } from './provider-set-up.ts'

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

const loadAll = async (url: string) => {
  const { provider, refused } = providerAt({ teardown: () => {} }, url, {
    options: { maxPointsPerRequest: points, retries: 0, queueForMs: 1_000 },
    network: { connectTimeoutMs: 2_000, timeoutMs: 10_000, bodyTimeoutMs: 10_000, totalTimeoutMs },
  })
  const rows = Array.from({ length: points / 20 }, (_, row) => cellsFrom(21 + row / 10, 20))
  const results = await Promise.allSettled(rows.flat().map(cell => provider.load(cell)))
  // The connections stay open: some tests look for one that is never released.
  provider.close()
  return { results, refused }
}

const timesOf = (all: readonly string[]) =>
  Object.fromEntries(
    Map.groupBy(all, each => each)
      .entries()
      .map(([each, { length }]) => [each, length]),
  )

const measured = async (url: string, before: number): Promise<Outcome> => {
  const delay = monitorEventLoopDelay({ resolution: 2 })
  delay.enable()
  const started = performance.now()
  const { results, refused } = await loadAll(url)
  const ms = performance.now() - started
  // A block at the very end is recorded only in the next turn of the event loop.
  await new Promise(resolve => setTimeout(resolve, 10))
  delay.disable()
  const failed = results.flatMap(each =>
    each.status === 'rejected' ? [`${each.reason.code}: ${each.reason.message}`] : [],
  )
  return {
    loaded: results.filter(({ status }) => status === 'fulfilled').length,
    failed: timesOf(failed),
    refused: timesOf(refused),
    ms: Math.round(ms),
    stoodStillMs: Math.round(delay.max / 1e6),
    grewMiB: Math.round((process.resourceUsage().maxRSS - before) / 1024),
  }
}

await loadAll(goodUrl)
const before = process.resourceUsage().maxRSS
for (const url of urls) process.stdout.write(`${JSON.stringify(await measured(url, before))}\n`)
process.stdout.write('', () => process.exit(0))
