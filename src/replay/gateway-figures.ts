// What a run cost the gateway and its provider, by the gateway's own metrics: read before, every few seconds, and after.
// Sends nothing itself; the caller gives it the text of /metrics.

import type { ReplayResult, Step } from '../report/result.ts'

export type GatewayFigures = {
  /** Reads once more now. Rejects as the reading does. */
  read(): Promise<void>
  readonly gateway: ReplayResult['gateway']
  readonly provider: ReplayResult['provider']
  /** The steps of the run with the weight that was spent in each; the last reading of a step has it. */
  withWeights(steps: readonly Step[], stepSeconds: number): Step[]
}

type Reading = {
  readonly at: number
  readonly cpuSeconds: number
  readonly memoryBytes: number
  readonly loopDelayP50: number
  readonly loopDelayP99: number
  readonly requests: number
  readonly used: Readonly<Record<string, number>>
}

// prom-client samples the delay with a timer of 10 ms, and reports its whole interval.
const samplingMs = 10
// The longest first: its sum is reset the least often.
const windows = ['day', 'hour', 'minute'] as const

/** @param metrics reads /metrics. @param now seconds since the begin of the run */
export const createGatewayFigures = (metrics: () => Promise<string>, now: () => number): GatewayFigures => {
  const readings: Reading[] = []
  let limits: Record<string, number> = {}
  // Spent since the first reading, by window; a window that began anew counts from zero.
  const spent: { at: number; weight: number }[] = []
  const most: Record<string, number> = {}

  return {
    read: async () => {
      const text = await metrics()
      const reading = readingOf(text, now())
      limits = byWindow(text, 'abohawa_provider_budget_limit')
      for (const [name, used] of Object.entries(reading.used)) most[name] = Math.max(most[name] ?? 0, used)
      const before = readings.at(-1)
      const window = windows.find(name => reading.used[name] !== undefined)
      if (before && window !== undefined) {
        const [was = 0, is = 0] = [before.used[window], reading.used[window]]
        spent.push({ at: reading.at, weight: is >= was ? is - was : is })
      }
      readings.push(reading)
    },
    get gateway() {
      const [first, last] = [readings[0], readings.at(-1)]
      if (!first || !last || readings.length < 2) return null
      const during = readings.slice(1)
      const largest = (of: (reading: Reading) => number): number => Math.max(...during.map(of))
      return {
        cpuSeconds: Math.max(0, last.cpuSeconds - first.cpuSeconds),
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
        requests: Math.max(0, last.requests - first.requests),
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
}

const readingOf = (text: string, at: number): Reading => {
  const value = (name: string): number =>
    Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1] ?? 0)
  const delay = (name: string): number => Math.max(0, value(name) * 1000 - samplingMs)
  return {
    at,
    cpuSeconds: value('process_cpu_seconds_total'),
    memoryBytes: value('process_resident_memory_bytes'),
    loopDelayP50: delay('nodejs_eventloop_lag_p50_seconds'),
    loopDelayP99: delay('nodejs_eventloop_lag_p99_seconds'),
    requests: requestsIn(text),
    used: byWindow(text, 'abohawa_provider_budget_used'),
  }
}

const requestsIn = (text: string): number =>
  [
    ...text.matchAll(
      /^abohawa_provider_request_duration_seconds_count\{[^}]*outcome="([^"]+)"[^}]*\} (\d+)$/gm,
    ),
  ]
    .filter(([, outcome]) => outcome !== 'provider_not_sent')
    .reduce((sum, [, , count]) => sum + Number(count), 0)

const byWindow = (text: string, name: string): Record<string, number> =>
  Object.fromEntries(
    [...text.matchAll(new RegExp(`^${name}\\{[^}]*window="([a-z]+)"[^}]*\\} (\\S+)$`, 'gm'))]
      .map(([, window = '', used]): [string, number] => [window, Number(used)])
      .filter(([, used]) => Number.isFinite(used)),
  )
