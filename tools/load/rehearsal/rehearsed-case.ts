// Rehearses one combination of settings: starts the processes, sends the traffic, ends the processes, and builds the result.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isoOf } from 'abohawa/common/calendar.ts'
import type { Clock } from 'abohawa/common/clock.ts'
import { loadConfig } from 'abohawa/config/load.ts'
import type { Config } from 'abohawa/config/schema.ts'
import { changesBetween } from 'abohawa/config/values.ts'
import { machineOf } from '../replay/load.ts'
import { createRecorder } from '../replay/recorder.ts'
import { createProviderWeight, type ProviderDay } from '../report/provider-weight.ts'
import type { ReplayResult } from '../report/result.ts'
import type { SettingCase } from '../setting-grid.ts'
import { type SentWith, substituteKeys } from '../traffic/recorded-admission.ts'
import type { TrafficRequest } from '../traffic/traffic-request.ts'
import { openFixture, type ProviderOptions } from './fixture.ts'
import { maxConnections, rehearse } from './rehearsal.ts'

export type RehearsalParts = {
  readonly requests: readonly TrafficRequest[]
  readonly sentWith: Readonly<Record<SentWith, number>>
  readonly traffic: ReplayResult['traffic']
  readonly command: string
  readonly files: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly tier: string | undefined
  readonly provider: ProviderOptions
  readonly stepMs: number
  readonly clock: Clock
  readonly signal: AbortSignal
}

export type RehearsedCase = {
  readonly name: string
  readonly result: ReplayResult
  readonly days: readonly ProviderDay[]
  /** Requests that the provider refused because of its limits. */
  readonly providerRefused: number
}

/** Longer for longer traffic; a day has 96 steps. */
const stepSecondsOf = (spanSeconds: number): number =>
  stepLengths.find(seconds => spanSeconds / seconds <= maxSteps) ?? 86_400
const stepLengths = [1, 5, 15, 60, 300, 900, 3600, 6 * 3600]
const maxSteps = 150

/** @throws InputError if a process can't be started or ends early */
export const rehearseCase = async (
  { name, env, config: configured }: SettingCase,
  parts: RehearsalParts,
  onProgress: (sent: number) => void,
): Promise<RehearsedCase> => {
  const { requests, sentWith, traffic, provider, tier, files, stepMs, clock, signal } = parts
  const start = requests[0]?.at ?? 0
  const keys = [...new Set(requests.flatMap(({ key }) => key ?? []))]
  await using fixture = await openFixture({
    start,
    files,
    env: { ...parts.env, ...env },
    keys,
    substitutes: Math.min(sentWith.substitute, substituteKeys),
    tier,
    provider,
  })
  const recorder = createRecorder(stepSecondsOf(traffic.spanSeconds))
  const spending = createProviderWeight()
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  const [startedAt, begunAt, cpu] = [clock.now(), performance.now(), process.cpuUsage()]
  const answeredAt = await rehearse({ requests, stepMs, onProgress, signal }, { fixture, recorder, spending })
  const seconds = (performance.now() - begunAt) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const gateway = await fixture.gatewayReport()
  const sent = recorder.counts.sent
  const lastAt = requests[sent - 1]?.at ?? start
  const { total, days, weightBetween } = spending
  const most = spending.most()
  const { perMinute, perHour, perDay } = configured.provider.budget
  const result = recorder.result({
    kind: 'rehearsal',
    startedAt: isoOf(startedAt),
    endedAt: isoOf(clock.now()),
    interrupted: sent < requests.length,
    command: parts.command,
    machine: machineOf(),
    traffic,
    pace: {
      mode: 'recorded',
      speed: seconds === 0 ? null : traffic.spanSeconds / seconds,
      rate: null,
      connections: maxConnections,
      workers: 1,
      http: '1.1',
      target: fixture.apiUrl,
    },
    settings: changed(configured),
    seconds: (Math.max(lastAt, answeredAt) - start) / 1000,
    sendingSeconds: (lastAt - start) / 1000,
    provider: {
      requests: total.calls,
      weight: total.weight,
      windows: [
        { span: 'minute', limit: perMinute, most: most.minute },
        { span: 'hour', limit: perHour, most: most.hour },
        { span: 'day', limit: perDay, most: most.day },
      ],
    },
    gateway: gateway ?? null,
    generator: {
      cpuShare: (user + system) / 1e6 / seconds,
      loopDelayP99: delay.percentile(99) / 1e6,
      // Nothing is due by the machine's clock.
      lateP99: 0,
      // A busy generator makes a rehearsal longer, but changes no figure.
      saturated: false,
      reason: null,
    },
    thresholds: [],
    bodies: null,
  })
  const steps = result.steps.map(step => {
    const from = start + step.at * 1000
    return { ...step, weight: weightBetween(from, from + result.stepSeconds * 1000) }
  })
  return {
    name,
    result: { ...result, steps },
    days: days(),
    providerRefused: total.refused,
  }
}

// These settings are replaced in a rehearsal, or don't matter.
const ofThePlace = /^(server|ops|health|store|redis|log|config|provider\.(baseUrl|apiKey|name|fallbacks))\b/

const changed = (config: Config): ReplayResult['settings'] =>
  changesBetween(loadConfig({ files: [], env: {} }), config)
    .filter(({ path }) => !ofThePlace.test(path))
    .map(({ path, before = '', after = '' }) => ({ path, value: after, default: before }))
