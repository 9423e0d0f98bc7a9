// The composition that is put together first from well-known parts: `node fastify-usual.ts <port> <file> <upstream>
// <redis>`. The key is looked up in Redis, a plugin counts it there, the provider's answer is cached as an object by its
// address, and every reply is stringified and logged.

import { createHash } from 'node:crypto'
import rateLimit from '@fastify/rate-limit'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { LRUCache } from 'lru-cache'

const [port, , upstream = '', redisUrl = ''] = process.argv.slice(2)
const redis = new Redis(redisUrl)
const cache = new LRUCache<string, object>({ max: 10_000, ttl: 3_600_000 })

const app = Fastify({ logger: true })
app.get('/', async () => 'here')
await app.register(async gateway => {
  gateway.addHook('onRequest', async (request, reply) => {
    const hash = createHash('sha256').update(String(request.headers['x-api-key'])).digest('hex')
    if ((await redis.hget(`peer:key:${hash}`, 'id')) === null)
      return reply.code(401).send({ error: 'the key is not known' })
  })
  await gateway.register(rateLimit, {
    redis,
    max: 1_000_000_000,
    timeWindow: '1 day',
    keyGenerator: request => String(request.headers['x-api-key']),
  })
  gateway.get('/*', async request => {
    const cached = cache.get(request.url)
    if (cached) return cached
    const answer = (await (await fetch(upstream + request.url)).json()) as object
    cache.set(request.url, answer)
    return answer
  })
})
await app.listen({ port: Number(port), host: '127.0.0.1' })
