// One URL with one key on kept connections: the gateway on its two stores beside a plain server and bare Fastify. And the same with a
// new connection for each request, as from PHP, serverless functions and cron with curl.

import { join } from 'node:path'
import type { Env } from '../../test/scenarios/set-up.ts'
import { checked, compareAll, measureInRounds, type Subject, tableOf } from '../rounds.ts'
import { count, type Row } from '../row.ts'
import { gatewaySubject, logged, pathsInTurn } from '../servers/gateway.ts'
import { nginxSubject } from '../servers/nginx.ts'
import { type CertificateFiles, readySubject } from '../servers/others.ts'
import { openWorld, path, type World } from '../tools/world.ts'

/** The gateway on the embedded store and on Redis. @param more settings of both */
export const onBothStores = (
  { folder, redisUrl, env, reference }: World,
  headers: Record<string, string> = {},
  more: Env = {},
): Subject[] => {
  const stores = [
    ['embedded', 'embedded store', { ABOHAWA_STORE__PATH: join(folder, 'one.db') }],
    ['redis', 'Redis', { ABOHAWA_REDIS__URL: redisUrl }],
  ] as const
  return stores.map(([id, name, store]) =>
    gatewaySubject({
      id,
      name: `Abohawa, ${name}, 1 key`,
      folder,
      env: env({ ...store, ...more }),
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

export const one: Row = {
  id: 'one',
  what: 'one URL on kept connections, embedded store and Redis, beside node:http, Fastify and nginx + Lua',
  run: async (scope, options, progress) => {
    const world = await openWorld(scope)
    const subjects = [...besides(world), ...onBothStores(world)]
    const measured = await measureInRounds(world, subjects, options, progress)
    return {
      findings: [
        ...compareAll(measured, {
          'one URL on Redis, of raw node:http by CPU': ['redis', 'raw', 'cpu'],
          'embedded store, of bare Fastify by CPU': ['embedded', 'fastify', 'cpu', '≥', 0.85],
          'Redis, 1 key, of bare Fastify by CPU': ['redis', 'fastify', 'cpu', '≥', 0.85],
          'the same: p99, of raw': ['redis', 'raw', 'p99', '≤', 3],
          'Redis, 1 key, server and Redis, of nginx + Lua + Redis': ['redis', 'nginx', 'both', '≤', 0.87],
        }),
        checked(measured),
      ],
      table: tableOf(measured),
      notes: [`The body has ${count(world.body.length)} bytes, the same for all.`],
    }
  },
}

export const newConnections: Row = {
  id: 'new',
  what: 'a new connection for each request, beside node:http, Fastify and nginx + Lua',
  run: async (scope, options, progress) => {
    const world = await openWorld(scope)
    const closing = { connection: 'close' }
    const { folder, redisUrl, env, reference } = world
    const subjects = [
      ...besides(world, closing),
      ...onBothStores(world, closing),
      gatewaySubject({
        id: 'redis-log',
        name: 'Abohawa, Redis, 1 key, access log to a file',
        folder,
        env: env({ ABOHAWA_REDIS__URL: redisUrl, ABOHAWA_REDIS__PREFIX: 'logged:', ...logged }),
        traffic: pathsInTurn(reference, [path], closing),
      }),
    ]
    const measured = await measureInRounds(world, subjects, options, progress)
    return {
      findings: [
        ...compareAll(measured, {
          'a new connection for each request, embedded store, of raw': ['embedded', 'raw', 'cpu', '≤', 1.7],
          'the same, Redis': ['redis', 'raw', 'cpu', '≤', 1.7],
          'the same with the access log, of nginx + Lua + Redis': ['redis-log', 'nginx', 'cpu', '≤', 1],
        }),
        checked(measured),
      ],
      table: tableOf(measured),
    }
  },
}
