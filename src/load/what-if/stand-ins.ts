// A provider that sends nothing: requests have the configured protocol's batches and weights, and are answered at once or
// after a while of the clock, with a timeline made at once. Counts what it was sent.

import type { StandIns } from '../../cache/upstream.ts'
import { after, type Clock } from '../../common/clock.ts'
import { ProviderError } from '../../provider/errors.ts'
import type { ProviderProtocol } from '../../provider/protocol.ts'
import type { SampleWeather } from './sample-weather.ts'

export type StandInParts = {
  /** The one that is configured. */
  readonly protocol: ProviderProtocol
  readonly weather: SampleWeather
  readonly clock: Clock
  /** How long a request takes, in ms of the clock. */
  readonly latencyMs: number
  /** Called with each request: how many cells it has. */
  readonly onRequest: (cells: number) => void
}

export const createStandIns = ({
  protocol,
  weather,
  clock,
  latencyMs,
  onRequest,
}: StandInParts): StandIns => {
  const answered = (): Promise<void> | undefined => {
    if (latencyMs === 0) return undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    after(clock, latencyMs, resolve)
    return promise
  }
  const unused = async (): Promise<never> => {
    throw new Error('no operator sends requests here')
  }
  return {
    call: {
      bytes: async function* (_, isValid) {
        if (isValid && !isValid())
          throw new ProviderError('provider_not_sent', 'the request was not sent in time')
        await answered()
        yield* []
      },
      text: async () => '',
      stream: unused,
      close: async () => {},
    },
    protocol: {
      requestFor: cells => ({
        ...protocol.requestFor(cells),
        decode: async body => {
          // Counted when it ends, as the provider does.
          for await (const _ of body);
          onRequest(cells.length)
          return cells.map(() => weather.timelineAt(clock.now()))
        },
      }),
      runs: { ...protocol.runs, decode: (_, now) => protocol.runs.scheduled(now) },
    },
    codec: weather.codec,
  }
}
