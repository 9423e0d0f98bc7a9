// The ops listener and the status listener of a gateway with several workers: health and metrics of all workers as one, the
// workers themselves, and everything else from the first worker that is ready, whose own listener admits and answers it.
// Knows workers by their sockets; they are started and replaced by pool.ts.

import { Agent, type IncomingMessage, request as requestOf, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { createSingleFlight } from '../cache/single-flight.ts'
import { isoOf } from '../calendar.ts'
import { type AdmissionOptions, createAdmit } from '../ops/admission.ts'
import { mayHaveBody } from '../ops/body-fault.ts'
import { type BoundedServer, createBoundedServer, type ServerBounds } from '../ops/bounded-server.ts'
import { isProbePath } from '../ops/probes.ts'
import { Refusal, type RefusalObserver } from '../ops/refusal.ts'
import { type Route, routeFault, routeOfOps, routeOfStatus } from '../ops/routes.ts'
import { mergedMetrics } from './merged-metrics.ts'
import type { WorkerReport } from './pool.ts'

export type FrontParts = {
  readonly workers: () => readonly WorkerReport[]
  /** How many there should be. */
  readonly configured: () => number
  /** How many have ended by themselves since the start. */
  readonly ended: () => number
  /** How many were ended since the start because they did not respond. */
  readonly timedOut: () => number
  /** How often the port was closed since the start, because no worker came in time. */
  readonly closings: () => number
  /** Begins to replace all workers, one at a time; false when that is under way. */
  readonly restart: () => boolean
  readonly isDraining: () => boolean
  readonly observer: RefusalObserver
  /** What this process has counted, in the text format of Prometheus. */
  readonly counts: () => string
}

export type OpsProxyOptions = AdmissionOptions & Omit<ServerBounds, 'answerWithinMs'>

export type OpsProxy = Omit<BoundedServer, 'apply'> & {
  /** From now on; the host stays. */
  apply(options: OpsProxyOptions): void
}

const workersPath = '/workers'
const restartPath = '/workers/restart'
const ownRoutes: ReadonlyMap<string, Route> = new Map([
  [workersPath, { methods: ['GET', 'HEAD'] }],
  [restartPath, { methods: ['POST'] }],
])

const jsonType = 'application/json; charset=utf-8'
const metricsType = 'text/plain; version=0.0.4; charset=utf-8'
// Longer than any worker takes for an answer, which has a bound of its own.
const answerWithinMs = 120_000
// A worker that hangs must not take the probes of the others with it.
const queryWithinMs = 3_000
// A connection to a worker has one request: no byte of one can be in front of those of another, whatever their framing. This end
// closes it. Told to close, the worker may do so while the end of the request is written, which would lose its answer.
class OneRequestAgent extends Agent {
  override keepSocketAlive(): boolean {
    return false
  }
}
const agent = new OneRequestAgent({ keepAlive: true })
// Of one connection, and not of what is behind it.
const hopByHop = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]
// Written anew, or answered here already.
const ofTheRequest = ['content-length', 'expect', 'x-forwarded-for']
// The worker's admission judges these as it would without this process in front: a request that names one in `connection`
// would be keptForAdmission without it.
const keptForAdmission = new Set(['authorization', 'host', 'origin', 'sec-fetch-site', 'user-agent'])

