// Fastify alone: a route with the gateway's path, one ready body and the gateway's headers. No key, no count, no cache, no
// log. The gateway's cost beyond its framework is measured against it.

import { readFileSync } from 'node:fs'
import { fastify } from 'fastify'

const [bodyFile = '', headersFile = ''] = process.argv.slice(2)
const body = readFileSync(bodyFile)
const headers: Record<string, string> = {
  'content-type': 'application/json; charset=utf-8',
  ...JSON.parse(readFileSync(headersFile, 'utf8')),
}

const app = fastify()
app.get('/api/v1/weather/:type/:id', (_request, reply) => reply.headers(headers).send(body))
const url = await app.listen({ host: '127.0.0.1', port: 0 })
process.stdout.write(`${JSON.stringify({ msg: 'listening', listener: 'api', url })}\n`)
