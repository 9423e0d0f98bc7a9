// The cost of a run for the gateway and its provider, from the gateway's metrics before, during and after. Several processes are
// added up; delays are those of the worst.

import { hourMs, minuteMs, utcDayMs } from 'abohawa/common/calendar.ts'
import type { Clock } from 'abohawa/common/clock.ts'
import type { ReplayResult, Step } from '../report/result.ts'

type Reading = {
  readonly at: number
  /** ms since the epoch. */
  readonly instant: number
  /** By process, since its start. */
  readonly cpuSeconds: Series
  readonly memoryBytes: number
  readonly loopDelayP50: number
  readonly loopDelayP99: number
  /** By series, since the start of its process. */
  readonly requests: Series
  /** By window of the budget. */
  readonly limits: ReadonlyMap<string, number>
  readonly used: ReadonlyMap<string, number>
}
/** Values by the text of their labels. */
type Series = ReadonlyMap<string, number>

// prom-client samples the delay with a 10 ms timer, and includes its interval.
const samplingMs = 10
const windows = { minute: minuteMs, hour: hourMs, day: utcDayMs } as const
// Between this machine and the gateway's.
const clocksDifferMs = 5_000
const spans = ['minute', 'hour', 'day'] as const

/**
 * @param metrics reads /metrics
 * @param now seconds since the start of the run
 */
export const createGatewayFigures = (
  metrics: () => Promise<string>,
  now: () => number,
  { now: instant }: Pick<Clock, 'now'>,
) => {
  let readings: Reading[] = []
  // A reading that started before the end of the warm-up does not count.
  let round = 0

  const read = async (): Promise<void> => {
    const own = round
    const text = await metrics()
    if (own === round) readings.push(readingOf(text, now(), instant()))
  }
  /** The growth from reading to reading; a smaller or new series restarted at 0. */
  const total = (of: (reading: Reading) => Series): number => {
    const growths = readings.slice(1).flatMap((reading, i) => {
      const before = of(readings[i] as Reading)
      return [...of(reading)].map(([name, value]) => {
        const was = before.get(name) ?? 0
        return value >= was ? value - was : value
      })
    })
    return sumOf(growths)
  }
  /** From the longest window, which ends least often. A request is charged before it is sent, and may cost less in the end. */
  const spent = (): { at: number; by: number }[] => {
    const longest = spans.findLast(name => readings.at(-1)?.used.has(name))
    if (longest === undefined) return []
    const windowOf = ({ instant }: Reading, ms: number): number =>
      Math.floor((instant + ms) / windows[longest])
    const usedIn = ({ used }: Reading): number => used.get(longest) ?? 0
    const changes = readings.slice(1).map((reading, i) => {
      const before = readings[i] as Reading
      const isSure = windowOf(before, clocksDifferMs) < windowOf(reading, -clocksDifferMs)
      const isPossible = windowOf(before, -clocksDifferMs) < windowOf(reading, clocksDifferMs)
      const isOther = isSure || (isPossible && usedIn(reading) < usedIn(before))
      return { at: reading.at, by: usedIn(reading) - (isOther ? 0 : usedIn(before)) }
    })
    // What is given back is taken from where it was charged: before.
    let back = 0
    for (const reading of changes.toReversed()) {
      const net = reading.by - back
      back = Math.max(0, -net)
      reading.by = Math.max(0, net)
    }
    return changes
  }

  return {
    read,
    /** Starts again after the warm-up. */
    begin: (): Promise<void> => {
      round += 1
      readings = []
      return read()
    },
    get gateway(): ReplayResult['gateway'] {
      const during = readings.slice(1)
      if (during.length === 0) return null
      const largest = (of: (reading: Reading) => number): number => Math.max(...during.map(of))
      const medians = during.map(({ loopDelayP50 }) => loopDelayP50).sort((a, b) => a - b)
      return {
        cpuSeconds: total(({ cpuSeconds }) => cpuSeconds),
        memoryBytes: Math.round(largest(({ memoryBytes }) => memoryBytes)),
        loopDelayP50: medians[during.length >> 1] as number,
        loopDelayP99: largest(({ loopDelayP99 }) => loopDelayP99),
      }
    },
    get provider(): ReplayResult['provider'] {
      const weights = spent()
      if (weights.length === 0) return null
      const limits = readings.at(-1)?.limits
      return {
        requests: total(({ requests }) => requests),
        weight: sumOf(weights.map(({ by }) => by)),
        windows: spans.flatMap(span => {
          const used = readings.flatMap(reading => reading.used.get(span) ?? [])
          return used.length === 0
            ? []
            : [{ span, limit: limits?.get(span) ?? null, most: Math.max(...used) }]
        }),
      }
    },
    /** The steps with the weight that was spent in each. */
    withWeights: (steps: readonly Step[], stepSeconds: number): Step[] => {
      const weights = spent()
      if (weights.length === 0) return [...steps]
      // The last reading comes after the run.
      const last = steps.length * stepSeconds
      return steps.map(step => {
        const own = weights.filter(({ at }) => at > step.at && Math.min(at, last) <= step.at + stepSeconds)
        return { ...step, weight: sumOf(own.map(({ by }) => by)) }
      })
    },
  }
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

const readingOf = (text: string, at: number, instant: number): Reading => {
  const values = (name: string): number[] => [...seriesOf(text, name).values()]
  const delay = (name: string): number => Math.max(0, Math.max(0, ...values(name)) * 1000 - samplingMs)
  const requests = [...seriesOf(text, 'abohawa_provider_request_duration_seconds_count')]
  return {
    at,
    instant,
    cpuSeconds: seriesOf(text, 'process_cpu_seconds_total'),
    memoryBytes: sumOf(values('process_resident_memory_bytes')),
    loopDelayP50: delay('nodejs_eventloop_lag_p50_seconds'),
    loopDelayP99: delay('nodejs_eventloop_lag_p99_seconds'),
    requests: new Map(requests.filter(([labels]) => !labels.includes('outcome="provider_not_sent"'))),
    limits: byWindow(text, 'abohawa_provider_budget_limit'),
    used: byWindow(text, 'abohawa_provider_budget_used'),
  }
}

const seriesOf = (text: string, name: string): Series =>
  new Map(
    [...text.matchAll(new RegExp(`^${name}(\\{[^}]*\\})? (\\S+)$`, 'gm'))]
      .map(([, labels = '', value]): [string, number] => [labels, Number(value)])
      .filter(([, value]) => Number.isFinite(value)),
  )

/** A figure of the whole fleet: every process reports it, and the largest value is the latest. */
const byWindow = (text: string, name: string): Series => {
  const found = new Map<string, number>()
  for (const [labels, value] of seriesOf(text, name)) {
    const window = /window="([a-z]+)"/.exec(labels)?.[1]
    if (window !== undefined) found.set(window, Math.max(found.get(window) ?? 0, value))
  }
  return found
}
