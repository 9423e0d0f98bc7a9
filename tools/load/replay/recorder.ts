// Counts the requests of a run by outcome, with histograms of latency and age. Each worker has a recorder, whose forms are added up.

import type { Destination } from 'abohawa/common/endpoints.ts'
import { encodeIntoCompressedBase64, type Histogram } from 'hdr-histogram-js'
import { unansweredMicros } from '../report/histogram.ts'
import type { ReplayResult } from '../report/result.ts'
import type { Outcome } from '../traffic/traffic-request.ts'
import { addEncoded, coarse, fine, latencyIn, latencyOfAll } from './histograms.ts'
import { createSteps, type StepForm } from './steps.ts'

/** Instants of a request in ms since the begin of the run. */
export type Instants = {
  /** Latency counts from here, so that it includes the wait for a connection. */
  readonly dueAt: number
  /** When its first byte was sent. */
  readonly sentAt: number
  /** On a moved clock: when it was due by that clock, which chooses the step; `dueAt` if left out. */
  readonly at?: number | undefined
  /** Its number in the schedule, for the log of requests. */
  readonly request?: number | undefined
}

/** A request without a response. */
export type Unanswered = Instants & {
  /** `weather`, `forecast`, `coords`, `locations`, `location` or `other`. */
  readonly endpoint: Destination
  readonly endedAt: number
}

export type Observation = Instants & {
  readonly endpoint: Destination
  readonly outcome: Outcome
  readonly status: number
  /** When the last byte was received. */
  readonly endedAt: number
  /** On a moved clock: the end by that clock; `at` if left out. */
  readonly movedEnd?: number | undefined
  /** Received bytes, head and body. */
  readonly bytes: number
  /** The age of the weather in seconds: `date` minus `last-modified`. */
  readonly ageSeconds?: number | undefined
}

type Recorded = Pick<
  ReplayResult,
  'statuses' | 'outcomes' | 'latencies' | 'latency' | 'histogram' | 'stepSeconds' | 'steps' | 'age'
>
export type Run = Omit<ReplayResult, keyof Recorded | 'format' | 'totals'> &
  Pick<ReplayResult['totals'], 'seconds' | 'sendingSeconds'>

/** The contents of a recorder, as plain values that one thread sends to another. */
export type RecorderForm = {
  readonly counts: Counts
  readonly stepSeconds: number
  /** Compressed histograms in base64, by `endpoint outcome`. */
  readonly latencies: Readonly<Record<string, string>>
  readonly age: string
  readonly steps: readonly StepForm[]
}

export type Recorder = ReturnType<typeof createRecorder>

export type Scope = { readonly endpoint?: Destination; readonly outcome?: string }

type Waited = {
  /** In ms. */
  readonly value: number
  /** False for a lower bound: the request was given up. */
  readonly isAnswered: boolean
}

export type Counts = {
  sent: number
  answered: number
  late: number
  dropped: number
  bytes: number
  failed: Record<string, number>
  statuses: Record<string, number>
  outcomes: Record<string, number>
}

export const noCounts = (): Counts => ({
  sent: 0,
  answered: 0,
  late: 0,
  dropped: 0,
  bytes: 0,
  failed: {},
  statuses: {},
  outcomes: {},
})

export const addCounts = (to: Counts, more: Counts): void => {
  const add = (into: Record<string, number>, counts: Readonly<Record<string, number>>): void => {
    for (const [name, count] of Object.entries(counts)) into[name] = (into[name] ?? 0) + count
  }
  const { failed: reasons, statuses, outcomes, ...numbers } = more
  add(to as unknown as Record<string, number>, numbers)
  add(to.failed, reasons)
  add(to.statuses, statuses)
  add(to.outcomes, outcomes)
}

/** Sent so much after the due instant is late. */
export const lateMs = 10

// Outcomes of requests without a response.
const [failed, dropped] = ['failed', 'dropped']

/**
 * @param stepSeconds the length of a step; doubled in long runs
 * @param warmUpMs requests due before are not recorded
 */
