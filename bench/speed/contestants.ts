// What is measured against what: each a server of its own, pinned to one core, that is asked for the same body of some
// 10 kB. Starts them, says how to ask them, and checks that what they answer is right and counted.

import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { request } from 'undici'
import { startRedis } from '../../test/support/redis-server.ts'
import { type Issued, issueKeys } from '../meter/fleet.ts'
import type { Scope } from '../row.ts'
import { type Env, processEnv } from '../set-up.ts'
import { nginxConfig } from './nginx.ts'
import { hasCommand, pinned } from './pinned.ts'

/** A row of the table. */
export type Contestant = {
  readonly id: string
  readonly what: string
  readonly url: string
  readonly pid: number
  /** Every key that asks, in turn. */
  readonly keys: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly status: 200 | 304
  /** How many requests of these keys were counted so far; undefined where nobody counts. */
  readonly counted: (() => Promise<number>) | undefined
}

const main = new URL('../../src/main.ts', import.meta.url).pathname
export const weatherPath = '/api/v1/weather/district/3026?lang=en'
const manyKeys = 1_000
const tier = 'enterprise'

export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/** Starts a process on a core, ends it with the row, and waits until its port answers. */
export const startPinned = async (
  scope: Scope,
  core: 0 | 1,
  command: readonly string[],
  port: number,
  { env = {}, out }: { env?: Env; out?: string } = {},
): Promise<ChildProcess> => {
  const [program = '', ...args] = pinned(core, command)
  const output = out === undefined ? 'ignore' : openSync(out, 'w')
  const child = spawn(program, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', output, 'inherit'],
  })
  scope.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await Promise.race([once(child, 'exit'), pause(3_000)])
    child.kill('SIGKILL')
  })
  for (const end = performance.now() + 20_000; ; ) {
    const there = await request(`http://127.0.0.1:${port}/`).then(
      async ({ body }) => {
        await body.dump()
        return true
      },
      () => false,
    )
    if (there) return child
    if (child.exitCode !== null || performance.now() > end)
      throw new Error(`${command.join(' ')} does not answer on port ${port}`)
    await pause(20)
  }
}

/** As operators are told to start it. */
export const gatewayCommand = [process.execPath, '--max-semi-space-size=8', main, 'serve'] as const

export const startGatewayPinned = async (
  scope: Scope,
  core: 0 | 1,
  env: Env,
  out?: string,
): Promise<{ url: string; opsUrl: string; pid: number; env: Env }> => {
  const [port, opsPort] = [await freePort(), await freePort()]
  const whole = { ...env, ABOHAWA_SERVER__PORT: String(port), ABOHAWA_OPS__PORT: String(opsPort) }
  const child = await startPinned(scope, core, gatewayCommand, port, {
    env: whole,
    ...(out === undefined ? {} : { out }),
  })
  return {
    url: `http://127.0.0.1:${port}`,
    opsUrl: `http://127.0.0.1:${opsPort}`,
    pid: Number(child.pid),
    env: whole,
  }
}

export const startProviderPinned = async (scope: Scope): Promise<string> => {
  const port = await freePort()
  await startPinned(scope, 1, [process.execPath, main, 'provider', '--port', String(port)], port)
  return `http://127.0.0.1:${port}`
}

