// The contenders in Node that are not our gateway: the plain server that the bars refer to, and two compositions.

import { createHash } from 'node:crypto'
import { truncate } from 'node:fs/promises'
import { Redis } from 'ioredis'
import type { Env, Scope } from '../../test/scenarios/set-up.ts'
import { sum } from '../row.ts'
import {
  type Absent,
  type CertificateFiles,
  type Contender,
  expectBody,
  get,
  limit,
  path,
  type World,
  withoutRedis,
} from './contender.ts'
import { type Pinned, serverCores, startPinned } from './pinned.ts'

const script = (name: string): string => new URL(`servers/${name}`, import.meta.url).pathname

const start = (
  scope: Scope,
  folder: string,
  [name = '', ...args]: readonly string[],
  env: Env = {},
): Promise<Pinned> =>
  startPinned(scope, folder, serverCores[0], [process.execPath, script(name), ...args], ['api'], env)

/**
 * One ready body without a key: from Node's own server, or from Fastify with the gateway's headers except the quota's. Over TLS
 * where there is a certificate.
 */
export const startReadyBody = async (
  scope: Scope,
  { folder, bodyFile, headersFile }: World,
  kind: 'raw' | 'fastify',
  { env = {}, tls }: { readonly env?: Env; readonly tls?: CertificateFiles | undefined } = {},
): Promise<Pinned> => {
  const args = kind === 'raw' ? ['origin.ts', bodyFile, ''] : ['fastify-bare.ts', bodyFile, headersFile]
  return start(scope, folder, tls ? [...args, tls.cert, tls.key] : args, env)
}

export const startRaw = async (scope: Scope, world: World, tls?: CertificateFiles): Promise<Contender> =>
  plain(
    'raw',
    `raw ${tls ? 'node:https' : 'node:http'}, one ready body`,
    await startReadyBody(scope, world, 'raw', { tls }),
    world,
  )

export const startBareFastify = async (
  scope: Scope,
  world: World,
  tls?: CertificateFiles,
): Promise<Contender> =>
  plain(
    'fastify',
    'bare Fastify, one ready body with the same headers',
    await startReadyBody(scope, world, 'fastify', { tls }),
    world,
  )

export const startProxy = async (scope: Scope, world: World): Promise<Contender> => {
  const server = await start(scope, world.folder, ['fastify-proxy.ts', world.originUrl])
  return plain('proxy', 'Fastify + reply-from: no key, no count, no cache', server, world)
}

const plain = (id: string, name: string, server: Pinned, { body }: World): Contender => {
  const url = server.urls.api ?? ''
  return {
    id,
    name,
    pid: () => server.child.pid ?? 0,
    renew: server.restart,
    workload: async () => ({ url, paths: [path], keys: [] }),
    check: async () => expectBody(await get(url + path), body),
  }
}

/**
 * The usual composition, which knows these keys. With an origin that wants a key it has ETags and compresses too.
 * @returns also the units counted for all keys
 */
export const startUsualServer = async (
  scope: Scope,
  { folder, redisUrl = '' }: World,
  keys: readonly string[],
  origin: { readonly url: string; readonly key?: string },
) => {
  const redis = new Redis(redisUrl)
  scope.teardown(() => redis.quit())
  for (const key of keys)
    await redis.set(`usual:key:${createHash('sha256').update(key).digest('hex')}`, 'enterprise')
  const args = ['fastify-usual.ts', origin.url, redisUrl, String(limit), ...(origin.key ? [origin.key] : [])]
  const server = await start(scope, folder, args)
  const counted = async (): Promise<number> =>
    sum((await redis.mget(keys.map(key => `usual:count:${key}`))).map(Number))
  return { server, url: server.urls.api ?? '', counted }
}

export const startUsual = async (scope: Scope, world: World): Promise<Contender | Absent> => {
  const id = 'usual'
  const name = 'Fastify + @fastify/rate-limit on Redis + lru-cache, as most would write it'
  if (world.redisUrl === undefined) return { id, name, absent: withoutRedis }
  const key = 'usual-key-of-the-bench'
  const { server, url, counted } = await startUsualServer(scope, world, [key], { url: world.originUrl })
  return {
    id,
    name,
    pid: () => server.child.pid ?? 0,
    renew: server.restart,
    usesRedis: true,
    workload: async () => ({ url, paths: [path], keys: [key] }),
    check: async () => {
      if ((await get(url + path, { 'x-api-key': 'another' })).status !== 401)
        throw new Error('a key that is unknown was let in')
      expectBody(await get(url + path, { 'x-api-key': key }), world.body)
    },
    counters: async () => ({ counted: await counted() }),
    tidy: () => truncate(server.output),
  }
}