/** Whether it answers probes alone is a matter of its section. */
export const buildOpsProxy = (parts: FrontParts, options: OpsProxyOptions): OpsProxy => {
  const isOps = options.section === 'ops'
  const routeOf = (path: string): Route | undefined =>
    isOps ? (ownRoutes.get(path) ?? routeOfOps(path)) : routeOfStatus(path)
  const paths = isOps
    ? '/livez, /readyz, /metrics, /workers or POST /workers/restart'
    : '/livez, /readyz or /metrics'
  let admit = createAdmit(options)
  // Those that ask at the same time get the same answer: each asks all workers, and puts their metrics together.
  const reports = createSingleFlight<string, Report>()
  const listener = createBoundedServer(
    async (request, response, withoutDeadline) => {
      const { url = '', method = '' } = request
      const [path = ''] = url.split('?', 1)
      const route = routeOf(path)
      if (isOps && !isProbePath(path) && !ownRoutes.has(path)) {
        if (route?.streams) withoutDeadline()
        return forward(parts, request, response)
      }
      const refusal = admit(request, route) ?? routeFault(method, route, paths)
      if (refusal) throw refusal
      if (path === '/livez') send(response, 200, { status: 'live' })
      else if (path === '/readyz') report(response, await reports.run(path, () => readiness(parts)).result)
      else if (path === '/metrics') report(response, await reports.run(path, () => metrics(parts)).result)
      else if (path === workersPath) send(response, 200, { workers: reportOf(parts) })
      else if (parts.restart()) send(response, 202, { workers: reportOf(parts) })
      else throw new Refusal(409, 'busy', 'the workers are being restarted already')
    },
    parts.observer,
    { ...options, answerWithinMs },
  )
  return {
    ...listener,
    apply: next => {
      admit = createAdmit(next)
      listener.apply({ ...next, answerWithinMs })
    },
  }
}

type Report = { readonly status: number; readonly type: string; readonly body: Buffer }

const jsonReport = (status: number, body: object): Report => ({
  status,
  type: jsonType,
  body: Buffer.from(JSON.stringify(body)),
})
const report = (response: ServerResponse, { status, type, body }: Report): void =>
  void response.writeHead(status, { 'content-type': type, 'content-length': body.length }).end(body)
const send = (response: ServerResponse, status: number, body: object): void =>
  report(response, jsonReport(status, body))

/** The workers as JSON: instants in ISO 8601. */
const reportOf = ({ workers }: FrontParts) =>
  workers().map(({ number, pid, isReady, isResponding, startedAt }) => ({
    number,
    pid,
    isReady,
    isResponding,
    startedAt: isoOf(startedAt),
  }))

const readyOf = ({ workers }: FrontParts): readonly WorkerReport[] =>
  workers().filter(({ isReady }) => isReady)

type Answer = { readonly status: number; readonly body: Buffer }

/** A worker's own answer; undefined when it has just ended, or hangs. */
const query = ({ opsPath }: WorkerReport, path: string): Promise<Answer | undefined> =>
  new Promise(resolve => {
    const sent = requestOf({
      agent,
      socketPath: opsPath,
      path,
      headers: { host: 'localhost' },
      signal: AbortSignal.timeout(queryWithinMs),
    })
    sent.on('error', () => resolve(undefined))
    sent.on('response', response => {
      buffer(response).then(
        body => resolve({ status: response.statusCode ?? 0, body }),
        () => resolve(undefined),
      )
    })
    sent.end()
  })

const queryAll = async (
  parts: FrontParts,
  path: string,
): Promise<readonly { readonly number: number; readonly answer: Answer }[]> => {
  const answers = await Promise.all(
    readyOf(parts).map(async worker => ({ number: worker.number, answer: await query(worker, path) })),
  )
  return answers.flatMap(({ number, answer }) => (answer ? [{ number, answer }] : []))
}

// One worker that serves is enough; how many of them do is a detail, as a store that is away is one.
const readiness = async (parts: FrontParts): Promise<Report> => {
  const answers = await queryAll(parts, '/readyz')
  const ready = answers.filter(({ answer }) => answer.status === 200)
  const [first] = [...ready, ...answers]
  const { detail = {} } = first ? (JSON.parse(first.answer.body.toString()) as { detail?: object }) : {}
  const isReady = ready.length > 0 && !parts.isDraining()
  return jsonReport(isReady ? 200 : 503, {
    status: isReady ? 'ready' : parts.isDraining() ? 'draining' : 'starting',
    detail: { ...detail, workers: `${ready.length} of ${parts.configured()} ready` },
  })
}