export const temporaryFolder = (scope: Scope): string => {
  const folder = mkdtempSync(join(tmpdir(), 'abohawa-speed-'))
  scope.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Hours in the hourly block that make a body of some 10 kB. */
export const bodyEnv: Env = { ABOHAWA_WEATHER__HOURLY_HOURS: '144' }

export const askOnce = async (
  { url, headers }: Pick<Contestant, 'url' | 'headers'>,
  key: string,
): Promise<{ status: number; headers: Record<string, string>; bytes: Buffer }> => {
  const {
    statusCode,
    headers: told,
    body,
  } = await request(url, { headers: { 'x-api-key': key, ...headers } })
  const bytes = Buffer.from(await body.arrayBuffer())
  const entries = Object.entries(told).map(([name, value]) => [name, String(value)])
  return { status: statusCode, headers: Object.fromEntries(entries), bytes }
}

// The gateway's own count as it tells it with an answer: what is left of a limit that nobody comes near.
const countedBy =
  (contestant: Pick<Contestant, 'url' | 'headers'>, issued: readonly Issued[]) =>
  async (): Promise<number> => {
    let counted = 0
    for (const { key, limit } of issued) {
      const { headers } = await askOnce(contestant, key)
      counted += limit - Number(headers['x-ratelimit-remaining'])
    }
    return counted
  }

/** Starts all of them; those whose programs are not installed are told in `missing`. */
export const startContestants = async (
  scope: Scope,
  tell: (text: string) => void,
): Promise<{ contestants: Contestant[]; missing: string[]; body: Buffer }> => {
  const folder = temporaryFolder(scope)
  const contestants: Contestant[] = []
  const missing: string[] = []
  tell('starting the provider and Redis')
  const provider = await startProviderPinned(scope)
  const redis = await startRedis()
  scope.teardown(redis.stop)

  const addGateway = async (id: string, what: string, more: Env, keys: number, out?: string) => {
    tell(`starting ${what}`)
    const env = processEnv(provider, { ...bodyEnv, ...more })
    const issued = await issueKeys(
      env,
      Array.from({ length: keys }, () => tier),
    )
    const { url, pid } = await startGatewayPinned(scope, 0, env, out)
    const add = (more: Partial<Contestant> & Pick<Contestant, 'id' | 'what'>, of = issued): Contestant => {
      const contestant: Contestant = {
        url: url + weatherPath,
        pid,
        keys: of.map(({ key }) => key),
        headers: {},
        status: 200,
        counted: countedBy({ url: url + weatherPath, headers: {} }, of),
        ...more,
      }
      contestants.push(contestant)
      return contestant
    }
    return { add, issued, first: add({ id, what }, issued.slice(0, 1)) }
  }

  const embedded = await addGateway(
    'embedded',
    'Abohawa, embedded store',
    { ABOHAWA_STORE__PATH: join(folder, 'embedded.db') },
    1,
  )
  const first = await askOnce(embedded.first, embedded.issued[0]?.key ?? '')
  const body = (await askOnce(embedded.first, embedded.issued[0]?.key ?? '')).bytes
  embedded.add({
    id: '304',
    what: 'the same, answered 304',
    headers: { 'if-none-match': String(first.headers.etag) },
    status: 304,
  })
  embedded.add({ id: 'br', what: 'the same, br', headers: { 'accept-encoding': 'br' } })

  const shared = await addGateway(
    'redis-1',
    'Abohawa, Redis, 1 key',
    { ABOHAWA_REDIS__URL: redis.url, ABOHAWA_REDIS__PREFIX: 'speed' },
    manyKeys,
  )
  shared.add({ id: 'redis-1000', what: `Abohawa, Redis, ${manyKeys.toLocaleString('en-GB')} keys` })
  await addGateway(
    'access-log',
    'Abohawa, embedded store, with access log',
    {
      ABOHAWA_STORE__PATH: join(folder, 'logged.db'),
      ABOHAWA_LOG__ACCESS: 'true',
      ABOHAWA_LOG__LEVEL: 'info',
    },
    1,
    join(folder, 'access.log'),
  )

  const bodyFile = join(folder, 'body.json')
  writeFileSync(bodyFile, body)
  const peer = (name: string) => new URL(`./peers/${name}.ts`, import.meta.url).pathname
  const startPeer = async (
    id: string,
    what: string,
    core: 0 | 1,
    args: readonly string[] = [],
    env: Env = {},
  ) => {
    tell(`starting ${what}`)
    const port = await freePort()
    const child = await startPinned(
      scope,
      core,
      [process.execPath, peer(id), String(port), bodyFile, ...args],
      port,
      { env, out: join(folder, `${id}.log`) },
    )
    return { id, what, url: `http://127.0.0.1:${port}${weatherPath}`, pid: Number(child.pid) }
  }
  const plain = { headers: {}, status: 200, counted: undefined } as const
  const raw = await startPeer('raw', 'node:http alone, a ready buffer', 0)
  contestants.unshift({ ...raw, keys: [''], ...plain })

  // The peers check a key and count its day in the same Redis.
  const key = `svc_live_${'a'.repeat(38)}`
  const hash = createHash('sha256').update(key).digest('hex')
  const client = new Redis(redis.url)
  scope.teardown(() => client.quit())
  await client.hset(`peer:key:${hash}`, { id: 'key_1', limit: 1e9 })
  const day = new Date().toISOString().slice(0, 10)
  const upstream = new URL((await startPeer('raw', 'a provider for the peers', 1)).url).origin
  contestants.push({
    ...(await startPeer('fastify-proxy', 'Fastify + reply-from: every request to the provider', 0, [
      upstream,
    ])),
    keys: [key],
    ...plain,
  })
  contestants.push({
    ...(await startPeer(
      'fastify-usual',
      'Fastify + rate-limit (Redis) + lru-cache, as most would write it',
      0,
      [upstream, redis.url],
    )),
    keys: [key],
    ...plain,
  })

  if (hasCommand('nginx')) {
    tell('starting nginx')
    const port = await freePort()
    const file = join(folder, 'nginx.conf')
    writeFileSync(
      file,
      nginxConfig({
        folder,
        port,
        upstream: new URL(upstream).host,
        redis: new URL(redis.url),
        bodyBytes: body.length,
      }),
    )
    const child = await startPinned(
      scope,
      0,
      ['nginx', '-c', file, '-g', 'daemon off; master_process off;'],
      port,
    )
    const at = { pid: Number(child.pid), keys: [key], ...plain }
    contestants.push(
      {
        id: 'nginx-lua',
        what: 'nginx + Lua + Redis: key, daily count, cache',
        url: `http://127.0.0.1:${port}${weatherPath}`,
        ...at,
        counted: async () => Number((await client.get(`peer:count:key_1:${day}`)) ?? 0),
      },
      {
        id: 'nginx-cache',
        what: 'nginx cache, no key, no count (for reading)',
        url: `http://127.0.0.1:${port}/open${weatherPath}`,
        ...at,
      },
    )
  } else missing.push('nginx with its Lua module is not installed, so its rows are left out')
  return { contestants, missing, body }
}
