// Cached responses over HTTP/2 and TLS, as browsers and mobile apps fetch them: few connections with many requests at once.
// Our gateway beside the streams of node:http2 and beside bare Fastify, both with one ready body.

import { join } from 'node:path'
import { issueKeys } from '../../test/scenarios/keys.ts'
import { type Env, forAll, type Scope } from '../../test/scenarios/set-up.ts'
import { type Http2Client, localCertificate, openHttp2 } from '../../test/support/http2-client.ts'
import { count, notMeasured, type Row } from '../row.ts'
import { type Absent, type Contender, expectBody, path, type World, withoutRedis } from './contender.ts'
import { countingOf, everyPlace, startGateway } from './gateways.ts'
import { http2Loader, loadHttp2, sessions, streams, withoutHttp2Loader } from './http2-load.ts'
import { checked, judgeOf, quietness } from './judge.ts'
import { serverCores, startPinned } from './pinned.ts'
import { measureInRounds } from './rounds.ts'
import { columnsOfRounds, cpuBars, tableOfRounds } from './rounds-form.ts'
import { versionsOf } from './versions.ts'
import { openWorld } from './world.ts'

const leastOfRaw = 0.7

/** Requests of one connection. */
const overHttp2 = async (url: string, use: (send: Http2Client['send']) => Promise<void>): Promise<void> => {
  const ends: (() => unknown)[] = []
  const { send } = await openHttp2({ teardown: end => void ends.push(end) }, url)
  try {
    await use(send)
  } finally {
    for (const end of ends) end()
  }
}

const script = new URL('servers/http2.ts', import.meta.url).pathname

const startReady = async (
  scope: Scope,
  { folder, bodyFile, headersFile, body }: World,
  kind: 'raw' | 'fastify',
  name: string,
): Promise<Contender> => {
  const { cert, key } = localCertificate
  const command = [process.execPath, script, kind, bodyFile, headersFile, cert, key] as const
  const server = await startPinned(scope, folder, serverCores[0], command, ['api'])
  const url = server.urls.api ?? ''
  return {
    id: `http2-${kind}`,
    name,
    pid: () => server.child.pid ?? 0,
    renew: server.restart,
    workload: async () => ({ url, paths: [path], keys: ['as-long-as-a-key-of-the-gateway-is-here'] }),
    check: () => overHttp2(url, async send => expectHit(await send(path), body)),
  }
}

const expectHit = ({ status, bytes }: Awaited<ReturnType<Http2Client['send']>>, body: Buffer): void =>
  expectBody({ status, body: bytes }, body)

type Variant = { readonly id: string; readonly name: string; readonly paths: readonly string[] }

const startOurs = async (
  scope: Scope,
  world: World,
  settings: Env,
  variants: readonly Variant[],
): Promise<(Contender | Absent)[]> => {
  if (settings.ABOHAWA_REDIS__URL === '') return variants.map(one => ({ ...one, absent: withoutRedis }))
  const env = world.env({
    ABOHAWA_SERVER__TLS__CERT: localCertificate.cert,
    ABOHAWA_SERVER__TLS__KEY: localCertificate.key,
    ...settings,
  })
  const server = await startGateway(scope, world.folder, serverCores[0], env)
  const url = server.urls.api ?? ''
  return Promise.all(
    variants.map(async ({ id, name, paths }) => {
      const [issued] = await issueKeys(env, ['enterprise'])
      const key = issued?.key ?? ''
      const warm = (): Promise<void> =>
        overHttp2(url, send => forAll(paths, 64, one => send(one, { 'x-api-key': key })))
      await warm()
      const check = (): Promise<void> =>
        overHttp2(url, async send => {
          if ((await send(path, { 'x-api-key': 'another' })).status !== 401)
            throw new Error('a key that is unknown was let in')
          const [answer, expected] = [await send(path, { 'x-api-key': key }), await world.reference()]
          expectHit(answer, expected.body)
          if (answer.headers.etag !== expected.headers.etag) throw new Error('has another etag')
          if (!String(answer.headers['cache-status']).includes('; hit;'))
            throw new Error('came from the provider, not from the cache')
        })
      return {
        id,
        name,
        workload: async () => ({ url, paths, keys: [key] }),
        check,
        renew: async () => {
          await server.restart()
          await warm()
        },
        ...countingOf(server, env, [issued?.id ?? ''], ['200']),
      }
    }),
  )
}

export const http2: Row = {
  id: 'http2',
  method:
    `HTTP/2 over TLS: ${sessions} connections with ${streams} requests at once each, the next on the end of a response. Checked and ` +
    'counted as in `hits`; the bytes of all bodies together are those of as many responses.',
  run: async (scope, progress, { settings: { rounds = 5, seconds = 3 } }) => {
    if (http2Loader === undefined) return { findings: [notMeasured('HTTP/2 over TLS', withoutHttp2Loader)] }
    progress('starts everything')
    const world = await openWorld(scope)
    const places = `${count(everyPlace.length)} places in turn`
    const all = [
      await startReady(scope, world, 'raw', 'raw node:http2, one ready body with the same headers'),
      await startReady(scope, world, 'fastify', 'bare Fastify with http2, the same'),
      ...(await startOurs(scope, world, { ABOHAWA_STORE__PATH: join(world.folder, 'http2.db') }, [
        { id: 'http2-embedded', name: 'Abohawa, embedded store, 1 key', paths: [path] },
      ])),
      ...(await startOurs(scope, world, { ABOHAWA_REDIS__URL: world.redisUrl ?? '' }, [
        { id: 'http2-redis', name: 'Abohawa, Redis, 1 key', paths: [path] },
        { id: 'http2-places', name: `Abohawa, Redis, 1 key, ${places}`, paths: everyPlace },
      ])),
    ]
    const contenders = all.filter((one): one is Contender => !('absent' in one))
    const measured = await measureInRounds(world, contenders, { rounds, seconds }, progress, {
      load: (folder, workload, time) =>
        loadHttp2(folder, workload, time, workload.paths.length === 1 ? world.body.length : undefined),
      inFlight: sessions * streams,
    })
    const judge = judgeOf(measured)
    const raw = judge.of('http2-raw')
    return {
      findings: [
        ...judge.byCpu(
          'http2-embedded',
          'http2-raw',
          leastOfRaw,
          'HTTP/2, embedded store, of raw node:http2 by CPU',
        ),
        ...judge.byCpu('http2-redis', 'http2-raw', leastOfRaw, 'the same, Redis, 1 key'),
        ...judge.byCpu('http2-places', 'http2-raw', leastOfRaw, `the same, Redis, ${places}`),
        ...all
          .filter((one): one is Absent => 'absent' in one)
          .map(({ name, absent }) => notMeasured(name, absent)),
        checked(measured),
      ],
      table: tableOfRounds(measured, raw),
      versions: versionsOf(['fastify']),
      notes: [
        `Load from ${http2Loader}. Rounds: ${rounds} of ${seconds} s for each row, each of a process of its own that is warm.`,
        quietness(measured),
        ...columnsOfRounds,
      ],
      drawings: cpuBars('performance-http2.svg', 'a request over HTTP/2', measured),
    }
  },
}
