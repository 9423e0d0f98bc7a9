// A gateway as most would compose it: Fastify with its log, the key looked up in Redis by its hash, the rate-limit plugin
// counting in Redis by key, lru-cache with the parsed response of the origin, which is serialised for each request, and the plugins
// for ETags and compression.

import { createHash } from 'node:crypto'
import compress from '@fastify/compress'
import etag from '@fastify/etag'
import rateLimit from '@fastify/rate-limit'
import { fastify } from 'fastify'
import { Redis } from 'ioredis'
import { LRUCache } from 'lru-cache'

const [origin = '', redisUrl = '', limit = '', originKey = ''] = process.argv.slice(2)

const redis = new Redis(redisUrl)
const cache = new LRUCache<string, object>({ max: 20_000 })
const app = fastify({ logger: true })
const keyOf = (headers: Record<string, unknown>): string => String(headers['x-api-key'])

app.addHook('onRequest', async (request, reply) => {
  const hash = createHash('sha256').update(keyOf(request.headers)).digest('hex')
  if ((await redis.get(`usual:key:${hash}`)) === null) return reply.code(401).send({ error: 'unknown key' })
})
await app.register(rateLimit, {
  redis,
  nameSpace: 'usual:count:',
  max: Number(limit),
  timeWindow: '1 day',
  keyGenerator: request => keyOf(request.headers),
})
// First the tag of the body, then its compression.
await app.register(etag)
await app.register(compress)
app.get('/*', async request => {
  const held = cache.get(request.url)
  if (held) return held
  const response = await fetch(origin + request.url, { headers: { 'x-api-key': originKey } })
  const weather = (await response.json()) as object
  const freshFor = Number(/max-age=(\d+)/.exec(response.headers.get('cache-control') ?? '')?.[1] ?? 0)
  cache.set(request.url, weather, { ttl: Math.max(1, freshFor * 1000) })
  return weather
})
const url = await app.listen({ host: '127.0.0.1', port: 0 })
process.stdout.write(`${JSON.stringify({ msg: 'listening', listener: 'api', url })}\n`)
