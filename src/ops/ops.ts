// The ops listener, for those who run the gateway: is it alive, does it want traffic, what has it counted; all else is
// for operator-routes.ts. On a port of its own, loopback unless told otherwise; consumers never see it. Who is admitted
// stands in admission.ts; here it is bounded, so that nobody exhausts the process through it.

import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { createSingleFlight } from '../cache/single-flight.ts'
import { messageOf } from '../errors.ts'
import { type AdmissionOptions, createAdmit } from './admission.ts'
import type { Metrics } from './metrics.ts'
import type { OperatorParts } from './operator-routes.ts'
import type { Readiness } from './readiness.ts'
import { Refusal } from './refusal.ts'

// Imported by name it would load Node's own client for fetch too, a twentieth of a start.
const { createServer } = process.getBuiltinModule('node:http')

export type OpsParts = OperatorParts & {
  readonly metrics: Pick<Metrics, 'contentType' | 'exposition'>
  readonly readiness: Readiness
}

export type OpsOptions = AdmissionOptions & {
  readonly maxConnections: number
  /** Within which a request must have arrived. */
  readonly requestTimeoutMs: number
  /** For an answer to be made and read, beside the provider's own time; a reader that takes longer is dropped. */
  readonly answerWithinMs?: number
}

export type OpsListener = {
  readonly server: Server
  listen(at: { readonly host: string; readonly port: number }): Promise<unknown>
  /** From now on; the host stays. */
  apply(options: OpsOptions): void
  /** Breaks off what is still connected. */
  close(): Promise<void>
}

type Probe = { readonly status: number; readonly type: string; readonly body: Buffer }

const jsonType = 'application/json; charset=utf-8'
const reads = ['GET', 'HEAD']
const maxHeaderBytes = 16 * 1024

// Nothing that is said here is for a page of another origin, and nothing is to run in a browser: what the provider says
// is passed on under our origin.
const protection: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}

export const buildOps = ({ metrics, readiness, ...parts }: OpsParts, options: OpsOptions): OpsListener => {
  const { observer, protocol } = parts
  const { answerWithinMs = 30_000 } = options
  let { requestTimeoutMs } = options
  let admit = createAdmit(options)
  let rest: Promise<FastifyInstance> | undefined
  const openRest = async () => (await import('./operator-routes.ts')).buildOperatorRoutes(parts)

  const probes = new Map<string, () => Promise<Probe>>([
    ['/livez', async () => json(200, { status: 'live' })],
    [
      '/readyz',
      async () => {
        const report = await readiness.report()
        return json(report.status === 'ready' ? 200 : 503, report)
      },
    ],
    [
      '/metrics',
      async () => ({
        status: 200,
        type: metrics.contentType,
        body: Buffer.from(await metrics.exposition()),
      }),
    ],
  ])
  // However many ask at once, it is worked out once, and all of them are sent the same bytes.
  const working = createSingleFlight<string, Probe>()

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { url = '', method = '' } = request
    const [path = ''] = url.split('?', 1)
    const refusal =
      admit(request, path.startsWith('/provider/')) ??
      endpointFault(method, allowedMethods(path), protocol.passthrough.paths[0])
    if (refusal) throw refusal
    const probe = probes.get(path)
    if (!probe) {
      rest ??= openRest()
      ;(await rest).routing(request, response)
      return
    }
    const { status, type, body } = await working.run(path, probe).result
    response.writeHead(status, { 'content-type': type, 'content-length': body.length }).end(body)
  }

  const allowedMethods = (path: string): readonly string[] => {
    if (path === '/cache/purge') return ['POST']
    return probes.has(path) || path === '/cache/cell' || path.startsWith('/provider/') ? reads : []
  }

  const fail = (error: unknown, response: ServerResponse): void => {
    if (response.headersSent) {
      response.destroy()
      return
    }
    const isRefusal = error instanceof Refusal
    if (isRefusal) observer.refused(error.reason)
    const { status, body } = json(isRefusal ? error.status : 500, { error: messageOf(error) })
    const more = isRefusal ? error.headers : {}
    response.writeHead(status, { ...more, 'content-type': jsonType, 'content-length': body.length }).end(body)
  }

  const listen = (request: IncomingMessage, response: ServerResponse): void => {
    const late = setTimeout(() => {
      observer.refused('timeout')
      request.socket.destroy()
    }, answerWithinMs + parts.provider().totalTimeoutMs).unref()
    response.once('close', () => clearTimeout(late))
    for (const [name, value] of Object.entries(protection)) response.setHeader(name, value)
    answer(request, response).catch(error => fail(error, response))
  }

  const server = createServer(
    {
      // A missing host header is refused by us, with a sentence.
      requireHostHeader: false,
      maxHeaderSize: maxHeaderBytes,
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
    },
    listen,
  )
  server.maxConnections = options.maxConnections
  server.on('drop', () => observer.refused('connections'))
  // An expectation we do not know is no reason for the empty 417 that Node would send.
  server.on('checkExpectation', listen)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const refusal = unparsable(error.code, requestTimeoutMs)
    observer.refused(refusal.reason)
    refuseOn(socket as Socket, refusal)
  })

  return {
    server,
    listen: ({ host, port }) => once(server.listen(port, host), 'listening'),
    apply: next => {
      ;({ requestTimeoutMs } = next)
      admit = createAdmit(next)
      server.requestTimeout = requestTimeoutMs
      server.headersTimeout = requestTimeoutMs
      server.maxConnections = next.maxConnections
    },
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
      await (await rest)?.close()
    },
  }
}