const metrics = async (parts: FrontParts): Promise<Report> => {
  const answers = await queryAll(parts, '/metrics')
  const own = [
    '# HELP abohawa_workers Worker processes of this gateway that are ready, that do not respond, and how many there should be.',
    '# TYPE abohawa_workers gauge',
    `abohawa_workers{state="ready"} ${readyOf(parts).length}`,
    `abohawa_workers{state="unresponsive"} ${parts.workers().filter(({ isResponding }) => !isResponding).length}`,
    `abohawa_workers{state="configured"} ${parts.configured()}`,
    '# HELP abohawa_workers_ended_total Worker processes that ended by themselves, and were replaced.',
    '# TYPE abohawa_workers_ended_total counter',
    `abohawa_workers_ended_total ${parts.ended()}`,
    '# HELP abohawa_workers_timed_out_total Worker processes that were ended because they did not respond.',
    '# TYPE abohawa_workers_timed_out_total counter',
    `abohawa_workers_timed_out_total ${parts.timedOut()}`,
    '# HELP abohawa_workers_port_closed_total Times that the port of the API was closed, because no worker came in time.',
    '# TYPE abohawa_workers_port_closed_total counter',
    `abohawa_workers_port_closed_total ${parts.closings()}`,
    parts.counts(),
  ]
  const body = Buffer.from(
    mergedMetrics(
      own.join('\n'),
      new Map(answers.map(({ number, answer }) => [number, answer.body.toString()])),
    ),
  )
  return { status: 200, type: metricsType, body }
}

/** Hands a request to the first worker that is ready, and its answer back as it comes. */
const forward = async (
  parts: FrontParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  // The same one for as long as it runs: what it is doing for an operator, such as warming, is known there alone.
  const [worker] = readyOf(parts)
  if (!worker) throw new Refusal(503, 'draining', 'no worker is ready; try again in a moment')
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const sent = requestOf({
    agent,
    socketPath: worker.opsPath,
    method: request.method,
    path: request.url,
    // Its admission judges the headers as they came; the socket has no address of the caller.
    headers: [
      ...endToEnd(request.rawHeaders, ofTheRequest, keptForAdmission),
      'x-forwarded-for',
      request.socket.remoteAddress ?? '',
      ...framingOf(request),
    ],
  })
  sent.on('response', resolve)
  sent.on('error', () =>
    reject(new Refusal(503, 'draining', 'the worker that had the request has ended; send the request again')),
  )
  response.once('close', () => {
    // The rest of a body that the worker did not want is read, so that the next request on the connection is.
    request.unpipe(sent).resume()
    sent.destroy()
  })
  if (mayHaveBody(request)) request.pipe(sent)
  else sent.end()
  const answer = await promise
  for (const name of response.getHeaderNames()) response.removeHeader(name)
  response.writeHead(answer.statusCode ?? 500, endToEnd(answer.rawHeaders))
  // A worker may end in the middle. To a client of HTTP/1.0 a close may be the end of a whole answer, a reset is none.
  answer.once('error', () => {
    if (request.httpVersionMinor === 0) request.socket.resetAndDestroy()
    else response.destroy()
  })
  answer.pipe(response)
}

/** How the body that goes to the worker is framed: written anew, so that both ends agree where it ends. */
const framingOf = (request: IncomingMessage): readonly string[] => {
  const { 'transfer-encoding': coding, 'content-length': length = '0' } = request.headers
  if (!mayHaveBody(request)) return []
  return coding === undefined ? ['content-length', length] : ['transfer-encoding', 'chunked']
}

/** Names and values in turn, without what is of one connection and what `connection` names beside that, save what is kept. */
const endToEnd = (
  rawHeaders: readonly string[],
  alsoDropped: readonly string[] = [],
  kept: ReadonlySet<string> = new Set(),
): string[] => {
  const headers = rawHeaders.flatMap((name, i) =>
    i % 2 === 0 ? [{ name, lowerCase: name.toLowerCase(), value: rawHeaders[i + 1] ?? '' }] : [],
  )
  const named = headers
    .filter(({ lowerCase }) => lowerCase === 'connection')
    .flatMap(({ value }) => value.toLowerCase().split(/[\s,]+/))
    .filter(name => !kept.has(name))
  const dropped = new Set([...hopByHop, ...alsoDropped, ...named])
  return headers.flatMap(({ name, lowerCase, value }) => (dropped.has(lowerCase) ? [] : [name, value]))
}
