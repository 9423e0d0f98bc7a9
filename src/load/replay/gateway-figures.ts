// The cost of a run for the gateway and its provider, by the gateway's own metrics: read before, every few seconds, and after.
// A gateway may be several processes, each with series of its own: they are added up, and their delays are those of the worst.
// Sends nothing itself; the caller gives it the text of /metrics.

import type { ReplayResult, Step } from '../report/result.ts'

export type GatewayFigures = {
  /** Reads once more now. Rejects as the reading does. */
  read(): Promise<void>
  /** Reads now, and forgets what was before: the run has warmed up. */
  begin(): Promise<void>
  readonly gateway: ReplayResult['gateway']
  readonly provider: ReplayResult['provider']
  /** The steps of the run with the weight that was spent in each; the last reading of a step has it. */
  withWeights(steps: readonly Step[], stepSeconds: number): Step[]
}

type Reading = {
  readonly at: number
  /** By process, since its start. */
  readonly cpuSeconds: ReadonlyMap<string, number>
  readonly memoryBytes: number
  readonly loopDelayP50: number
  readonly loopDelayP99: number
  /** By series, since the start of its process. */
  readonly requests: ReadonlyMap<string, number>
  readonly used: Readonly<Record<string, number>>
}

// prom-client samples the delay with a timer of 10 ms, and reports its whole interval.
const samplingMs = 10
// The longest first: its sum is reset the least often.
const windows = ['day', 'hour', 'minute'] as const

/** @param metrics reads /metrics. @param now seconds since the begin of the run */
export const createGatewayFigures = (metrics: () => Promise<string>, now: () => number): GatewayFigures => {
  let readings: Reading[] = []
  let limits: Record<string, number> = {}
  // Spent since the first reading, by window; a window that began anew counts from zero.
  let spent: { at: number; weight: number }[] = []
  let most: Record<string, number> = {}
  let cpuSeconds = 0
  let requests = 0
  // Readings that are on their way when the run has warmed up are of the time before.
  let round = 0

  const figures: GatewayFigures = {
    begin: () => {
      round += 1
      ;[readings, spent, most, cpuSeconds, requests] = [[], [], {}, 0, 0]
      return figures.read()
    },
    read: async () => {
      const own = round
      const text = await metrics()
      if (own !== round) return
      const reading = readingOf(text, now())
      limits = byWindow(text, 'abohawa_provider_budget_limit')
      for (const [name, used] of Object.entries(reading.used)) most[name] = Math.max(most[name] ?? 0, used)
      const before = readings.at(-1)
      const window = windows.find(name => reading.used[name] !== undefined)
      if (before && window !== undefined) {
        const [was = 0, is = 0] = [before.used[window], reading.used[window]]
        spent.push({ at: reading.at, weight: is >= was ? is - was : is })
      }
      if (before) {
        cpuSeconds += grown(before.cpuSeconds, reading.cpuSeconds)
        requests += grown(before.requests, reading.requests)
      }
      readings.push(reading)
    },
    get gateway() {
      const [first, last] = [readings[0], readings.at(-1)]
      if (!first || !last || readings.length < 2) return null
      const during = readings.slice(1)
      const largest = (of: (reading: Reading) => number): number => Math.max(...during.map(of))
      return {
        cpuSeconds,
        memoryBytes: Math.round(largest(({ memoryBytes }) => memoryBytes)),
        loopDelayP50: during.map(({ loopDelayP50 }) => loopDelayP50).sort((a, b) => a - b)[
          during.length >> 1
        ] as number,
        loopDelayP99: largest(({ loopDelayP99 }) => loopDelayP99),
      }
    },
    get provider() {
      const [first, last] = [readings[0], readings.at(-1)]
      if (!first || !last || spent.length === 0) return null
      return {
        requests,
        weight: spent.reduce((sum, { weight }) => sum + weight, 0),
        windows: windows.toReversed().flatMap(name => {
          const used = most[name]
          return used === undefined ? [] : [{ span: name, limit: limits[name] ?? null, most: used }]
        }),
      }
    },
    withWeights: (steps, stepSeconds) =>
      spent.length === 0
        ? [...steps]
        : steps.map(step => ({
            ...step,
            weight: spent
              .filter(({ at }) => at > step.at && at <= step.at + stepSeconds)
              .reduce((sum, { weight }) => sum + weight, 0),
          })),
  }
  return figures
}

/** By how much counters have grown; one that is smaller, or new, began at 0 since: its process was replaced. */
const grown = (before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): number =>
  [...after].reduce((sum, [name, value]) => {
    const was = before.get(name) ?? 0
    return sum + (value >= was ? value - was : value)
  }, 0)

const readingOf = (text: string, at: number): Reading => {
  const values = (name: string): number[] => [...seriesOf(text, name).values()]
  const delay = (name: string): number => Math.max(0, Math.max(0, ...values(name)) * 1000 - samplingMs)
  return {
    at,
    cpuSeconds: seriesOf(text, 'process_cpu_seconds_total'),
    memoryBytes: values('process_resident_memory_bytes').reduce((sum, bytes) => sum + bytes, 0),
    loopDelayP50: delay('nodejs_eventloop_lag_p50_seconds'),
    loopDelayP99: delay('nodejs_eventloop_lag_p99_seconds'),
    requests: new Map(
      [...seriesOf(text, 'abohawa_provider_request_duration_seconds_count')].filter(
        ([labels]) => !labels.includes('outcome="provider_not_sent"'),
      ),
    ),
    used: byWindow(text, 'abohawa_provider_budget_used'),
  }
}

/** The values of a metric by the text of its labels. */
const seriesOf = (text: string, name: string): Map<string, number> =>
  new Map(
    [...text.matchAll(new RegExp(`^${name}(\\{[^}]*\\})? (\\S+)$`, 'gm'))]
      .map(([, labels = '', value]): [string, number] => [labels, Number(value)])
      .filter(([, value]) => Number.isFinite(value)),
  )

/** A figure of the whole fleet: every process reports it, and the largest report is the latest. */
const byWindow = (text: string, name: string): Record<string, number> => {
  const found: Record<string, number> = {}
  for (const [labels, value] of seriesOf(text, name)) {
    const window = /window="([a-z]+)"/.exec(labels)?.[1]
    if (window !== undefined) found[window] = Math.max(found[window] ?? 0, value)
  }
  return found
}
