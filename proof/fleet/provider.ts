// The provider of a lane: the simulator in this process behind a recorder, and that behind a faulty link. The recorder gives
// each body its own weather, so that it can be told apart, and records it as the provider said it, before the link had it.

import { createServer, type ServerResponse } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { request } from 'undici'
import { listenOn } from '../../test/support/listening.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import { startSimulator } from '../../tools/provider/simulator.ts'
import type { ProviderFault } from '../steps.ts'
import { type Link, openLink } from './link.ts'

type ProviderCall = {
  readonly arrivedAt: number
  readonly points: readonly (readonly [latitude: number, longitude: number])[]
  /** Null where nothing was sent. */
  readonly status: number | null
  /** Of 200, as it was sent. */
  readonly body: string | null
  /** What it counts against the limits, by the provider's own terms. */
  readonly weight: number
}

export type LaneProvider = {
  readonly url: string
  readonly link: Link
  /** Begins a history: its clock, where calls go, and where the instant goes at which a run began that was said to be the last. */
  begin(
    now: () => number,
    record: (call: ProviderCall) => void,
    recordRun: (initialisedAt: number) => void,
  ): Promise<void>
  set(fault: ProviderFault): Promise<void>
  /** What `meta.json` says of the runs. */
  setRun(fault: 'late' | 'withdrawn' | 'none'): void
}

// 30 variables and at most 14 days: three for each point; an error weighs one, and a 429 nothing.
const weightOfPoint = 3
const weightOfError = 1
const runEveryS = 6 * 3_600

/** @param firstBody the number before that of its first body in a history, from which the weather of a body follows */
export const openLaneProvider = async (scope: Teardown, firstBody = 0): Promise<LaneProvider> => {
  let now = (): number => 0
  let record: (call: ProviderCall) => void = () => {}
  let recordRun: (initialisedAt: number) => void = () => {}
  let run: 'late' | 'withdrawn' | 'none' = 'none'
  let said = firstBody
  const simulator = await startSimulator({ clock: { now: () => now() }, runs: 'ecmwf' })
  scope.teardown(simulator.close)

  const recorder = createServer({ maxHeaderSize: 256 * 1024 }, async (incoming, response) => {
    const arrivedAt = now()
    const url = incoming.url ?? ''
    const isForecast = url.startsWith('/v1/forecast')
    const points = isForecast ? pointsOf(url) : []
    // Whose history it is: a late call of the previous one is not this one's.
    const [recordHere, recordRunHere] = [record, recordRun]
    const note = (status: number | null, body: string | null): void => {
      if (!isForecast) return
      // An empty body is how the provider refuses a request without coordinates.
      const isError = (status !== null && status >= 400) || body === ''
      const weight = status === 429 ? 0 : isError ? weightOfError : points.length * weightOfPoint
      recordHere({ arrivedAt, points, status, body, weight })
    }
    if (!isForecast && run === 'withdrawn') {
      response
        .writeHead(404, { 'content-type': 'application/json' })
        .end('{"error":true,"reason":"Not Found"}')
      return
    }
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    try {
      const { statusCode: status, ...answer } = await request(`${simulator.url}${url}`, {
        headers: incoming.headers,
        signal: gone.signal,
        // Each call has its own connection, as none outlives a fault.
        reset: true,
      })
      const bytes = Buffer.from(await answer.body.arrayBuffer())
      const text = (answer.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString()
      const type = answer.headers['content-type']?.toString()
      if (!isForecast) {
        const own = run === 'late' ? withFormerRun(text) : text
        const [, initialised] = /"last_run_initialisation_time":(\d+)/.exec(own) ?? []
        if (initialised !== undefined) recordRunHere(Number(initialised) * 1_000)
        send(response, status, type, own)
        return
      }
      said += 1
      const own = status === 200 ? withOwnWeather(text, said) : text
      note(status, status === 200 ? own : null)
      send(response, status, type, own)
    } catch {
      note(null, null)
      response.destroy()
    }
  })
  const link = await openLink(await listenOn(scope, recorder))
  scope.teardown(link.close)

  const control = async (change: object): Promise<void> => {
    const body = JSON.stringify(change)
    const headers = { 'content-type': 'application/json' }
    const answer = await request(`${simulator.url}/control`, { method: 'POST', body, headers })
    if (answer.statusCode !== 200) throw new Error(`the simulator refused ${body}`)
    await answer.body.dump()
  }
  return {
    url: `http://127.0.0.1:${link.port}`,
    link,
    begin: async (clock, recordCall, recordRunSaid) => {
      now = clock
      record = recordCall
      recordRun = recordRunSaid
      run = 'none'
      said = firstBody
      link.set(undefined)
      link.reset()
      await control({ fault: 'none', latencyMs: 0, hold: false, reset: true })
    },
    set: fault => control('mode' in fault ? { fault: fault.mode } : { latencyMs: fault.latencyMs }),
    setRun: next => {
      run = next
    },
  }
}

const send = (response: ServerResponse, status: number, type: string | undefined, text: string): void => {
  if (response.destroyed) return
  const body = Buffer.from(text)
  response.writeHead(status, {
    'content-type': type ?? 'application/json; charset=utf-8',
    'content-length': body.length,
  })
  response.end(body)
}

const pointsOf = (url: string): (readonly [number, number])[] => {
  const query = new URLSearchParams(url.split('?', 2)[1])
  const [latitudes = [], longitudes = []] = ['latitude', 'longitude'].map(name =>
    (query.get(name) ?? '').split(',').map(Number),
  )
  return latitudes.map((latitude, i) => [latitude, longitudes[i] ?? Number.NaN])
}

const withFormerRun = (text: string): string => {
  const meta = JSON.parse(text) as Record<string, number>
  for (const name of Object.keys(meta))
    if (name.startsWith('last_run')) meta[name] = (meta[name] ?? 0) - runEveryS
  return JSON.stringify(meta)
}

/** Wind of so many tenths of a km/h, and a lowest temperature of so many tenths of a degree: possible, and hardly another body's. */
const withOwnWeather = (text: string, number: number): string => {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return text
  }
  for (const element of Array.isArray(body) ? body : [body]) {
    for (const name of ['minutely_15', 'hourly'])
      overwrite(element?.[name]?.wind_speed_10m, (number % 1_000) / 10)
    overwrite(element?.daily?.temperature_2m_min, (number % 250) / 10)
  }
  return JSON.stringify(body)
}

const overwrite = (column: unknown, value: number): void => {
  if (Array.isArray(column)) for (let i = 0; i < column.length; i++) if (column[i] !== null) column[i] = value
}
