// Results of replays, rehearsals and `whatif` as a run would write them. Those of replays are made by the recorder from drawn latencies: a day with a peak in
// the morning and one in the evening, hits of a third of a millisecond, misses that wait for the provider.

import { createRecorder } from '../../../../tools/load/replay/recorder.ts'
import type { ReplayResult } from '../../../../tools/load/report/result.ts'
import type { Outcome } from '../../../../tools/load/traffic/traffic-request.ts'
import type { WhatIfResult } from '../../../../tools/load/what-if/what-if.ts'

export type Drawn = {
  readonly seed?: number
  readonly requests?: number
  /** What latencies are multiplied by. */
  readonly slow?: number
  readonly hitShare?: number
  /** How many requests fail, as a share. */
  readonly failing?: number
  /** The length of a step. */
  readonly stepSeconds?: number
  /** The weight of one miss for the provider. */
  readonly weight?: number
}

const endpoints = ['weather', 'weather', 'weather', 'forecast', 'coords', 'locations'] as const

/** Numbers from 0 to 1 that a seed fixes. */
const numbersOf = (seed: number) => {
  let state = seed * 2_654_435_761 + 1
  return (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** A rehearsal of a day in steps of 10 minutes; `changes` replace what was drawn. */
export const drawnRehearsal = (drawn: Drawn = {}, changes: Partial<ReplayResult> = {}): ReplayResult => {
  const { seed = 1, requests = 6_000, slow = 1, hitShare = 0.88, failing = 0 } = drawn
  const { stepSeconds = 600, weight = 2.1 } = drawn
  const random = numbersOf(seed)
  const normal = () => Math.sqrt(-2 * Math.log(random() || 1e-9)) * Math.cos(2 * Math.PI * random())
  const day = 86_400_000
  const recorder = createRecorder(stepSeconds)
  for (let sent = 0; sent < requests; ) {
    const at = random() * day
    const hour = at / 3_600_000
    const busy = 0.25 + Math.exp(-((hour - 8) ** 2) / 6) + 0.8 * Math.exp(-((hour - 19) ** 2) / 8)
    if (random() > busy / 1.3) continue
    sent += 1
    const endpoint = endpoints[Math.floor(random() * endpoints.length)] ?? 'weather'
    const drawnOutcome = random()
    const ofWeather = drawnOutcome < hitShare ? 'hit' : drawnOutcome < hitShare + 0.03 ? 'stale' : 'miss'
    const outcome: Outcome = endpoint === 'locations' ? 'none' : ofWeather
    const ms =
      slow * (outcome === 'miss' ? 45 : 0.33) * Math.exp(0.45 * normal() + (random() < 0.004 ? 2.5 : 0))
    const dueAt = sent * 2
    const instants = { at, dueAt, sentAt: dueAt + random() * 0.6 + (random() < 0.001 ? 14 : 0) }
    if (random() < failing) {
      recorder.fail('timeout', { ...instants, endpoint, endedAt: instants.sentAt + 10_000 })
      continue
    }
    const status = random() < 0.002 ? 429 : 200
    const ageOf = () => (outcome === 'miss' ? 0 : random() * (outcome === 'hit' ? 3_600 : 5_000))
    recorder.record({
      ...{ ...instants, endpoint, outcome, status, endedAt: instants.sentAt + ms, bytes: 3_100 },
      ...(outcome === 'none' ? {} : { ageSeconds: ageOf() }),
    })
  }
  const result = recorder.result({
    kind: 'rehearsal',
    ...{ startedAt: '2026-11-22T06:00:00.000Z', endedAt: '2026-11-22T06:04:10.000Z', interrupted: false },
    command: 'rehearse day.ndjson.gz --out report.html',
    machine: {
      ...{ node: 'v26.10.0', cpu: 'AMD EPYC 7763', cores: 2, memoryBytes: 8_589_934_592 },
      version: '1.0.0',
    },
    traffic: {
      files: ['day.ndjson.gz'],
      sha256: '5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592',
      ...{ requests, keys: 120, from: '2026-11-20T18:00:00.000Z', spanSeconds: 86_399, faultyLines: 0 },
    },
    pace: {
      ...{ mode: 'recorded', speed: 345, rate: null, connections: 64, workers: 1, http: '1.1' },
      target: 'http://127.0.0.1:8080',
    },
    settings: [{ path: 'cache.freshFor', value: '3h', default: '1h' }],
    provider: null,
    gateway: { cpuSeconds: 21.4, memoryBytes: 201_326_592, loopDelayP50: 1.1, loopDelayP99: 6.4 },
    generator: { cpuShare: 0.41, loopDelayP99: 2.2, lateP99: 1.4, saturated: false, reason: null },
    thresholds: [
      { threshold: 'p99<200ms', measured: '96.3 ms', passed: true },
      { threshold: 'errors<0.1%', measured: '0 %', passed: true },
    ],
    bodies: null,
    seconds: 250,
    sendingSeconds: 250,
  })
  const steps = result.steps.map(step => ({ ...step, weight: Number((step.misses * weight).toFixed(1)) }))
  const spent = steps.reduce((sum, step) => sum + (step.weight ?? 0), 0)
  return {
    ...result,
    steps,
    provider: {
      requests: Math.round(spent / weight / 3),
      weight: spent,
      windows: [
        { span: 'minute', limit: 600, most: Math.min(580, Math.round(spent / 90)) },
        { span: 'hour', limit: 5_000, most: Math.round(spent / 9) },
        { span: 'day', limit: 10_000, most: Math.round(spent) },
      ],
    },
    ...changes,
  }
}

/** A replay against a target that is not known from within. */
export const drawnReplay = (drawn: Drawn = {}, changes: Partial<ReplayResult> = {}): ReplayResult =>
  drawnRehearsal(drawn, { kind: 'replay', settings: null, provider: null, gateway: null, ...changes })

/**
 * A result of `whatif`, with figures that follow from the place of the setting alone.
 * @param values of `cache.freshFor`, a case for each: every further one has more hits, less weight and older weather
 */
export const drawnWhatIf = (values: readonly string[]): WhatIfResult => ({
  format: 'abohawa-what-if/1',
  version: '1.0.0',
  traffic: {
    files: ['day.ndjson.gz'],
    sha256: '5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592',
    ...{ requests: 20_000, faultyLines: 0, leftOut: { method: 0, refused: 3, keyless: 0 } },
    ...{ from: '2026-11-20T18:00:00.000Z', spanSeconds: 86_399 },
  },
  base: [{ path: 'cache.cellDegrees', value: '0.2', default: '0.1' }],
  ...{ instances: 1, warmUpSeconds: 0, warm: false, latencyMs: 0, budget: null },
  cases: values.map((value, i) => {
    const hits = 14_000 + 1_500 * i
    const weight = 24_000 / (i + 1)
    return {
      name: `cache.freshFor=${value}`,
      settings: { 'cache.freshFor': value },
      paretoOptimal: i > 0,
      budgetBit: false,
      requests: 20_000,
      weather: 18_000,
      none: 2_000,
      hits: { memory: hits, shared: 0 },
      ...{ stale: 500, misses: 17_500 - hits, failed: 0, hitShare: hits / 18_000 },
      provider: {
        ...{ requests: Math.round(weight / 4), cells: 700, weight, days: [] },
        most: { minute: 60, hour: 1_500, day: weight },
      },
      stretch: { most: 1, share: 0 },
      age: { p50: 2_000 * (i + 1), p95: 9_000 * (i + 1), max: 30_000 },
      memory: { mostBytes: 24_000_000, mostEntries: 700, sharedEntries: 700, sharedBytes: 9_000_000 },
      stepSeconds: 3_600,
      steps: Array.from({ length: 24 }, (_, hour) => ({
        at: hour * 3_600,
        ...{
          requests: 800,
          hits: 500 + 60 * i + 10 * (hour % 8),
          stale: 20,
          misses: 100 - 10 * i,
          failed: 0,
        },
        weight: 100 * (24 - hour) + 300 * i,
        stretch: 1,
      })),
    }
  }),
  unfinished: [],
})
