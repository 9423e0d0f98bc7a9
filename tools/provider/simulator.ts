// A simulated weather provider: speaks the real provider's protocol with seeded weather, and is controlled by /control.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Clock, systemClock } from 'abohawa/common/clock.ts'
import { InputError, messageOf } from 'abohawa/common/errors.ts'
import { readChange } from './change.ts'
import { type Answer, deliver, type HttpCall } from './delivery.ts'
import { answerForecast, type ForecastParts } from './forecast-call.ts'
import { createFreeLimits, unlimited } from './limits.ts'
import { metaOf, modelNames, runAt } from './model-runs.ts'
import { errorBody, Refusal } from './parameters.ts'
import { type Counts, Steering } from './steering.ts'

export type SimulatorOptions = {
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Default 0, a free port. */
  readonly port?: number
  /** Equal seeds give equal weather; default 1. */
  readonly seed?: number
  readonly clock?: Clock
  /** Time before each forecast is sent; default 0. */
  readonly latencyMs?: number
  /** `free`: the limits of the free host. Default `none`. */
  readonly limits?: 'free' | 'none'
  /** Serves forecasts only to this key, as the customer host does. */
  readonly apiKey?: string
  /** `ecmwf`: a model run every six hours changes the weather. `none`: it never changes. Default `ecmwf`. */
  readonly runs?: 'ecmwf' | 'none'
}

export type Simulator = {
  /** Origin, without a trailing slash. */
  readonly url: string
  counts(): Counts
  /** Ends all connections and frees the port. */
  close(): Promise<void>
}

// A thousand coordinates in a query string need far more than Node's 16 kB.
const maxHeaderSize = 256 * 1024

/** @throws InputError when the address can't be listened on */
export const startSimulator = async (options: SimulatorOptions = {}): Promise<Simulator> => {
  const { host = '127.0.0.1', port = 0, seed = 1, clock = systemClock, runs = 'ecmwf' } = options
  const steering = new Steering(clock, options.latencyMs ?? 0)
  const limits = options.limits === 'free' ? createFreeLimits(steering.clock) : unlimited
  const firstRun = runAt(clock.now())
  const parts: ForecastParts = {
    steering,
    limits,
    apiKey: options.apiKey,
    moment: () => {
      const now = steering.clock.now()
      return { seed, now, run: runs === 'none' ? undefined : runAt(now) }
    },
  }

  const control = async (request: IncomingMessage): Promise<Answer> => {
    try {
      if (request.method === 'POST') {
        const change = readChange(await readBody(request))
        steering.apply(change)
        if (change.reset) limits.clear()
      }
      return json(200, JSON.stringify(steering.report()))
    } catch (error) {
      const known = error instanceof InputError || error instanceof Refusal
      return json(error instanceof Refusal ? error.status : known ? 400 : 500, errorBody(messageOf(error)))
    }
  }

  const answer = async (httpCall: HttpCall): Promise<void> => {
    const { request } = httpCall
    const path = request.url?.split('?', 1)[0] ?? ''
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const model = /^\/data\/([^/]+)\/static\/meta\.json$/.exec(path)?.[1]
    if (path === '/v1/forecast' && method === 'GET') return answerForecast(parts, httpCall)
    if (path === '/control' && (method === 'GET' || method === 'POST'))
      return deliver(httpCall, await control(request), 'whole')
    if (model !== undefined && modelNames.has(model) && method === 'GET') {
      const run = runs === 'none' ? firstRun : runAt(steering.clock.now())
      return deliver(httpCall, json(200, metaOf(run)), 'whole')
    }
    return deliver(httpCall, json(404, errorBody('Not Found')), 'whole')
  }

  const server = createServer({ maxHeaderSize }, (request, response) => {
    // The client disconnected within its body.
    answer(httpCallOf(request, response)).catch(() => request.socket.destroy())
  })
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>()
  server.on('error', error => {
    reject(new InputError(`the provider can't listen on ${host}:${port}: ${error.message}`, { cause: error }))
  })
  server.listen(port, host, resolve)
  await listening

  return {
    url: urlOf(server.address() as AddressInfo),
    counts: () => steering.counts,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const maxBodyBytes = 128 * 1024

/** The body of a POST to /control. @throws Refusal when it is too long */
const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    // The rest is read and dropped, so that the client gets the refusal.
    if (bytes <= maxBodyBytes) chunks.push(chunk)
  }
  if (bytes > maxBodyBytes) throw new Refusal(413, 'Payload Too Large')
  return Buffer.concat(chunks).toString()
}

const httpCallOf = (request: IncomingMessage, response: ServerResponse): HttpCall => {
  const disconnected = new AbortController()
  response.once('close', () => disconnected.abort())
  return { request, response, disconnected: disconnected.signal }
}

const json = (status: number, body: string): Answer => ({ status, type: 'json', body })

// A listener on every address is reached through loopback.
const urlOf = ({ address, family, port }: AddressInfo): string => {
  const host = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address
  return `http://${family === 'IPv6' ? `[${host}]` : host}:${port}`
}
