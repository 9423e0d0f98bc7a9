// The ops listener and the health listener of a gateway with several workers. Answers health, metrics and /workers for all
// workers; proxies every other request to the first ready worker, whose own listener admits and answers it. Knows workers by
// their sockets; pool.ts starts and replaces them.

import { Agent, type IncomingMessage, request as requestOf, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { createSingleFlight } from '../cache/single-flight.ts'
import { isoOf } from '../calendar.ts'
import { type AdmissionOptions, createAdmit } from '../ops/admission.ts'
import { mayHaveBody } from '../ops/body-fault.ts'
import { type BoundedServer, createBoundedServer, type ServerBounds } from '../ops/bounded-server.ts'
import { isProbePath } from '../ops/probes.ts'
import { Refusal, type RefusalObserver } from '../ops/refusal.ts'
import { type Route, routeFault, routeOfHealth, routeOfOps } from '../ops/routes.ts'
import { mergedMetrics } from './merged-metrics.ts'
import type { WorkerReport } from './pool.ts'

export type OpsProxyParts = {
  readonly workers: () => readonly WorkerReport[]
  /** The configured number of workers. */
  readonly configured: () => number
  /** How many have ended by themselves since the start. */
  readonly ended: () => number
  /** How many were ended since the start because they did not respond. */
  readonly timedOut: () => number
  /** How often the port was closed since the start, because no worker came in time. */
  readonly closings: () => number
  /** Begins to replace all workers, one at a time; false when a restart runs already. */
  readonly restart: () => boolean
  readonly isDraining: () => boolean
  readonly observer: RefusalObserver
  /** The metrics of this process, in the text format of Prometheus. */
  readonly counts: () => string
}

export type OpsProxyOptions = AdmissionOptions & ServerBounds

const workersPath = '/workers'
const restartPath = '/workers/restart'
const ownRoutes: ReadonlyMap<string, Route> = new Map([
  [workersPath, { methods: ['GET', 'HEAD'] }],
  [restartPath, { methods: ['POST'] }],
])

const jsonType = 'application/json; charset=utf-8'
const metricsType = 'text/plain; version=0.0.4; charset=utf-8'
// A worker that hangs must not delay the probes of the others.
const queryWithinMs = 3_000
// A connection to a worker carries one request, so that no framing can mix the bytes of two. This process closes it: with
// `connection: close` the worker might close it while the end of the request is written, and the answer would be lost.
class OneRequestAgent extends Agent {
  override keepSocketAlive(): boolean {
    return false
  }
}
const agent = new OneRequestAgent({ keepAlive: true })
// Headers of one connection (RFC 9110, 7.6.1); a proxy does not forward them.
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
// This proxy writes them itself, or has answered them.
const ofTheRequest = ['content-length', 'expect', 'x-forwarded-for']
// The worker's admission checks these headers, so a request cannot drop one by naming it in `connection`.
const keptForAdmission = new Set(['authorization', 'host', 'origin', 'sec-fetch-site', 'user-agent'])

/** The section of the options decides whether it answers probes alone. */
export const buildOpsProxy = (parts: OpsProxyParts, options: OpsProxyOptions): BoundedServer => {
  const isOps = options.section === 'ops'
  const routeOf = (path: string): Route | undefined =>
    isOps ? (ownRoutes.get(path) ?? routeOfOps(path)) : routeOfHealth(path)
  const paths = isOps
    ? '/livez, /readyz, /metrics, /workers or POST /workers/restart'
    : '/livez, /readyz or /metrics'
  const admit = createAdmit(options)
  // Concurrent requests share a report, because each report queries all workers.
  const reports = createSingleFlight<string, Report>()
  return createBoundedServer(
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
      else if (path === '/readyz')
        sendReport(response, await reports.run(path, () => readiness(parts)).result)
      else if (path === '/metrics') sendReport(response, await reports.run(path, () => metrics(parts)).result)
      else if (path === workersPath) send(response, 200, { workers: reportOf(parts) })
      else if (parts.restart()) send(response, 202, { workers: reportOf(parts) })
      else throw new Refusal(409, 'busy', 'the workers are being restarted already')
    },
    parts.observer,
    options,
  )
}

type Report = { readonly status: number; readonly type: string; readonly body: Buffer }

const jsonReport = (status: number, body: object): Report => ({
  status,
  type: jsonType,
  body: Buffer.from(JSON.stringify(body)),
})
const sendReport = (response: ServerResponse, { status, type, body }: Report): void =>
  void response.writeHead(status, { 'content-type': type, 'content-length': body.length }).end(body)
const send = (response: ServerResponse, status: number, body: object): void =>
  sendReport(response, jsonReport(status, body))

/** The workers as JSON: instants in ISO 8601. */
const reportOf = ({ workers }: OpsProxyParts) =>
  workers().map(({ number, pid, isReady, isResponding, startedAt }) => ({
    number,
    pid,
    isReady,
    isResponding,
    startedAt: isoOf(startedAt),
  }))

const readyOf = ({ workers }: OpsProxyParts): readonly WorkerReport[] =>
  workers().filter(({ isReady }) => isReady)

type Answer = { readonly status: number; readonly body: Buffer }

/** A worker's answer; undefined when the worker has just ended, or hangs. */
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
  parts: OpsProxyParts,
  path: string,
): Promise<readonly { readonly number: number; readonly answer: Answer }[]> => {
  const answers = await Promise.all(
    readyOf(parts).map(async worker => ({ number: worker.number, answer: await query(worker, path) })),
  )
  return answers.flatMap(({ number, answer }) => (answer ? [{ number, answer }] : []))
}

// One ready worker is enough; the number of ready workers is a detail, like the state of the store.
const readiness = async (parts: OpsProxyParts): Promise<Report> => {
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

const metrics = async (parts: OpsProxyParts): Promise<Report> => {
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

/** Forwards a request to the first ready worker, and streams its answer back. */
const forward = async (
  parts: OpsProxyParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  // The same worker for as long as it runs: only that worker knows what it does for an operator, such as warming.
  const [worker] = readyOf(parts)
  if (!worker) throw new Refusal(503, 'draining', 'no worker is ready; try again in a moment')
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const sent = requestOf({
    agent,
    socketPath: worker.opsPath,
    method: request.method,
    path: request.url,
    // The worker's admission checks the headers as they came; its Unix socket has no address of the caller.
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
    // Reads the rest of a body that the worker did not read, so that the next request on the connection is read.
    request.unpipe(sent).resume()
    sent.destroy()
  })
  if (mayHaveBody(request)) request.pipe(sent)
  else sent.end()
  const answer = await promise
  for (const name of response.getHeaderNames()) response.removeHeader(name)
  response.writeHead(answer.statusCode ?? 500, endToEnd(answer.rawHeaders))
  // A worker may end in the middle of an answer. For a client of HTTP/1.0 a close would be the end of a whole answer, so the
  // connection is reset.
  answer.once('error', () => {
    if (request.httpVersionMinor === 0) request.socket.resetAndDestroy()
    else response.destroy()
  })
  answer.pipe(response)
}

/** The framing headers of the body to the worker, written anew so that both ends agree where it ends. */
const framingOf = (request: IncomingMessage): readonly string[] => {
  const { 'transfer-encoding': coding, 'content-length': length = '0' } = request.headers
  if (!mayHaveBody(request)) return []
  return coding === undefined ? ['content-length', length] : ['transfer-encoding', 'chunked']
}

/**
 * Raw headers without those of one connection, those that `connection` names, and `alsoDropped`.
 * @param kept headers that `connection` cannot drop
 */
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
