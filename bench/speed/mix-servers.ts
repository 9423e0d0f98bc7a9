// The contenders of the mix in Node: one ready body from Node and from Fastify, our gateway, and the usual composition.

import { truncate } from 'node:fs/promises'
import { issueKeys } from '../../test/scenarios/keys.ts'
import type { Env, Scope } from '../../test/scenarios/set-up.ts'
import { type Absent, type Contender, expectBody, get, path, type World, withoutRedis } from './contender.ts'
import { countingOf, linesOf, logged, startGateway } from './gateways.ts'
import { keyOf, type Mix, mixKeys, receiverOf } from './mix-traffic.ts'
import { startReadyBody, startUsualServer } from './others.ts'
import { serverCores } from './pinned.ts'

/** A server of one ready body, which receives the mix and takes no notice of it. */
export const startReadyForMix = async (
  scope: Scope,
  world: World,
  mix: Mix,
  keys: readonly string[],
  { id, name, kind }: { id: string; name: string; kind: 'raw' | 'fastify' },
): Promise<Contender> => {
  const server = await startReadyBody(scope, world, kind)
  const url = server.urls.api ?? ''
  const { workload } = receiverOf(world, mix, {
    url: world.referenceUrl,
    keys: [world.referenceKey],
    hasOurEtags: true,
  })
  const sent = mix.requests.map(one => keyOf(one, keys))
  return {
    id,
    name,
    pid: () => server.child.pid ?? 0,
    renew: server.restart,
    // The requests are as long as those to the others: with a key, and the ETag of the reference.
    workload: async () => ({ ...(await workload()), url, keys: sent }),
    check: async () => expectBody(await get(url + path), world.body),
  }
}

const mixName = 'Abohawa, Redis, the mix, access log to a file'

/** Issues 1,000 keys and starts a gateway on Redis under a prefix of its own. */
export const startGatewayForMix = async (
  scope: Scope,
  world: World,
  mix: Mix,
  prefix: string,
  more: Env = {},
): Promise<{ contender: Contender; keys: readonly string[]; url: string; log: string }> => {
  const env = world.env({
    ABOHAWA_REDIS__URL: world.redisUrl ?? '',
    ABOHAWA_REDIS__PREFIX: prefix,
    ...logged,
    ...more,
  })
  const issued = await issueKeys(env, Array(mixKeys).fill('enterprise'))
  const keys = issued.map(({ key }) => key)
  const server = await startGateway(scope, world.folder, serverCores[0], env)
  const url = server.urls.api ?? ''
  const counting = countingOf(
    server,
    env,
    issued.map(({ id }) => id),
    ['200', '304'],
  )
  const receiver = receiverOf(world, mix, { url, keys, hasOurEtags: true })
  const contender: Contender = {
    ...counting,
    id: 'mix-abohawa',
    name: mixName,
    workload: receiver.workload,
    check: receiver.check,
    renew: async () => {
      await server.restart()
      await receiver.warmAnew()
    },
    tidy: async () => {
      await receiver.warm()
      await counting.tidy()
    },
  }
  return { contender, keys, url, log: server.output }
}

export const startUsualForMix = async (
  scope: Scope,
  world: World,
  mix: Mix,
  keys: readonly string[],
): Promise<Contender | Absent> => {
  const id = 'mix-usual'
  const name =
    'Fastify + @fastify/rate-limit on Redis + lru-cache + @fastify/etag + @fastify/compress, the mix, its log to a file'
  if (world.redisUrl === undefined) return { id, name, absent: withoutRedis }
  const origin = { url: world.referenceUrl, key: world.referenceKey }
  const { server, url, counted } = await startUsualServer(scope, world, keys, origin)
  const receiver = receiverOf(world, mix, { url, keys, hasOurEtags: false })
  return {
    id,
    name,
    pid: () => server.child.pid ?? 0,
    renew: async () => {
      await server.restart()
      await receiver.warmAnew()
    },
    usesRedis: true,
    workload: receiver.workload,
    check: receiver.check,
    settlesForMs: 300,
    counters: async () => ({
      counted: await counted(),
      logged: await linesOf(server.output, '"incoming request"'),
    }),
    tidy: async () => {
      await receiver.warm()
      await truncate(server.output)
    },
  }
}
