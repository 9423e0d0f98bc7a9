// One URL with one key on kept connections: the gateway on its two stores beside a plain server and bare Fastify, what a line of the
// access log adds to it, and all places instead of one. And the same with a new connection for each request, as from PHP, serverless
// functions and cron with curl.

import { join } from 'node:path'
import type { Env } from '../../test/scenarios/set-up.ts'
import { measureInRounds, resultOf, type Subject } from '../rounds.ts'
import { count, type Row } from '../row.ts'
import { everyPlace, gatewaySubject, pathsInTurn } from '../servers/gateway.ts'
import { nginxSubject } from '../servers/nginx.ts'
import { type CertificateFiles, readySubject } from '../servers/others.ts'
import { logged } from '../tools/gateway-process.ts'
import { openWorld, path, type World } from '../tools/world.ts'

/** The gateway on the embedded store and on Redis. @param more settings of both @param isLogged with the access log to a file */
export const onBothStores = (
  { folder, redisUrl, env, reference }: World,
  headers: Record<string, string> = {},
  more: Env = {},
  isLogged = false,
): Subject[] => {
  const log = isLogged ? 'log' : 'one'
  const stores = [
    ['embedded', 'embedded', { ABOHAWA_STORE__PATH: join(folder, `${log}.db`) }],
    ['redis', 'Redis', { ABOHAWA_REDIS__URL: redisUrl, ABOHAWA_REDIS__PREFIX: `${log}:` }],
  ] as const
  return stores.map(([id, name, store]) =>
    gatewaySubject({
      id: isLogged ? `${id}-log` : id,
      name: `Abohawa, ${name}${isLogged ? ', log' : ''}`,
      folder,
      env: env({ ...store, ...(isLogged && logged), ...more }),
      traffic: pathsInTurn(reference, [path], headers),
    }),
  )
}

/** The plain servers and nginx, for the same requests. */
export const besides = (
  world: World,
  headers: Record<string, string> = {},
  tls?: CertificateFiles,
): Subject[] => [
  ...(['raw', 'fastify'] as const).map(kind =>
    readySubject(world, {
      kind,
      ...(tls && { tls }),
      workload: async () => ({ paths: [path], keys: [], headers }),
    }),
  ),
  nginxSubject(world, {
    keys: ['nginx-key-of-the-bench'],
    traffic: pathsInTurn(world.reference, [path], headers),
    ...(tls && { tls }),
  }),
]

const places = `all ${count(everyPlace.length)} places`

export const one: Row = {
  id: 'one',
  what: 'one URL on kept connections, and all places, beside node:http, Fastify and nginx + Lua',
  run: async (scope, options, progress) => {
    const world = await openWorld(scope)
    const { folder, redisUrl, env, reference } = world
    const subjects = [
      ...besides(world),
      ...onBothStores(world),
      ...onBothStores(world, {}, {}, true),
      gatewaySubject({
        id: 'places',
        name: `Abohawa, Redis, ${places}`,
        folder,
        env: env({ ABOHAWA_REDIS__URL: redisUrl, ABOHAWA_REDIS__PREFIX: 'places:' }),
        traffic: pathsInTurn(reference, everyPlace),
      }),
    ]
    const measured = await measureInRounds(world, subjects, options, progress)
    const result = resultOf(measured, {
      'CPU on Redis, vs raw node:http': ['redis', 'raw', 'cpu'],
      'answers per CPU, embedded, vs bare Fastify': ['embedded', 'fastify', 'cpu', '≥', 0.85],
      'answers per CPU, Redis, vs bare Fastify': ['redis', 'fastify', 'cpu', '≥', 0.85],
      'p99 on Redis, vs raw node:http': ['redis', 'raw', 'p99', '≤', 3],
      'CPU with Redis, vs nginx + Lua': ['redis', 'nginx', 'both', '≤', 0.87],
      [`answers per CPU, ${places}, vs one URL`]: ['places', 'redis', 'cpu', '≥', 0.85],
      'CPU of a log line, embedded': ['embedded-log', 'embedded', 'cpu', '+ ≤', 3],
      'CPU of a log line, Redis': ['redis-log', 'redis', 'cpu', '+ ≤', 3],
    })
    return { ...result, notes: [`The body has ${count(world.body.length)} bytes, the same for all.`] }
  },
}

export const newConnections: Row = {
  id: 'new',
  what: 'a new connection for each request, beside node:http, Fastify and nginx + Lua',
  run: async (scope, options, progress) => {
    const world = await openWorld(scope)
    const closing = { connection: 'close' }
    const subjects = [
      ...besides(world, closing),
      ...onBothStores(world, closing),
      ...onBothStores(world, closing, {}, true).filter(({ usesRedis }) => usesRedis),
    ]
    const measured = await measureInRounds(world, subjects, options, progress)
    return resultOf(measured, {
      'CPU, embedded, vs raw node:http': ['embedded', 'raw', 'cpu', '≤', 1.7],
      'CPU, Redis, vs raw node:http': ['redis', 'raw', 'cpu', '≤', 1.7],
      'CPU, Redis, log, vs nginx + Lua': ['redis-log', 'nginx', 'cpu', '≤', 1.1],
    })
  },
}