export const createRecorder = (stepSeconds = 1, warmUpMs = 0) => {
  const counts = noCounts()
  const latencies = new Map<string, Histogram>()
  const age = fine()
  const steps = createSteps(stepSeconds)
  type LiveStep = ReturnType<typeof steps.at>

  const sent = (step: LiveStep, { dueAt, sentAt }: Instants): void => {
    const delay = Math.max(0, sentAt - dueAt)
    counts.sent += 1
    step.due += 1
    step.sent += 1
    if (delay > lateMs) counts.late += 1
    if (delay > step.late) step.late = delay
  }
  const latenciesOf = (name: string): Histogram => {
    const found = latencies.get(name) ?? fine()
    if (found.totalCount === 0) latencies.set(name, found)
    return found
  }
  /** Includes requests that were given up, which a percentile must not ignore. */
  const waited = (step: LiveStep, endpoint: string, outcome: string, ms: number): void => {
    const micros = Math.max(0, Math.round(ms * 1000))
    latenciesOf(`${endpoint} ${outcome}`).recordValue(micros)
    step.latency.recordValue(outcome === failed || outcome === dropped ? unansweredMicros : micros)
  }

  return {
    /** The counts so far, for the line of progress: live, not a copy. */
    counts: counts as Readonly<Counts>,
    record: (observation: Observation): void => {
      const { endpoint, outcome, status, dueAt, endedAt, bytes, ageSeconds, at = dueAt } = observation
      if (dueAt < warmUpMs) return
      // By the instant of the response, so that a second without responses shows.
      steps.at(observation.movedEnd ?? observation.at ?? endedAt).answered += 1
      const step = steps.at(at)
      sent(step, observation)
      counts.answered += 1
      counts.bytes += bytes
      counts.statuses[status] = (counts.statuses[status] ?? 0) + 1
      counts.outcomes[outcome] = (counts.outcomes[outcome] ?? 0) + 1
      if (status >= 500) step.errors += 1
      if (outcome === 'hit') step.hits += 1
      else if (outcome === 'stale') step.stale += 1
      else if (outcome === 'miss') step.misses += 1
      waited(step, endpoint, outcome, endedAt - dueAt)
      if (ageSeconds === undefined) return
      const seconds = Math.max(0, Math.round(ageSeconds))
      age.recordValue(seconds)
      step.age ??= coarse()
      step.age.recordValue(seconds)
    },
    /** It was sent, but has no response. @param reason such as `timeout`, `reset`, `refused` */
    fail: (reason: string, request: Unanswered): void => {
      const { dueAt, at = dueAt, endpoint, endedAt } = request
      if (dueAt < warmUpMs) return
      const step = steps.at(at)
      sent(step, request)
      step.failed += 1
      step.errors += 1
      counts.failed[reason] = (counts.failed[reason] ?? 0) + 1
      waited(step, endpoint, failed, endedAt - dueAt)
    },
    drop: ({ dueAt, at = dueAt, endpoint, endedAt }: Omit<Unanswered, 'sentAt'>): void => {
      if (dueAt < warmUpMs) return
      const step = steps.at(at)
      step.due += 1
      step.errors += 1
      counts.dropped += 1
      waited(step, endpoint, dropped, endedAt - dueAt)
    },
    add: (form: RecorderForm): void => {
      addCounts(counts, form.counts)
      for (const [name, text] of Object.entries(form.latencies)) addEncoded(latenciesOf(name), text)
      addEncoded(age, form.age)
      steps.add(form.steps, form.stepSeconds)
    },
    form: (): RecorderForm => ({
      counts: structuredClone(counts),
      stepSeconds: steps.seconds(),
      latencies: Object.fromEntries(
        [...latencies].map(([name, histogram]) => [name, encodeIntoCompressedBase64(histogram)]),
      ),
      age: encodeIntoCompressedBase64(age),
      steps: steps.form(),
    }),
    /** Of all requests so far, or of an endpoint or outcome; null without requests. */
    latency: (percent: number | 'mean', scope?: Scope): Waited | null =>
      latencyWithin(latencies, percent, scope),
    result: ({ seconds, sendingSeconds, ...run }: Run): ReplayResult => {
      const total = ranked(latencies)
      const ageAt = (percent: number): number => age.getValueAtPercentile(percent)
      const { statuses, outcomes, ...numbers } = structuredClone(counts)
      return {
        format: 'abohawa-replay/1',
        ...run,
        totals: { due: numbers.sent + numbers.dropped, ...numbers, seconds, sendingSeconds },
        statuses,
        outcomes,
        latencies: [...latencies].sort().map(([name, histogram]) => {
          const [endpoint = '', outcome = ''] = name.split(' ')
          return { endpoint, outcome, ...latencyIn(histogram) }
        }),
        latency: latencyOfAll(total),
        histogram: encodeIntoCompressedBase64(total),
        stepSeconds: steps.seconds(),
        steps: steps.form().map(({ ages: _, latencies: __, ...step }) => step),
        age: age.totalCount === 0 ? null : { p50: ageAt(50), p95: ageAt(95), max: ageAt(100) },
      }
    },
  }
}

type Latencies = ReadonlyMap<string, Histogram>

/** The latencies of an endpoint or outcome, or all; `answered` leaves out requests without a response. */
const within = (latencies: Latencies, { endpoint, outcome }: Scope = {}, answered = false): Histogram => {
  const total = fine()
  for (const [name, histogram] of latencies) {
    const [of, did] = name.split(' ')
    if (answered && (did === failed || did === dropped)) continue
    if ((endpoint ?? of) === of && (outcome ?? did) === did) total.add(histogram)
  }
  return total
}

/** Requests without a response rank after all responses, however soon they were given up. */
const ranked = (latencies: Latencies, scope?: Scope): Histogram => {
  const total = within(latencies, scope, true)
  const unanswered = within(latencies, scope).totalCount - total.totalCount
  if (unanswered > 0) total.recordValueWithCount(unansweredMicros, unanswered)
  return total
}

const latencyWithin = (latencies: Latencies, percent: number | 'mean', scope?: Scope): Waited | null => {
  const found = within(latencies, scope)
  if (found.totalCount === 0) return null
  const isMean = percent === 'mean'
  const micros = ranked(latencies, scope).getValueAtPercentile(isMean ? 100 : percent)
  const isAnswered = micros < unansweredMicros
  if (isMean) return { value: found.mean / 1000, isAnswered }
  return { value: (isAnswered ? micros : found.getValueAtPercentile(percent)) / 1000, isAnswered }
}
