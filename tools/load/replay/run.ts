// One replay: starts the senders, reads the gateway's metrics, and builds the result.

import { isoOf } from 'abohawa/common/calendar.ts'
import type { Clock } from 'abohawa/common/clock.ts'
import type { ReplayResult } from '../report/result.ts'
import { createGatewayFigures } from './gateway-figures.ts'
import { generatorOf, machineOf } from './load.ts'
import { arrivalsOf } from './pace.ts'
import { openRequestLog, type RequestLogFile } from './request-log.ts'
import type { SendOrder } from './sender.ts'
import { type LiveFigures, startSending } from './senders.ts'
import type { Threshold } from './thresholds.ts'

export type ReplayOrder = Omit<SendOrder, 'share' | 'beginAt'> & {
  readonly workers: number
  readonly command: string
  readonly traffic: ReplayResult['traffic']
  readonly thresholds: readonly Threshold[]
  readonly settings: ReplayResult['settings']
  /** The text of the gateway's /metrics; without it the result has nothing of the gateway. */
  readonly metrics?: (() => Promise<string>) | undefined
  readonly requests?: RequestLogFile | undefined
}

const readEveryMs = 5_000
const maxSteps = 300

/** Resolves when the run has ended, or was stopped by the signal. */
export const runReplay = async (
  order: ReplayOrder,
  clock: Clock,
  onLive: (figures: LiveFigures, seconds: number) => void,
  signal: AbortSignal,
) => {
  const { workers, command, traffic, thresholds, settings, metrics, requests, ...send } = order
  const { pace, target, http, connections } = send
  const { endsAt } = arrivalsOf(send.schedule, pace)
  const stepSeconds = Math.max(1, Math.ceil((endsAt ?? 0) / 1000 / maxSteps))
  const machine = machineOf()
  let began = performance.now()
  const seconds = (): number => (performance.now() - began) / 1000
  const figures = metrics && createGatewayFigures(metrics, seconds, clock)
  await figures?.read()
  const log = requests === undefined ? undefined : openRequestLog(requests, send.schedule, pace.warmUpMs)
  let startedAt = clock.now()
  let warmedUp: NodeJS.Timeout | undefined
  const sending = startSending(send, workers, stepSeconds, {
    onBegin: () => {
      startedAt = clock.now()
      began = performance.now()
      if (figures && pace.warmUpMs > 0)
        warmedUp = setTimeout(() => void figures.begin().catch(() => {}), pace.warmUpMs)
    },
    onLive: live => onLive(live, seconds()),
    onBlock: log?.add,
  })
  const reading = figures && setInterval(() => void figures.read().catch(() => {}), readEveryMs)

  if (signal.aborted) sending.stop()
  signal.addEventListener('abort', sending.stop)
  const { recorder, loads, kept, sentForMs, answeredForMs, unlogged } = await sending.ended.finally(() => {
    clearInterval(reading)
    clearTimeout(warmedUp)
    signal.removeEventListener('abort', sending.stop)
  })
  const interrupted = signal.aborted
  const fault = await log?.end()
  await figures?.read().catch(() => {})
  const since = (ms: number): number => Math.max(0.001, (ms - pace.warmUpMs) / 1000)
  const sendingSeconds = since(sentForMs)
  // The rate includes the time until the last response.
  const ranFor = since(Math.max(sentForMs, answeredForMs))
  const generator = generatorOf(loads, pace.mode === 'closed')
  const result = recorder.result({
    kind: 'replay',
    startedAt: isoOf(startedAt),
    endedAt: isoOf(clock.now()),
    interrupted,
    command,
    machine,
    traffic,
    pace: {
      mode: pace.mode,
      speed: pace.mode === 'recorded' ? pace.speed : null,
      rate: pace.mode === 'rate' ? pace.rate : null,
      connections,
      workers,
      http,
      target: target.name,
    },
    settings,
    provider: figures?.provider ?? null,
    gateway: figures?.gateway ?? null,
    generator,
    thresholds: generator.limited ? [] : thresholds.map(each => each.judge(recorder, ranFor)),
    bodies: null,
    seconds: ranFor,
    sendingSeconds,
  })
  const steps = figures?.withWeights(result.steps, result.stepSeconds) ?? result.steps
  // `lost`: requests missing in the log, because the file was too slow. `fault`: why there is no file.
  return { result: { ...result, steps }, kept, logged: { lost: unlogged, fault } }
}
