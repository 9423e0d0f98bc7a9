// Starts a sender over a few requests that a test writes as they are in a traffic file, and keeps what it observed.

import type { Pace } from '../../../../tools/load/replay/pace.ts'
import { createRecorder, type Observation, type Unanswered } from '../../../../tools/load/replay/recorder.ts'
import { scheduleOf } from '../../../../tools/load/replay/schedule.ts'
import { monotonicMs, Sender, type SendOrder } from '../../../../tools/load/replay/sender.ts'
import { targetOf } from '../../../../tools/load/replay/target.ts'
import { lineOf, type TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'

const path = '/api/v1/weather/district/3026'

/** Requests that arrive so many ms after the first. */
export const arriving = (instants: readonly number[], more: Partial<TrafficRequest> = {}): TrafficRequest[] =>
  instants.map(at => ({ at: 1_700_000_000_000 + at, method: 'GET', path, ...more }))

/** The lines of a traffic file. */
export const linesOf = (requests: readonly TrafficRequest[]): string =>
  requests.map(each => `${lineOf(each)}\n`).join('')

/** So many instants, each so many ms after the one before. */
export const every = (ms: number, count: number): number[] => Array.from({ length: count }, (_, i) => i * ms)

export async function* inBatches(requests: readonly TrafficRequest[]): AsyncGenerator<TrafficRequest[]> {
  yield [...requests]
}

type Options = Partial<Omit<SendOrder, 'pace' | 'schedule' | 'target'>> & {
  pace?: Partial<Pace>
  ca?: string
}

export const sendSome = async (url: string, requests: readonly TrafficRequest[], options: Options = {}) => {
  const { pace, ca, ...more } = options
  const recorder = createRecorder()
  const answers: Observation[] = []
  const failures: [string, Unanswered][] = []
  const sender = new Sender(
    {
      schedule: await scheduleOf(inBatches(requests), true),
      pace: { mode: 'recorded', speed: 1, rate: 0, loop: false, durationMs: undefined, warmUpMs: 0, ...pace },
      share: { index: 0, of: 1 },
      keys: [],
      target: await targetOf(url, { ca }),
      http: '1.1',
      connections: 16,
      queueTimeoutMs: 60_000,
      timeoutMs: 60_000,
      keepBodies: 0,
      beginAt: monotonicMs(),
      ...more,
    },
    {
      ...recorder,
      record: observation => {
        answers.push(observation)
        recorder.record(observation)
      },
      fail: (reason, request) => {
        failures.push([reason, request])
        recorder.fail(reason, request)
      },
    },
  )
  const { ended, load, kept } = sender
  return {
    ended,
    load,
    kept,
    stop: () => sender.stop(),
    sentFor: () => sender.sentFor(),
    recorder,
    answers,
    failures,
  }
}
