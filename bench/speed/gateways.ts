// Our gateway as a contender: starts it for the speed bench, checks its answers, and reads its counters. Which variants a row
// compares is the row's.

import { readFile, truncate } from 'node:fs/promises'
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

/** What a contender is beside others on the same server. */
export type Variant = {
  readonly id: string
  readonly name: string
  /** One of the servers; those of one name share a process. */
  readonly server: string
  readonly keys?: number
  readonly paths?: readonly string[]
  readonly expects?: '304' | 'br'
}

export const everyPlace = placesByCell().flatMap(({ paths }) => paths)

export const logged: Env = { ABOHAWA_LOG__ACCESS: 'true', ABOHAWA_LOG__LEVEL: 'info' }

/** @param servers the settings of each server; those of one on Redis have `ABOHAWA_REDIS__URL` */
export const startVariants = async (
  scope: Scope,
  world: World,
  variants: readonly Variant[],
  servers: Readonly<Record<string, Env>>,
): Promise<(Contender | Absent)[]> => {
  const running = new Map<string, Promise<Pinned>>()
  const contenders: (Contender | Absent)[] = []
  for (const variant of variants) {
    const { id, name, server: wanted } = variant
    const settings = servers[wanted] ?? {}
    if (settings.ABOHAWA_REDIS__URL === '') {
      contenders.push({ id, name, absent: withoutRedis })
      continue
    }
    const env = world.env(settings)
    const server = running.get(wanted) ?? startGateway(scope, world.folder, serverCores[0], env)
    running.set(wanted, server)
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
  const warm = (): Promise<void> => forAll(paths, 64, one => get(base + one, { 'x-api-key': key }))
  await warm()

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
  return {
    id: variant.id,
    name: variant.name,
    workload,
    check,
    renew: async () => {
      await server.restart()
      await warm()
    },
    ...countingOf(server, env, ids, [variant.expects === '304' ? '304' : '200']),
  }
}

/** How a gateway counts, for a contender. @param right the statuses that are expected */
export const countingOf = (server: Pinned, env: Env, ids: readonly string[], right: readonly string[]) => {
  const isLogged = env.ABOHAWA_LOG__ACCESS === 'true'
  const counters = async (): Promise<Counters> => {
    const answered = await answeredBy(server.urls.ops ?? '', right)
    const counted = sum(await usedToday(env, ids))
    return { counted, ...answered, ...(isLogged ? { logged: await linesOf(server.output) } : {}) }
  }
  return {
    pid: () => server.child.pid ?? 0,
    counters,
    tidy: () => truncate(server.output),
    // The gateway buffers access-log lines for a while.
    settlesForMs: isLogged ? 600 : 0,
    usesRedis: env.ABOHAWA_REDIS__URL !== undefined,
  }
}

/** Responses of a gateway so far, by its own metrics. A 499 counts with the others: its unit was taken. */
const answeredBy = async (
  ops: string,
  right: readonly string[],
): Promise<{ right: number; others: number }> => {
  const text = (await get(`${ops}/metrics`)).body.toString()
  const counts = [
    ...text.matchAll(/^http_server_request_duration_seconds_count\{.*status="(\d+)".*\} (\d+)$/gm),
  ]
  const of = (wanted: boolean): number =>
    sum(
      counts
        .filter(([, status = '']) => [...right, '499'].includes(status) === wanted)
        .map(([, , answers]) => Number(answers)),
    )
  return { right: of(true), others: of(false) }
}

/** Lines of a file, or those with a text. */
export const linesOf = async (file: string, having?: string): Promise<number> => {
  const text = await readFile(file)
  if (having !== undefined) return text.toString('latin1').split(having).length - 1
  let lines = 0
  for (let at = text.indexOf(10); at >= 0; at = text.indexOf(10, at + 1)) lines += 1
  return lines
}
