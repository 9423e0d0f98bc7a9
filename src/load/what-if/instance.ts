// One gateway without its sockets and quotas: the endpoints with weather, the bodies that they render and keep, and the
// upstream behind them. Bodies are compressed once; from then on their size is known by their length.

import { brotliCompressSync, deflateRawSync } from 'node:zlib'
import { lengthOf } from '../../api/connection/ready-response.ts'
import { acceptedOf, brotliOptions, gzipOptions } from '../../api/content-coding.ts'
import type { Compression } from '../../api/encoded-weather.ts'
import type { Representation } from '../../api/representation.ts'
import { weatherEndpointsOf } from '../../api/weather-endpoints.ts'
import type { UpstreamObserver } from '../../cache/upstream.ts'
import { openUpstream, type StandIns, type Upstream } from '../../cache/upstream.ts'
import type { Catalogue } from '../../catalogue/catalogue.ts'
import { createCalendar } from '../../common/calendar.ts'
import type { Clock } from '../../common/clock.ts'
import type { Config } from '../../config/schema.ts'
import { fleetHashOf } from '../../config/values.ts'
import type { Store } from '../../stores/store.ts'
import type { WeatherPath } from '../traffic/endpoint-of-path.ts'
import type { SampleWeather } from './sample-weather.ts'

export type Instance = Pick<Upstream, 'timelines' | 'start' | 'close'> & {
  /**
   * Answers a request up to its body, at once where memory holds the weather.
   * @param from `accepts` is the header `accept-encoding`, `keyId` whose share of the budget a load is;
   *   undefined for nobody in particular
   * @throws Problem for a refused request; a promise rejects where there is no weather
   */
  answer(
    path: WeatherPath,
    from: { readonly accepts: string | undefined; readonly keyId: string | undefined },
  ): void | Promise<void>
}

export type InstanceParts = {
  readonly store: Store
  readonly catalogue: Catalogue
  readonly clock: Clock
  /** How many share the store. */
  readonly instances: number
  readonly weather: SampleWeather
  readonly standIns: StandIns
  readonly observer: UpstreamObserver
}

export const openInstance = (config: Config, parts: InstanceParts): Instance => {
  const { store, clock, instances, weather, standIns, observer } = parts
  const catalogue = { current: parts.catalogue }
  const { grid, timelines, start, close } = openUpstream(config, {
    store,
    catalogue,
    clock,
    instances: () => instances,
    settings: () => hash,
    report: () => '',
    observer,
    standIns,
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

/** Encodes a body as the API does, so that what is kept of it counts towards the memory. */
const send = ({ chunks, encode }: Representation, accepts: string | undefined): void => {
  const accepted = accepts === undefined ? undefined : acceptedOf(accepts, lengthOf(chunks))
  if (accepted) void encode(accepted)
}

/** Compresses one body of each length: the weather is the same text everywhere. */
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

// Views of one block: as long as a body, without taking its memory.
const block = Buffer.alloc(64 * 1024)
const sample = (bytes: number): Buffer => block.subarray(0, Math.min(bytes, block.length))
