// One ready body with the gateway's headers over HTTP/2 and TLS: `raw` with the streams of node:http2 itself, `fastify` with
// routes at the gateway's paths. No key, no count, no cache, no log.

import { readFileSync } from 'node:fs'
import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { fastify } from 'fastify'
import { apiPrefix, endpoints } from '../../../src/common/endpoints.ts'

const [kind = '', bodyFile = '', headersFile = '', certFile = '', keyFile = ''] = process.argv.slice(2)
const body = readFileSync(bodyFile)
const headers: Record<string, string> = {
  'content-type': 'application/json; charset=utf-8',
  'content-length': String(body.length),
  ...JSON.parse(readFileSync(headersFile, 'utf8')),
}
const certificate = { cert: readFileSync(certFile), key: readFileSync(keyFile) }

const listening = (port: number): void => {
  const line = { msg: 'listening', listener: 'api', url: `https://127.0.0.1:${port}` }
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

if (kind === 'raw') {
  const server = createSecureServer(certificate)
  const responseHeaders = { ':status': 200, ...headers }
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.respond(responseHeaders)
    stream.end(body)
  })
  server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () =>
    listening((server.address() as AddressInfo).port),
  )
} else {
  const app = fastify({ http2: true, https: certificate })
  for (const { path } of Object.values(endpoints))
    app.get(apiPrefix + path, (_request, reply) => reply.headers(headers).send(body))
  const url = await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 0) })
  listening(Number(new URL(url).port))
}
