// The environment of a run: a provider, a Redis, the body that all contenders send, and a separate gateway as the reference
// for the current response.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKey, type Env, type Scope } from '../../test/scenarios/set-up.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { startRedis, withoutOwnRedis } from '../../test/support/redis-server.ts'
import { type Answer, expectBody, get, path, type World } from './contender.ts'
import { gatewayEnv, startGateway } from './gateways.ts'
import { loadCores, runFirst, startPinned, stepAside } from './pinned.ts'
import { readerOfRedis } from './redis-cost.ts'

/** A folder that is removed with the row. */
const openFolder = async (scope: Scope): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-bench-'))
  scope.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Starts a provider and, where it is installed, a Redis, away from the measured core. */
export const openBackground = async (scope: Scope) => {
  stepAside()
  const folder = await openFolder(scope)
  const provider = await startProvider(scope, ['--runs', 'none'], null)
  const redis = withoutOwnRedis ? undefined : await startRedis()
  if (redis) {
    scope.teardown(redis.stop)
    runFirst(redis.pid)
  }
  /** The environment of a gateway: on Redis, or on an embedded store where Redis is not installed. */
  const storeEnv: Env = redis
    ? { ABOHAWA_REDIS__URL: redis.url }
    : { ABOHAWA_STORE__PATH: join(folder, 'store.db') }
  return { folder, provider, providerUrl: provider.url, redisUrl: redis?.url, storeEnv }
}

/** @param settings those of all gateways of the run */
export const openWorld = async (scope: Scope, settings: Env = {}): Promise<World> => {
  const { folder, providerUrl, redisUrl } = await openBackground(scope)
  const env = (more: Env): Env => gatewayEnv(providerUrl, { ...settings, ...more })
  const ofReference = env({ ABOHAWA_STORE__PATH: join(folder, 'reference.db') })
  const referenceKey = await createKey(ofReference)
  const gateway = await startGateway(scope, folder, loadCores, ofReference)
  const referenceUrl = gateway.urls.api ?? ''
  const reference = (of = path): Promise<Answer> => get(referenceUrl + of, { 'x-api-key': referenceKey })

  await awayFromTurn(10)
  const first = await reference()
  await compareWithProvider(providerUrl, first)
  const bodyFile = join(folder, 'body.json')
  await writeFile(bodyFile, first.body)
  const own = ['connection', 'keep-alive', 'date', 'transfer-encoding']
  const passed = Object.entries(first.headers).filter(
    ([name]) => !own.includes(name) && !/^(x-)?ratelimit/.test(name),
  )
  const headersFile = join(folder, 'headers.json')
  await writeFile(headersFile, JSON.stringify(Object.fromEntries(passed)))
  const script = new URL('servers/origin.ts', import.meta.url).pathname
  const origin = await startPinned(
    scope,
    folder,
    loadCores,
    [process.execPath, script, bodyFile, headersFile],
    ['api'],
  )
  const originUrl = origin.urls.api ?? ''
  expectBody(await get(originUrl), first.body)
  return {
    folder,
    providerUrl,
    redisUrl,
    readRedis: redisUrl === undefined ? undefined : readerOfRedis(scope, redisUrl),
    env,
    originUrl,
    bodyFile,
    headersFile,
    body: first.body,
    reference,
    referenceUrl,
    referenceKey,
  }
}

/** Throws unless the current weather of the response equals the provider's. */
const compareWithProvider = async (providerUrl: string, { headers, body }: Answer): Promise<void> => {
  const [, latitude = '', longitude = ''] = /key="(.+),(.+)"/.exec(headers['cache-status'] ?? '') ?? []
  const { current } = JSON.parse(body.toString()) as { current: Record<string, unknown> }
  const names = Object.keys(current).filter(name => name !== 'time' && name !== 'interval')
  const query = new URLSearchParams({ latitude, longitude, current: names.join(',') })
  const providerBody = JSON.parse(
    (await get(`${providerUrl}/v1/forecast?${query}`)).body.toString(),
  ) as typeof JSON & {
    current: Record<string, unknown>
  }
  const other = names.filter(name => providerBody.current[name] !== current[name])
  if (names.length === 0 || other.length > 0)
    throw new Error(`the reference differs from the provider in ${other.join(', ') || 'everything'}`)
}

const quarterMs = 900_000

/** For the checks and requests before a load. */
const preparesForMs = 8_000

/** Bodies change with the quarter-hour: waits until after its end if that falls into the coming seconds of a load. */
export const awayFromTurn = async (seconds: number): Promise<void> => {
  const left = quarterMs - (Date.now() % quarterMs)
  if (left < seconds * 1000 + preparesForMs) await new Promise(resolve => setTimeout(resolve, left + 500))
}