const json = (status: number, body: object): Probe => ({
  status,
  type: jsonType,
  body: Buffer.from(JSON.stringify(body)),
})

/**
 * @param allowed methods of the path; none when it is not known
 * @param providerPath one that the provider answers
 */
const endpointFault = (
  method: string,
  allowed: readonly string[],
  providerPath: string,
): Refusal | undefined => {
  if (allowed.length === 0)
    return new Refusal(
      404,
      'path',
      `there is nothing here; try /livez, /readyz, /metrics, /cache/cell?of=…, POST /cache/purge or /provider${providerPath}?…`,
    )
  if (allowed.includes(method)) return undefined
  const allow = allowed.join(', ')
  return new Refusal(405, 'method', `the method is ${method}; allowed: ${allow}`, { allow })
}

/** What never became a request: no HTTP, too much of it, or too slowly. */
const unparsable = (code: string | undefined, requestTimeoutMs: number): Refusal => {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new Refusal(
      431,
      'unparsable',
      `the URL and headers are too large; allowed: ${maxHeaderBytes / 1024} KiB together`,
    )
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new Refusal(408, 'timeout', `the request did not arrive completely within ${requestTimeoutMs} ms`)
  return new Refusal(400, 'unparsable', 'the request is not valid HTTP')
}

// Straight to the socket, because there is no response to write to.
const refuseOn = (socket: Socket, refusal: Refusal): void => {
  const pending = pendingResponse(socket)
  if (pending && (pending.headersSent || pending.req.complete)) {
    // The answer to an earlier request on the same connection is still owed; what came behind it gets none.
    pending.once('finish', () => socket.destroySoon())
    return
  }
  const body = JSON.stringify({ error: refusal.message })
  const headers = Object.entries({
    ...protection,
    'content-type': jsonType,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}`)
  socket.write([`HTTP/1.1 ${refusal.status} Refused`, ...headers, '', body].join('\r\n'))
  socket.destroySoon()
}

// The response that Node is to write next on this connection, if any.
const pendingResponse = (socket: Socket): ServerResponse | undefined => {
  const { _httpMessage: message } = socket as Socket & { _httpMessage?: ServerResponse | null }
  return message ?? undefined
}
