// A forwarding gateway without a cache: `node fastify-proxy.ts <port> <file> <upstream>`.

import replyFrom from '@fastify/reply-from'
import Fastify from 'fastify'

const [port, , upstream = ''] = process.argv.slice(2)
const app = Fastify()
await app.register(replyFrom, { base: upstream })
app.get('/', async () => 'here')
app.get('/*', (request, reply) => reply.from(request.url))
await app.listen({ port: Number(port), host: '127.0.0.1' })
