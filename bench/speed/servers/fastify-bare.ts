// Fastify alone: routes with the gateway's paths, one ready body and the gateway's headers. No key, no count, no cache, no
// log. Over TLS with a certificate and its key. The gateway's cost beyond its framework is measured against it.

import { readFileSync } from 'node:fs'
import { fastify } from 'fastify'

const [bodyFile = '', headersFile = '', cert, key] = process.argv.slice(2)
const body = readFileSync(bodyFile)
const headers: Record<string, string> = {
  'content-type': 'application/json; charset=utf-8',
  ...JSON.parse(readFileSync(headersFile, 'utf8')),
}

const app = fastify({
  https: cert && key ? { cert: readFileSync(cert), key: readFileSync(key), minVersion: 'TLSv1.3' } : null,
})
for (const path of [
  '/weather/:type/:id',
  '/weather/coords/:lat/:lng',
  '/forecast/:type/:id',
  '/locations',
  '/locations/:type/:id',
])
  app.get(`/api/v1${path}`, (_request, reply) => reply.headers(headers).send(body))
const url = await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 0) })
process.stdout.write(`${JSON.stringify({ msg: 'listening', listener: 'api', url })}\n`)
