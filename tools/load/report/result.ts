// The result of a replay or a rehearsal, as in its JSON file. Durations are milliseconds unless a name says otherwise; instants are
// ISO 8601 in UTC.

import { z } from 'zod'
import { maxHistogramText } from './histogram.ts'

const count = z.int().min(0)
// So that sums and products stay finite.
const amount = z.number().min(0).max(1e15)
// So that instants plus seconds stay valid.
const seconds = z.number().min(0).max(1e10)
const instant = z.iso.datetime()

// The length is checked before the entries, so that a long list gives one error.
const listOf = <Entry extends z.ZodType>(entry: Entry, most: number) =>
  z.array(z.unknown()).max(most).pipe(z.array(entry))
const countsOf = () =>
  z
    .record(z.string(), z.unknown())
    .refine(counts => Object.keys(counts).length <= maxNames, `must have at most ${maxNames} names`)
    .pipe(z.record(z.string(), count))
const maxNames = 1_000
const maxFaults = 20_000
const maxSteps = 1_000

/** From the due instant to the end of the body, or until the request was given up. */
const latency = z.object({
  count,
  mean: amount,
  p50: amount,
  p90: amount,
  p99: amount,
  p999: amount,
  max: amount,
})

const known = amount.nullable()
/** Of all requests: those without a response are the slowest, and a figure that falls on them is null. */
const latencyOfAll = z.object({
  ...{ count, mean: known, p50: known, p90: known, p99: known, p999: known, max: known },
})

/** `weather`, `forecast`, `coords`, `locations`, `location` or `other`; the outcomes of a traffic request, `failed` or `dropped`. */
const latencyOf = latency.extend({ endpoint: z.string(), outcome: z.string() })

/** One step of the run, by the clock of the run. */
const step = z.object({
  /** Seconds from the start of the run. */
  at: seconds,
  due: count,
  sent: count,
  /** Responses received in this step; all other counts are by due instant. */
  answered: count,
  failed: count,
  /** Never sent, without a response, or with status 500 and above. */
  errors: count,
  hits: count,
  stale: count,
  misses: count,
  p50: known,
  p99: known,
  /** The largest delay from the due instant to the first byte sent. */
  late: amount.nullable(),
  /** Median and maximum age of the weather, in seconds. */
  age50: amount.nullable(),
  ageMax: amount.nullable(),
  /** Provider weight spent; null if unknown. */
  weight: amount.nullable(),
})

const setting = z.object({ path: z.string(), value: z.string(), default: z.string() })

export const replayResult = z.object({
  format: z.literal('abohawa-replay/1'),
  /** `rehearsal`: gateway, provider and replay on one moved clock. */
  kind: z.enum(['replay', 'rehearsal']),
  startedAt: instant,
  endedAt: instant,
  /** Stopped early; the figures count what ran. */
  interrupted: z.boolean(),
  command: z.string(),
  machine: z.object({
    node: z.string(),
    cpu: z.string(),
    cores: count,
    memoryBytes: count,
    version: z.string(),
  }),
  traffic: z.object({
    files: listOf(z.string(), maxNames),
    sha256: z.string(),
    requests: count,
    keys: count,
    /** The first arrival, and the seconds to the last. */
    from: instant.nullable(),
    spanSeconds: amount,
    faultyLines: count,
  }),
  pace: z.object({
    /** `recorded`: by arrival, times `speed`. `rate`: evenly. `closed`: one request per connection at a time. */
    mode: z.enum(['recorded', 'rate', 'closed']),
    speed: amount.nullable(),
    rate: amount.nullable(),
    connections: count,
    workers: count,
    http: z.enum(['1.1', '2']),
    target: z.string(),
  }),
  /** Settings that differ from the default; null if unknown. */
  settings: listOf(setting, maxNames).nullable(),
  totals: z.object({
    due: count,
    sent: count,
    answered: count,
    /** Requests without a response, by reason: `timeout`, `reset`, `refused`, … */
    failed: countsOf(),
    /** Sent more than 10 ms after the due instant. */
    late: count,
    /** Never sent, because no connection was free. */
    dropped: count,
    bytes: count,
    /** Until the last response, and until the last request was due or sent. */
    seconds: amount,
    /** Until the last request was due or sent; missing in older results. */
    sendingSeconds: amount.optional(),
  }),
  statuses: countsOf(),
  outcomes: countsOf(),
  latencies: listOf(latencyOf, maxNames),
  latency: latencyOfAll,
  /** All latencies in microseconds, as a compressed HdrHistogram V2 in base64; 2 ** 40 stands for no response. */
  histogram: z.string().max(maxHistogramText),
  stepSeconds: seconds,
  steps: listOf(step, maxSteps),
  /** Of the weather served, in seconds. */
  age: z.object({ p50: amount, p95: amount, max: amount }).nullable(),
  provider: z
    .object({
      requests: count,
      weight: amount,
      /** The provider's limits, and the maximum spent in one window. */
      windows: listOf(z.object({ span: z.string(), limit: amount.nullable(), most: amount }), maxNames),
    })
    .nullable(),
  gateway: z
    .object({
      cpuSeconds: amount,
      memoryBytes: count,
      loopDelayP50: amount.nullable(),
      loopDelayP99: amount.nullable(),
    })
    .nullable(),
  generator: z.object({
    cpuShare: amount,
    loopDelayP99: amount,
    lateP99: amount,
    /** The generator was the bottleneck; the reason says why. */
    saturated: z.boolean(),
    reason: z.string().nullable(),
    /** It reached a limit of its machine, such as open files, so no threshold is decided. */
    limited: z.boolean().optional(),
  }),
  thresholds: listOf(
    z.object({ threshold: z.string(), measured: z.string(), passed: z.boolean() }),
    maxNames,
  ),
  /** Bodies that don't match the API schema; null if bodies were not checked. */
  bodies: z
    .object({
      checked: count,
      faults: listOf(z.object({ path: z.string(), fault: z.string(), count }), maxFaults),
    })
    .nullable(),
})
export type ReplayResult = z.infer<typeof replayResult>
export type Latency = z.infer<typeof latency>
export type LatencyOfAll = z.infer<typeof latencyOfAll>
export type Step = z.infer<typeof step>
