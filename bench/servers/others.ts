// The servers in Node that are not our gateway: one ready body without a key from node:http or from Fastify, over TLS where there
// is a certificate, and the usual composition.

import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import type { Subject } from '../rounds.ts'
import { sum } from '../row.ts'
import { serverCore, startListening } from '../tools/processes.ts'
import { expectBody, get, path, type World } from '../tools/world.ts'
import type { Workload } from '../tools/wrk.ts'
import type { Traffic } from './gateway.ts'

const script = (name: string): string => new URL(name, import.meta.url).pathname

/** In PEM. */
export type CertificateFiles = { readonly cert: string; readonly key: string }

/** A quota that is never used up. */
export const limit = 1_000_000_000

/** What the process of ready.ts is told. */
export type ReadyServer = {
  readonly kind: 'raw' | 'fastify'
  readonly bodyFile: string
  readonly headersFile: string
  readonly tls?: CertificateFiles
  readonly isHttp2?: boolean
}

type Ready = Pick<ReadyServer, 'kind' | 'tls' | 'isHttp2'> & {
  /** The requests, without their address; one URL unless given. */
  readonly workload?: () => Promise<Omit<Workload, 'url'>>
}

/** The command of a server with one ready body. */
export const readyCommand = (server: ReadyServer): readonly [string, ...string[]] => [
  process.execPath,
  script('ready.ts'),
  JSON.stringify(server),
]

export const readySubject = (
  { folder, env, bodyFile, headersFile, body }: World,
  { workload = async () => ({ paths: [path], keys: [] }), ...ready }: Ready,
): Subject => ({
  id: ready.kind,
  name:
    ready.kind === 'raw'
      ? `raw node:${ready.isHttp2 ? 'http2' : ready.tls ? 'https' : 'http'}`
      : 'bare Fastify',
  start: async scope => {
    const command = readyCommand({ bodyFile, headersFile, ...ready })
    const { pid, urls } = await startListening(
      scope,
      folder,
      serverCore,
      command,
      { listeners: ['api'] },
      env({}),
    )
    const url = urls.api ?? ''
    return {
      pid,
      workload: async () => ({ ...(await workload()), url }),
      // undici, which speaks HTTP/1.1, sees the same body where both are served.
      check: async () => {
        if (!ready.isHttp2) expectBody(await get(url + path), body)
      },
    }
  },
})

/** The usual composition, which knows these keys, with our reference as its origin. */
export const usualSubject = (
  { folder, redisUrl, origin }: World,
  keys: readonly string[],
  traffic: Traffic,
): Subject => ({
  id: 'usual',
  name: 'usual composition, log',
  usesRedis: true,
  start: async scope => {
    const redis = new Redis(redisUrl)
    scope.teardown(() => redis.quit())
    for (const key of keys)
      await redis.set(`usual:key:${createHash('sha256').update(key).digest('hex')}`, 'enterprise')
    const args = [script('usual.ts'), origin.url, redisUrl, String(limit), origin.key]
    const { pid, urls } = await startListening(scope, folder, serverCore, [process.execPath, ...args], {
      listeners: ['api'],
    })
    return {
      pid,
      ...(await traffic(urls.api ?? '', keys)),
      counted: async () => sum((await redis.mget(keys.map(key => `usual:count:${key}`))).map(Number)),
    }
  },
})
