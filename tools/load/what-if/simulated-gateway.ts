// One gateway without sockets and quotas: the weather endpoints, the bodies that they render, and the upstream with a provider that
// sends nothing. Compressed sizes are known from the first body of each length.

import { brotliCompressSync, deflateRawSync } from 'node:zlib'
import type { Catalogue } from 'abohawa/catalogue/catalogue.ts'
import { createCalendar } from 'abohawa/common/calendar.ts'
import { after, type Clock } from 'abohawa/common/clock.ts'
import type { Config } from 'abohawa/config/schema.ts'
import { fleetHashOf } from 'abohawa/config/values.ts'
import {
  acceptedOf,
  brotliOptions,
  type Compression,
  gzipOptions,
  lengthOf,
  openUpstream,
  ProviderError,
  protocolIn,
  type Representation,
  type Store,
  type Stubs,
  type Upstream,
  type UpstreamObserver,
  weatherEndpointsOf,
} from 'abohawa/parts'
import { runDelayMs, runEveryMs } from 'abohawa/protocol/limits.ts'
import type { WeatherPath } from '../traffic/endpoint-of-path.ts'
import type { SampleWeather } from './sample-weather.ts'

export type SimulatedGateway = Pick<Upstream, 'timelines' | 'start' | 'close'> & {
  /**
   * Answers a request, without a promise if the weather is in memory.
   * @param from `accepts`: the header `accept-encoding`; `keyId`: the key whose budget share a load uses
   * @throws Problem for a refused request; a promise rejects without weather
   */
  answer(
    path: WeatherPath,
    from: { readonly accepts: string | undefined; readonly keyId: string | undefined },
  ): void | Promise<void>
}

type GatewayParts = {
  readonly store: Store
  readonly catalogue: Catalogue
  readonly clock: Clock
  /** The number of gateways that share the store. */
  readonly instances: number
  readonly weather: SampleWeather
  /** The response time of the provider, in ms of the clock. */
  readonly latencyMs: number
  /** Called for each request to the provider. */
  readonly onSpent: (cells: number, weight: number) => void
  readonly observer: UpstreamObserver
}

export const openSimulatedGateway = (config: Config, parts: GatewayParts): SimulatedGateway => {
  const { store, clock, instances, weather, observer } = parts
  const catalogue = { current: parts.catalogue }
  const { grid, timelines, start, close } = openUpstream(config, {
    store,
    catalogue,
    clock,
    instances: () => instances,
    settings: () => hash,
    report: () => '',
    observer,
    stubs: stubsOf(parts),
  })
  const hash = fleetHashOf(config)
  const endpoints = weatherEndpointsOf({
    catalogue,
    grid,
    timelines,
    calendar: createCalendar(config.quota.timeZone),
    hourlyHours: config.weather.hourlyHours,
    text: weather.text,
    compression: createSampleCompression(),
  })

  return {
    timelines,
    start,
    close,
    answer: ({ endpoint, params, query }, { accepts, keyId }) => {
      const answer = endpoints[endpoint]({ params, query, keyId })
      if (answer instanceof Promise) return answer.then(late => send(late, accepts))
      send(answer, accepts)
    },
  }
}

/** A provider that sends nothing: requests have the batches and weights of the protocol, and responses a made-up timeline. */
export const stubsOf = ({
  weather,
  clock,
  latencyMs,
  onSpent,
}: Pick<GatewayParts, 'weather' | 'clock' | 'latencyMs' | 'onSpent'>): Stubs => {
  const answered = (): Promise<void> | undefined => {
    if (latencyMs === 0) return undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    after(clock, latencyMs, resolve)
    return promise
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
      stream: async () => {
        throw new Error('no operator sends requests here')
      },
      close: async () => {},
    },
    protocolOf: config => {
      const protocol = protocolIn(config)
      return {
        ...protocol,
        requestFor: cells => ({
          ...protocol.requestFor(cells),
          decode: async body => {
            // Counted at the end, as the provider does.
            for await (const _ of body);
            onSpent(cells.length, cells.length * protocol.weightPerCell)
            return cells.map(() => weather.timelineAt(clock.now()))
          },
        }),
        runs: { ...protocol.runs, decode: (_, now) => scheduledRun(now) },
      }
    },
    codec: weather.codec,
  }
}

/** The newest run at an instant if all come when they usually do. */
const scheduledRun = (now: number) => {
  const initialisedAt = Math.floor((now - runDelayMs) / runEveryMs) * runEveryMs
  return { initialisedAt, availableAt: initialisedAt + runDelayMs, intervalMs: runEveryMs }
}

/** Encodes a body as the API does, because kept encodings take memory. */
const send = ({ chunks, encode }: Representation, accepts: string | undefined): void => {
  const accepted = accepts === undefined ? undefined : acceptedOf(accepts, lengthOf(chunks))
  if (accepted) void encode(accepted)
}

/** Compresses one body of each length, because all weather is the same text. */
const createSampleCompression = (): Compression => {
  const sizes = new Map<string, number>()
  const sampled = (name: string, bytes: Buffer, compress: (bytes: Buffer) => Buffer): Buffer => {
    const kind = `${name} ${Math.round(bytes.length / 64)}`
    const size = sizes.get(kind) ?? compress(bytes).length
    sizes.set(kind, size)
    return sample(size)
  }
  return {
    deflate: bytes => sampled('deflate', bytes, body => deflateRawSync(body, gzipOptions)),
    brotli: async bytes => sampled('br', bytes, body => brotliCompressSync(body, brotliOptions)),
  }
}

// Views of one block, so that bodies take no memory.
const block = Buffer.alloc(64 * 1024)
const sample = (bytes: number): Buffer => block.subarray(0, Math.min(bytes, block.length))
