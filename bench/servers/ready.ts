// One ready body for every request, without key, count, cache and log: `raw` from Node's own server, which everything is measured
// against, `fastify` from routes at the gateway's paths with its headers. Over TLS with a certificate, and then over HTTP/2 on request.

import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { type FastifyInstance, fastify } from 'fastify'
import { apiPrefix, endpoints } from '../../src/common/endpoints.ts'
import type { ReadyServer } from './others.ts'

const { kind, bodyFile, headersFile, tls, isHttp2 } = JSON.parse(process.argv[2] ?? '') as ReadyServer
const body = readFileSync(bodyFile)
const own = { 'content-type': 'application/json; charset=utf-8', 'content-length': String(body.length) }
const headers: Record<string, string> = { ...own, ...JSON.parse(readFileSync(headersFile, 'utf8')) }
const minVersion = 'TLSv1.3'
const certificate = tls && ({ cert: readFileSync(tls.cert), key: readFileSync(tls.key), minVersion } as const)

const rawServer = (): Server => {
  if (certificate && isHttp2)
    return createSecureServer(certificate).on('stream', (stream: ServerHttp2Stream) => {
      stream.respond({ ':status': 200, ...headers })
      stream.end(body)
    })
  const server = certificate ? createTlsServer(certificate) : createServer()
  server.on('request', (_request, response) => {
    response.writeHead(200, own)
    response.end(body)
  })
  // As long as the gateway does.
  server.keepAliveTimeout = 75_000
  return server
}

const fastifyServer = async (): Promise<Server> => {
  const server =
    certificate && isHttp2
      ? fastify({ http2: true, https: certificate })
      : fastify({ https: certificate ?? null })
  const app = server as unknown as FastifyInstance
  for (const { path } of Object.values(endpoints))
    app.get(apiPrefix + path, (_request, reply) => reply.headers(headers).send(body))
  await app.ready()
  return app.server
}

const server = kind === 'raw' ? rawServer() : await fastifyServer()
server.listen(0, '127.0.0.1', () => {
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`
  process.stdout.write(`${JSON.stringify({ msg: 'listening', listener: 'api', url })}\n`)
})
