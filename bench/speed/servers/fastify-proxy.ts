// Fastify before an origin and nothing else: no key, no count, no cache, no log.

import replyFrom from '@fastify/reply-from'
import { fastify } from 'fastify'

const [origin = ''] = process.argv.slice(2)

const app = fastify()
await app.register(replyFrom, { base: origin })
app.get('/*', (request, reply) => reply.from(request.url))
const url = await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 0) })
process.stdout.write(`${JSON.stringify({ msg: 'listening', listener: 'api', url })}\n`)
