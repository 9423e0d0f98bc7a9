// The result of a replay or a rehearsal, as in its JSON file: the one form that the report page, the comparison and programs
// read. Durations are milliseconds unless a name says otherwise; instants are ISO 8601 in UTC.

import { z } from 'zod'
import { maxHistogramText } from './histogram.ts'

const count = z.int().min(0)
// Sums and products of such ones are numbers too.
const amount = z.number().min(0).max(1e15)
// Added to an instant it is an instant still.
const seconds = z.number().min(0).max(1e10)
const instant = z.iso.datetime()

// The number of entries is checked before any of them is, so that a list of a million mistakes has one.
const listOf = <Entry extends z.ZodType>(entry: Entry, most: number) =>
  z.array(z.unknown()).max(most).pipe(z.array(entry))
const countsOf = () =>
  z
    .record(z.string(), z.unknown())
    .refine(counts => Object.keys(counts).length <= maxNames, `allowed: at most ${maxNames} names`)
    .pipe(z.record(z.string(), count))
const maxNames = 1_000
const maxFaults = 20_000
const maxSteps = 1_000

/** Of latencies from the due instant to the end of the body, or to the instant when a request was given up. */
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
/** Of all requests: one without a response is slower than every response, and a figure is null where it is of such ones. */
const latencyOfAll = z.object({
  ...{ count, mean: known, p50: known, p90: known, p99: known, p999: known, max: known },
})

/** `weather`, `forecast`, `coords`, `locations`, `location` or `other`; the outcomes of a traffic request, `failed` or `dropped`. */
const latencyOf = latency.extend({ endpoint: z.string(), outcome: z.string() })

/** One step of the run, all of one length: of the clock that the run went by. */
const step = z.object({
  /** When it begins, from the begin of the run, in seconds. */
  at: seconds,
  due: count,
  sent: count,
  /** Answers that were received in it; all else is of the requests that were due in it. */
  answered: count,
  failed: count,
  /** Never sent, without an answer, or answered with 500 and above. */
  errors: count,
  hits: count,
  stale: count,
  misses: count,
  p50: known,
  p99: known,
  /** The largest delay from the due instant to the first byte sent. */
  late: amount.nullable(),
  /** Of the weather that was served: the median and the largest age, in seconds. */
  age50: amount.nullable(),
  ageMax: amount.nullable(),
  /** The provider's weight that was spent in it; null where the provider is not known. */
  weight: amount.nullable(),
})

const setting = z.object({ path: z.string(), value: z.string(), default: z.string() })

export const replayResult = z.object({
  format: z.literal('abohawa-replay/1'),
  /** `replay`: against a target, by the machine's clock. `rehearsal`: gateway, provider and replay on one moved clock. */
  kind: z.enum(['replay', 'rehearsal']),
  startedAt: instant,
  endedAt: instant,
  /** Whether it was stopped before its end; the figures are of what ran. */
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
    /** Of the file: the first arrival, and the seconds to the last. */
    from: instant.nullable(),
    spanSeconds: amount,
    faultyLines: count,
  }),
  pace: z.object({
    /** `recorded`: by arrival instants, times `speed`. `rate`: evenly. `closed`: so many connections, one request each. */
    mode: z.enum(['recorded', 'rate', 'closed']),
    speed: amount.nullable(),
    rate: amount.nullable(),
    connections: count,
    workers: count,
    http: z.enum(['1.1', '2']),
    target: z.string(),
  }),
  /** Those that differ from the default; null where the settings of the target are not known. */
  settings: listOf(setting, maxNames).nullable(),
  totals: z.object({
    due: count,
    sent: count,
    answered: count,
    /** Requests without an answer, by reason: `timeout`, `reset`, `refused`, … */
    failed: countsOf(),
    /** Sent more than 10 ms after the due instant. */
    late: count,
    /** Due, and never sent: no connection was free for too long. */
    dropped: count,
    bytes: count,
    /** Until the last request was due or sent, and the last response came: the rate of responses is by this time. */
    seconds: amount,
    /** Until the last request was due or sent; results of earlier versions don't have it. */
    sendingSeconds: amount.optional(),
  }),
  statuses: countsOf(),
  outcomes: countsOf(),
  latencies: listOf(latencyOf, maxNames),
  latency: latencyOfAll,
  /** All of them in microseconds, as a compressed HdrHistogram V2 in base64; 2 ** 40 is one without a response. */
  histogram: z.string().max(maxHistogramText),
  stepSeconds: seconds,
  steps: listOf(step, maxSteps),
  /** Of the weather served, in seconds. */
  age: z.object({ p50: amount, p95: amount, max: amount }).nullable(),
  provider: z
    .object({
      requests: count,
      weight: amount,
      /** The provider's limits, and the most that was spent in one window of each. */
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
    /** Whether the figures are of the generator rather than of the target; the reason says why. */
    saturated: z.boolean(),
    reason: z.string().nullable(),
    /** Whether it met a limit of its own machine, such as open files: then no threshold is decided. */
    limited: z.boolean().optional(),
  }),
  thresholds: listOf(
    z.object({ threshold: z.string(), measured: z.string(), passed: z.boolean() }),
    maxNames,
  ),
  /** The bodies that broke the contract; null where bodies were not checked. */
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
