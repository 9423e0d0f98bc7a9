// Our gateway as a contender, in several variants: with the embedded store and with Redis, one key and many, the access log,
// 304 responses, br responses, and requests for every place in turn.

import { readFile, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { issueKeys, quietZone, usedToday } from '../../test/scenarios/keys.ts'
import { type Env, forAll, placesByCell, processEnv, type Scope } from '../../test/scenarios/set-up.ts'
import { product } from '../../test/support/process.ts'
import { sum } from '../row.ts'
import {
  type Absent,
  type Contender,
  type Counters,
  expectBody,
  get,
  path,
  type World,
  withoutRedis,
} from './contender.ts'
import type { Workload } from './load.ts'
import { type Pinned, serverCores, startPinned } from './pinned.ts'

/** Makes a weather response 10 kB long. */
const hours = '148'

/** Weather that stays fresh for the whole run, and a quota day that does not end in it. */
export const gatewayEnv = (providerUrl: string, more: Env): Env =>
  processEnv(providerUrl, {
    ABOHAWA_WEATHER__HOURLY_HOURS: hours,
    ABOHAWA_CACHE__FRESH_FOR: '6h',
    ABOHAWA_QUOTA__TIME_ZONE: quietZone(),
    ...more,
  })

export const startGateway = (scope: Scope, folder: string, core: string, env: Env): Promise<Pinned> =>
  startPinned(scope, folder, core, [product, 'serve'], ['api', 'ops'], env)

type Variant = {
  readonly id: string
  readonly name: string
  readonly server: 'embedded' | 'embeddedLog' | 'redis' | 'redisLog' | 'places'
  readonly keys?: number
  readonly paths?: readonly string[]
  readonly expects?: '304' | 'br'
}

const places = placesByCell().flatMap(({ paths }) => paths)

const variants: readonly Variant[] = [
  { id: 'embedded', name: 'Abohawa, embedded store', server: 'embedded' },
  { id: 'embedded-log', name: 'Abohawa, embedded store, access log to a file', server: 'embeddedLog' },
  { id: 'redis', name: 'Abohawa, Redis, 1 key', server: 'redis' },
  { id: 'redis-1000', name: 'Abohawa, Redis, 1,000 keys in turn', server: 'redis', keys: 1_000 },
  { id: 'redis-log', name: 'Abohawa, Redis, 1 key, access log to a file', server: 'redisLog' },
  { id: 'redis-304', name: 'Abohawa, Redis, 1 key, 304', server: 'redis', expects: '304' },
  { id: 'redis-br', name: 'Abohawa, Redis, 1 key, br', server: 'redis', expects: 'br' },
  {
    id: 'places',
    name: `Abohawa, Redis, 1 key, ${places.length.toLocaleString('en-GB')} places in turn`,
    server: 'places',
    paths: places,
  },
]

const logged: Env = { ABOHAWA_LOG__ACCESS: 'true', ABOHAWA_LOG__LEVEL: 'info' }

export const gatewayIds = variants.map(({ id }) => id)

export const startGateways = async (
  scope: Scope,
  world: World,
  wanted: readonly string[],
): Promise<(Contender | Absent)[]> => {
  const envs: Record<Variant['server'], Env> = {
    embedded: { ABOHAWA_STORE__PATH: join(world.folder, 'embedded.db') },
    redis: { ABOHAWA_REDIS__URL: world.redisUrl ?? '' },
    // A process of its own, so that the others cache one body as their peers do.
    places: { ABOHAWA_REDIS__URL: world.redisUrl ?? '', ABOHAWA_REDIS__PREFIX: 'places:' },
    embeddedLog: { ABOHAWA_STORE__PATH: join(world.folder, 'logged.db'), ...logged },
    redisLog: {
      ABOHAWA_REDIS__URL: world.redisUrl ?? '',
      ABOHAWA_REDIS__PREFIX: 'logged:',
      ...logged,
    },
  }
  const running = new Map<Variant['server'], Promise<Pinned>>()
  const contenders: (Contender | Absent)[] = []
  for (const variant of variants.filter(({ id }) => wanted.includes(id))) {
    if (variant.server !== 'embedded' && world.redisUrl === undefined) {
      contenders.push({ id: variant.id, name: variant.name, absent: withoutRedis })
      continue
    }
    const env = gatewayEnv(world.providerUrl, envs[variant.server])
    const server = running.get(variant.server) ?? startGateway(scope, world.folder, serverCores[0], env)
    running.set(variant.server, server)
    contenders.push(await contenderOf(variant, await server, env, world))
  }
  return contenders
}

const contenderOf = async (variant: Variant, server: Pinned, env: Env, world: World): Promise<Contender> => {
  const keys = await issueKeys(env, Array(variant.keys ?? 1).fill('enterprise'))
  const [{ key } = { key: '' }] = keys
  const base = server.urls.api ?? ''
  const send = (headers: Record<string, string> = {}) => get(base + path, { 'x-api-key': key, ...headers })
  const paths = variant.paths ?? [path]
  await forAll(paths, 64, one => get(base + one, { 'x-api-key': key }))

  const requestHeaders = async (): Promise<Record<string, string>> => {
    if (variant.expects === '304') return { 'if-none-match': (await send()).headers.etag ?? '' }
    return variant.expects === 'br' ? { 'accept-encoding': 'br' } : {}
  }
  const workload = async (): Promise<Workload> => ({
    url: base,
    paths,
    keys: keys.map(one => one.key),
    headers: await requestHeaders(),
  })
  const check = async (): Promise<void> => {
    const refused = await send({ 'x-api-key': 'another' })
    if (refused.status !== 401) throw new Error('a key that is unknown was let in')
    const [answer, expected] = [await send(await requestHeaders()), await world.reference()]
    const { status, headers, body } = answer
    if (variant.expects === '304') {
      if (status !== 304 || body.length > 0)
        throw new Error(`answered ${status} with ${body.length} bytes, not 304`)
    } else if (variant.expects === 'br') {
      if (headers['content-encoding'] !== 'br') throw new Error('answered without br')
      expectBody({ status, body: brotliDecompressSync(body) }, expected.body)
    } else expectBody(answer, expected.body)
    if (variant.expects !== 'br' && headers.etag !== expected.headers.etag)
      throw new Error('has another etag')
    if (!headers['cache-status']?.includes('; hit;'))
      throw new Error('came from the provider, not from the cache')
  }
  const ids = keys.map(({ id }) => id)
  const ops = server.urls.ops ?? ''
  const counters = async (): Promise<Counters> => {
    const { right, others } = await answeredBy(ops, variant.expects === '304' ? '304' : '200')
    const counted = sum(await usedToday(env, ids))
    const lines = variant.server.endsWith('Log') ? { logged: linesIn(await readFile(server.output)) } : {}
    return { counted, right, others, ...lines }
  }
  const tidy = () => truncate(server.output)
  // The gateway buffers access-log lines for a while.
  const settlesForMs = variant.server.endsWith('Log') ? 600 : 0
  return {
    id: variant.id,
    name: variant.name,
    pid: server.child.pid ?? 0,
    workload,
    check,
    counters,
    tidy,
    settlesForMs,
  }
}

/** Responses of a gateway so far, by its own metrics. A 499 counts with the others: its unit was taken. */
const answeredBy = async (ops: string, status: string): Promise<{ right: number; others: number }> => {
  const text = (await get(`${ops}/metrics`)).body.toString()
  const counts = [
    ...text.matchAll(/^http_server_request_duration_seconds_count\{.*status="(\d+)".*\} (\d+)$/gm),
  ]
  const of = (wanted: boolean): number =>
    sum(
      counts
        .filter(([, label]) => (label === status || label === '499') === wanted)
        .map(([, , answers]) => Number(answers)),
    )
  return { right: of(true), others: of(false) }
}

const linesIn = (text: Buffer): number => {
  let lines = 0
  for (let at = text.indexOf(10); at >= 0; at = text.indexOf(10, at + 1)) lines += 1
  return lines
}
