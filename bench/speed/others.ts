// The contenders in Node that are not our gateway: the plain server that the bars refer to, and two compositions.

import { createHash } from 'node:crypto'
import { truncate } from 'node:fs/promises'
import { Redis } from 'ioredis'
import type { Scope } from '../../test/scenarios/set-up.ts'
import {
  type Absent,
  type Contender,
  countersByHeader,
  expectBody,
  get,
  limit,
  path,
  type World,
  withoutRedis,
} from './contender.ts'
import { type Pinned, serverCores, startPinned } from './pinned.ts'

const script = (name: string): string => new URL(`servers/${name}`, import.meta.url).pathname
const key = 'usual-key-of-the-bench'

const start = (scope: Scope, world: World, name: string, args: readonly string[]): Promise<Pinned> =>
  startPinned(scope, world.folder, serverCores[0], [process.execPath, script(name), ...args], ['api'])

/** The body from Node's own server, without a key. */
export const startRaw = async (scope: Scope, world: World): Promise<Contender> => {
  const { child, urls } = await start(scope, world, 'origin.ts', [world.bodyFile])
  return plain('raw', 'raw node:http, one ready body', child.pid ?? 0, urls.api ?? '', world)
}

/** The body from Fastify, with the gateway's headers except those of the quota. */
export const startBareFastify = async (scope: Scope, world: World): Promise<Contender> => {
  const { child, urls } = await start(scope, world, 'fastify-bare.ts', [world.bodyFile, world.headersFile])
  return plain(
    'fastify',
    'bare Fastify, one ready body with the same headers',
    child.pid ?? 0,
    urls.api ?? '',
    world,
  )
}

export const startProxy = async (scope: Scope, world: World): Promise<Contender> => {
  const { child, urls } = await start(scope, world, 'fastify-proxy.ts', [world.originUrl])
  return plain(
    'proxy',
    'Fastify + reply-from: no key, no count, no cache',
    child.pid ?? 0,
    urls.api ?? '',
    world,
  )
}

const plain = (id: string, name: string, pid: number, base: string, { body }: World): Contender => ({
  id,
  name,
  pid,
  workload: async () => ({ url: base, paths: [path], keys: [] }),
  check: async () => expectBody(await get(base + path), body),
})

export const startUsual = async (scope: Scope, world: World): Promise<Contender | Absent> => {
  const id = 'usual'
  const name = 'Fastify + @fastify/rate-limit on Redis + lru-cache, as most would write it'
  const found = await import('@fastify/rate-limit').then(
    () => true,
    () => false,
  )
  if (world.redisUrl === undefined) return { id, name, absent: withoutRedis }
  if (!found) return { id, name, absent: '@fastify/rate-limit is not installed: npm ci' }
  const redis = new Redis(world.redisUrl)
  await redis.set(`usual:key:${createHash('sha256').update(key).digest('hex')}`, 'enterprise')
  await redis.quit()
  const args = [world.originUrl, world.redisUrl, String(limit)]
  const { child, urls, output } = await start(scope, world, 'fastify-usual.ts', args)
  const base = urls.api ?? ''
  return {
    id,
    name,
    pid: child.pid ?? 0,
    workload: async () => ({ url: base, paths: [path], keys: [key] }),
    check: async () => {
      if ((await get(base + path, { 'x-api-key': 'another' })).status !== 401)
        throw new Error('a key that is unknown was let in')
      expectBody(await get(base + path, { 'x-api-key': key }), world.body)
    },
    counters: countersByHeader(base + path, key),
    tidy: () => truncate(output),
  }
}
