// The surroundings of a measured server: a folder, a provider and a Redis; and for rows that compare servers a gateway that receives
// no load, whose answers are the reference and the origin of the others.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { createKey, type Env } from '../../test/scenarios/set-up.ts'
import { startProvider } from '../../test/support/provider.ts'
import { startRedis } from '../../test/support/redis-server.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import type { Place } from '../rounds.ts'
import { gatewayEnv, startGateway } from './gateway-process.ts'
import { loadCores, readerOfRedis, runFirst, stepAside } from './processes.ts'

export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** The current response, to a known key. */
export type Reference = (path?: string) => Promise<Answer>

export type World = Place & {
  readonly providerUrl: string
  readonly redisUrl: string
  /** The environment of a gateway of this row. */
  env(more: Env): Env
  readonly reference: Reference
  /** Address and key of the gateway that has the reference. */
  readonly origin: { readonly url: string; readonly key: string }
  /** Files with the body of `path` at the start, and with the headers beside it that are not those of the quota, as JSON. */
  readonly bodyFile: string
  readonly headersFile: string
  readonly body: Buffer
}

export const path = '/api/v1/weather/district/3026'

// The certificates here are our own; tls-callers.ts verifies them.
const anyCertificate = new Agent({ connect: { rejectUnauthorized: false } })

export const get = async (url: string, headers: Record<string, string> = {}): Promise<Answer> => {
  const dispatcher = url.startsWith('https:') ? { dispatcher: anyCertificate } : {}
  const { statusCode, headers: responseHeaders, body } = await request(url, { headers, ...dispatcher })
  return {
    status: statusCode,
    headers: Object.fromEntries(
      Object.entries(responseHeaders).map(([name, value]) => [name, String(value)]),
    ),
    body: Buffer.from(await body.arrayBuffer()),
  }
}

/** Throws unless the response is a 200 with this body. */
export const expectBody = ({ status, body }: Pick<Answer, 'status' | 'body'>, expected: Buffer): void => {
  if (status !== 200) throw new Error(`answered ${status} in place of 200`)
  if (!body.equals(expected))
    throw new Error(`${body.length} bytes that differ from the ${expected.length} expected`)
}

/** A folder that is removed with the row. */
export const openFolder = async (scope: Teardown): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-bench-'))
  scope.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Starts a provider and a Redis, away from the measured core. */
export const openBackground = async (scope: Teardown) => {
  stepAside()
  const folder = await openFolder(scope)
  const provider = await startProvider(scope, ['--runs', 'none'], null)
  const redis = await startRedis(scope)
  runFirst(redis.pid)
  return {
    folder,
    provider,
    providerUrl: provider.url,
    redisUrl: redis.url,
    readRedis: readerOfRedis(scope, redis.url),
  }
}

/** @param settings those of all gateways of the row */
export const openWorld = async (scope: Teardown, settings: Env = {}): Promise<World> => {
  const background = await openBackground(scope)
  const { folder, providerUrl } = background
  const env = (more: Env): Env => gatewayEnv(providerUrl, { ...settings, ...more })
  const ofReference = env({ ABOHAWA_STORE__PATH: join(folder, 'reference.db') })
  const key = await createKey(ofReference)
  const { urls } = await startGateway(scope, folder, loadCores, ofReference)
  const url = urls.api ?? ''
  const reference = (of = path): Promise<Answer> => get(url + of, { 'x-api-key': key })

  const { headers, body } = await reference()
  const bodyFile = join(folder, 'body.json')
  await writeFile(bodyFile, body)
  const own = ['connection', 'keep-alive', 'date', 'transfer-encoding', 'content-length']
  const passed = Object.entries(headers).filter(
    ([name]) => !own.includes(name) && !/^(x-)?ratelimit/.test(name),
  )
  const headersFile = join(folder, 'headers.json')
  await writeFile(headersFile, JSON.stringify(Object.fromEntries(passed)))
  return { ...background, env, reference, origin: { url, key }, bodyFile, headersFile, body }
}
