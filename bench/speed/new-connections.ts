// A new connection for each request, as from PHP, serverless functions and cron with curl: the same servers as in the row of
// hits, and the time of one such request on an idle server.

import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Env } from '../../test/scenarios/set-up.ts'
import { type Finding, median, notMeasured, type Row } from '../row.ts'
import type { Absent, Contender } from './contender.ts'
import { logged, startVariants, type Variant } from './gateways.ts'
import { checked, judgeOf, quietness } from './judge.ts'
import { connections, loader, type Workload } from './load.ts'
import { startNginx } from './nginx.ts'
import { startBareFastify, startRaw } from './others.ts'
import { measureInRounds } from './rounds.ts'
import { columnsOfRounds, cpuBars, tableOfRounds } from './rounds-form.ts'
import { openWorld } from './world.ts'

const variants: readonly Variant[] = [
  { id: 'embedded', name: 'Abohawa, embedded store', server: 'embedded' },
  { id: 'redis', name: 'Abohawa, Redis, 1 key', server: 'redis' },
  { id: 'redis-log', name: 'Abohawa, Redis, 1 key, access log to a file', server: 'redisLog' },
]
const restPairs = 15
const requestsOfPair = 100
// The wait for a batch that grows, and a round trip to Redis.
const moreAtRestMs = 0.3

/** The same contender, whose callers close their connection after each response. */
const closing = <Of extends Contender | Absent>(one: Of): Of => {
  const id = `new-${one.id}`
  if (!('workload' in one)) return { ...one, id }
  return {
    ...one,
    id,
    name: `${one.name}, a new connection for each request`,
    workload: async () => {
      const workload = await one.workload()
      return { ...workload, headers: { ...workload.headers, connection: 'close' } }
    },
  }
}

export const newConnections: Row = {
  id: 'new-connections',
  method:
    `As in \`hits\`, with \`connection: close\`: ${connections} callers open the next connection when a response has ended. ` +
    `At rest: ${requestsOfPair} requests one after the other, each from the start of its connection to the end of its ` +
    `response, for the plain server and ours in turn, ${restPairs} times; the median of the differences of medians.`,
  run: async (scope, progress, { settings: { rounds = 5, seconds = 3 } }) => {
    progress('starts everything')
    const world = await openWorld(scope)
    const onRedis: Env = { ABOHAWA_REDIS__URL: world.redisUrl ?? '' }
    const [nginx] = await startNginx(scope, world)
    const all = [
      await startRaw(scope, world),
      await startBareFastify(scope, world),
      ...(await startVariants(scope, world, variants, {
        embedded: { ABOHAWA_STORE__PATH: join(world.folder, 'new-connections.db') },
        redis: onRedis,
        redisLog: { ...onRedis, ABOHAWA_REDIS__PREFIX: 'new-logged:', ...logged },
      })),
      ...(nginx ? [nginx] : []),
    ].map(closing)
    const contenders = all.filter((one): one is Contender => !('absent' in one))
    const measured = await measureInRounds(world, contenders, { rounds, seconds }, progress)
    const judge = judgeOf(measured)
    const [raw, ...others] = contenders
    const atRest: Finding[] = []
    for (const one of others.filter(({ id }) => ['new-embedded', 'new-redis'].includes(id))) {
      progress(`at rest, ${one.id}`)
      if (raw) atRest.push(await findingAtRest(raw, one))
    }
    return {
      findings: [
        ...judge.byCost(
          'new-embedded',
          'new-raw',
          1.4,
          'a new connection for each request, embedded store, of raw',
        ),
        ...judge.byCost('new-redis', 'new-raw', 1.4, 'the same, Redis'),
        ...judge.byCost(
          'new-redis-log',
          'new-nginx',
          1,
          'the same with the access log, of nginx + Lua + Redis',
        ),
        ...atRest,
        ...all
          .filter((one): one is Absent => 'absent' in one)
          .map(({ name, absent }) => notMeasured(name, absent)),
        checked(measured),
      ],
      table: tableOfRounds(measured, judge.of('new-raw')),
      notes: [
        `Load from ${loader}. Rounds: ${rounds} of ${seconds} s for each row, each of a process of its own that is warm.`,
        quietness(measured),
        ...columnsOfRounds,
      ],
      drawings: cpuBars('performance-new-connections.svg', 'a new connection for each request', measured),
    }
  },
}

const findingAtRest = async (raw: Contender, ours: Contender): Promise<Finding> => {
  const pairs: (readonly [number, number])[] = []
  for (let pair = 0; pair <= restPairs; pair++) {
    const both = [await timeAtRest(await raw.workload()), await timeAtRest(await ours.workload())] as const
    // The first pair warms up.
    if (pair > 0) pairs.push(both)
  }
  const more = median(pairs.map(([plain, own]) => own - plain))
  const [plain, own] = [median(pairs.map(([one]) => one)), median(pairs.map(([, other]) => other))]
  return {
    what: `one such request on an idle server, ${ours.id === 'new-redis' ? 'Redis' : 'embedded store'}, beyond raw`,
    bar: `≤ ${moreAtRestMs} ms`,
    measured: `${more.toFixed(2)} ms (${own.toFixed(2)} and ${plain.toFixed(2)} ms, medians of ${restPairs} pairs)`,
    met: more <= moreAtRestMs,
    figures: { more, own, plain },
  }
}

/** The median time of requests one after the other, each with its connection, in ms. */
const timeAtRest = async ({ url, paths: [path = '/'], keys: [key = ''] }: Workload): Promise<number> => {
  const { hostname, port, host } = new URL(url)
  const head = `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${key}\r\nconnection: close\r\n\r\n`
  const times: number[] = []
  for (let i = 0; i < requestsOfPair; i++) {
    const began = performance.now()
    const socket = connect(Number(port), hostname)
    socket.end(head).resume()
    await once(socket, 'close')
    times.push(performance.now() - began)
  }
  return median(times)
}
