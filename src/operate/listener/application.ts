// The Fastify application of a listener for operators: admits each request, and answers every failure with one sentence as
// JSON.

import { once } from 'node:events'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import type { ListenOptions, Socket } from 'node:net'
import { type FastifyInstance, type FastifyReply, fastify, type RouteOptions } from 'fastify'
import { closeAfterResponse, mustClose } from '../../common/closing.ts'
import { messageOf } from '../../common/errors.ts'
import { quoted } from '../../common/outside-text.ts'
import type { Admit } from './admission.ts'
import { addressOf, jsonType, type ListenerObserver, Refusal, statusOf } from './refusal.ts'
import { longestBodyBytes, takeJsonOnly } from './request-input.ts'
import { createBoundedServer, type ServerBounds } from './server.ts'

export type Listener = {
  readonly server: Server
  listen(at: Pick<ListenOptions, 'host' | 'port'>): Promise<unknown>
  close(): Promise<void>
}

// No route has a schema; Fastify's schema compilers would only slow the start.
const noSchema = (): never => {
  throw new Error('no route of operators has a schema')
}
const noSchemas = { buildValidator: () => noSchema, buildSerializer: () => noSchema }

// The API starts first: the application is made at the first connection, or after this time.
const makeAfterMs = 1_000

/** @param paths the known paths, for errors, @param register adds the routes */
export const createApplication = (
  { admit, paths, observer }: { readonly admit: Admit; readonly paths: string; observer: ListenerObserver },
  bounds: ServerBounds,
  register: (app: FastifyInstance) => Promise<void>,
): Listener => {
  let handle: RequestListener = () => {}
  const { server, refuse: refuseUnparsable } = createBoundedServer(
    (request, response) => handle(request, response),
    observer,
    bounds,
  )
  // Synchronous, so that bytes after a last request are not read as another.
  const refuse = (error: unknown, raw: IncomingMessage, reply: FastifyReply): void => {
    if (error instanceof Refusal) {
      observer.refused(error.reason, addressOf(raw))
      reply.headers(error.headers)
    }
    if (mustClose(raw) && !raw.complete) {
      observer.refused('unread_body')
      closeAfterResponse(raw, reply.raw)
      raw.resume()
      reply.header('connection', 'close')
    }
    reply.code(statusOf(error)).send({ error: messageOf(error) })
  }
  const nothing = (): Refusal => new Refusal(404, 'path', `there is nothing here; try ${paths}`)
  const make = async () => {
    const app = fastify({
      serverFactory: given => {
        handle = given
        return server
      },
      clientErrorHandler: (error, socket) => refuseUnparsable(error, socket as Socket),
      bodyLimit: longestBodyBytes,
      schemaController: { compilersFactory: noSchemas },
      // For a path that the router can't decode.
      frameworkErrors: (_error, { raw }, reply) =>
        refuse(
          new Refusal(400, 'path', `the path must be percent-encoded UTF-8, got ${quoted(raw.url ?? '')}`),
          raw,
          reply,
        ),
    }) as unknown as FastifyInstance
    const routes: RouteOptions[] = []
    app.setErrorHandler((error, { raw }, reply) => refuse(error, raw, reply))
    app.addHook('onRequest', ({ raw, routeOptions: { config } }, _reply, done) => {
      // The router would accept a whole URL, or one with a fragment.
      const isPath = /^\/[^#]*$/.test(raw.url ?? '')
      done(bodyFault(raw) ?? admit(raw, config) ?? (isPath ? undefined : nothing()))
    })
    app.setNotFoundHandler(({ raw, method, url }, reply) => {
      const allow = methodsOf(url.split('?', 1)[0] ?? '', routes).join(', ')
      const sentence = `the method must be one of ${allow}, got ${method}`
      refuse(allow === '' ? nothing() : new Refusal(405, 'method', sentence, { allow }), raw, reply)
    })
    takeJsonOnly(app)
    app.addHook('onRoute', route => void routes.push(route))
    await register(app)
    await app.ready()
    server.off('connection', holdUp)
    return app
  }
  // What can't be loaded later must not end the process, which serves consumers: `/readyz` tells its manager.
  const answerUnloadable = (cause: unknown): undefined => {
    observer.unloadable(cause)
    const body = JSON.stringify({ error: 'this listener did not load: see the log, and restart the gateway' })
    handle = (_request, response) =>
      void response.writeHead(500, { 'content-type': jsonType, connection: 'close' }).end(body)
    server.off('connection', holdUp)
  }
  let made: Promise<FastifyInstance | undefined> | undefined
  const makeOnce = () => (made ??= make().catch(answerUnloadable))
  // Connections are not read before their requests can be answered.
  const holdUp = async (socket: Socket): Promise<void> => {
    socket.pause()
    await makeOnce()
    socket.resume()
  }
  server.on('connection', holdUp)
  let timer: NodeJS.Timeout | undefined

  return {
    server,
    listen: async at => {
      await once(server.listen(at), 'listening')
      timer = setTimeout(makeOnce, makeAfterMs).unref()
    },
    close: async () => {
      clearTimeout(timer)
      const closed = server.listening && once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
      await (await made)?.close()
    },
  }
}

/** The methods of all routes with a path; the router itself finds one method at a time. */
const methodsOf = (path: string, routes: readonly RouteOptions[]): string[] =>
  routes
    .filter(({ url }) =>
      new RegExp(`^${url.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+').replace('*', '.*')}$`).test(
        path,
      ),
    )
    .flatMap(({ method }) => method)

const bodiless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

// Proxies disagree about where a body with these methods ends, so its bytes could be read as a request. Empty chunks are a body.
const bodyFault = ({ method = '', headers }: IncomingMessage): Refusal | undefined => {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
  return hasBody && bodiless.has(method)
    ? new Refusal(400, 'body', `a request with ${method} must have no body`)
    : undefined
}
