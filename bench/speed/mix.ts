// Realistic traffic, the headline of the benchmark: the generated mix on the gateway beside a plain server, nginx with the same
// guarantees and the usual composition; the cost of each part; the mix at a fixed rate; and memory.

import type { Scope } from '../../test/scenarios/set-up.ts'
import { count, type Finding, notMeasured, type Result, type Row } from '../row.ts'
import { type Absent, type Contender, type World, withoutRedis } from './contender.ts'
import { everyPlace, startVariants, type Variant } from './gateways.ts'
import { checked, type Judge, judgeOf, quietness } from './judge.ts'
import { connections, loader } from './load.ts'
import { measureMemory } from './mix-memory.ts'
import { startNewPlaces } from './mix-new.ts'
import { startNginxForMix } from './mix-nginx.ts'
import {
  measureOpenPairs,
  type OpenLoop,
  type OpenRuns,
  openBars,
  openDrawing,
  openFindings,
  pairSeconds,
} from './mix-open.ts'
import { startGatewayForMix, startReadyForMix, startUsualForMix } from './mix-servers.ts'
import { measureSpread } from './mix-spread.ts'
import { generateMix, type Mix, mixKeys, mixOptions } from './mix-traffic.ts'
import { measureInRounds, medianOf } from './rounds.ts'
import { columnsOfRounds, cpuBars, p99Bars, tableOfRounds } from './rounds-form.ts'
import { versionsOf } from './versions.ts'
import { openWorld } from './world.ts'

const ready = [
  { id: 'mix-raw', name: 'raw node:http, one ready body, the mix', kind: 'raw' },
  { id: 'mix-fastify', name: 'bare Fastify, one ready body with the same headers, the mix', kind: 'fastify' },
] as const

const variants: readonly Variant[] = [
  { id: 'mix-one', name: 'Abohawa, Redis, one URL, 1 key, no log', server: 'one' },
  {
    id: 'mix-places',
    name: `Abohawa, Redis, ${count(everyPlace.length)} places in turn, 1 key, no log`,
    server: 'places',
    paths: everyPlace,
  },
  {
    id: 'mix-keys',
    name: `Abohawa, Redis, one URL, ${count(mixKeys)} keys in turn, no log`,
    server: 'one',
    keys: mixKeys,
  },
]

const [open, spread, memory] = ['mix-open', 'mix-spread', 'mix-memory']
const inOpenLoop = ['mix-raw', 'mix-abohawa', 'mix-nginx', 'mix-usual']
const inRounds = [
  ...ready.map(({ id }) => id),
  'mix-abohawa',
  'mix-nginx',
  'mix-usual',
  ...variants.map(({ id }) => id),
  'mix-nginx-keys',
  'mix-new-identity',
  'mix-new-gzip',
]

export const mix: Row = {
  id: 'mix',
  parts: [...inRounds, open, spread, memory],
  method:
    `\`traffic generate ${mixOptions.join(' ')}\` with keys of the server, sent in its order over ${connections} kept connections, each with ` +
    'the next request on the response to the last, and again from the first; an If-None-Match has the ETag that was current before the ' +
    'round. All on Redis with 48 hours of weather. Origin of nginx and of the usual composition is a gateway that receives no load, and their ' +
    'bodies stay for its max-age; nginx has them plain and as gzip, answers 304, and buffers its log by 64 kB or a second. ' +
    'Rounds, cores and counts are as in `hits`; samples of the whole mix are checked before and after each round (status, body after ' +
    'decoding, ETag, the 304 with it). The open loop is `abohawa replay --rate`, with as many connections, at half of the capacity that ' +
    `the median round found, in runs of ${pairSeconds} s in turn, of which the median counts; latency counts from the due instant. ` +
    'Memory is that of a fresh process with its log.',
  run: async (scope, progress, { settings, parts: wanted }) => {
    progress('starts everything')
    const world = await openWorld(scope, { ABOHAWA_WEATHER__HOURLY_HOURS: '48' })
    if (world.redisUrl === undefined) return { findings: [notMeasured('the mix', withoutRedis)] }
    const traffic = await generateMix(world.folder)
    const isInRounds = wanted.some(id => id !== memory && id !== spread)
    const rounds = isInRounds
      ? await measureRounds(scope, world, traffic, progress, { settings, parts: wanted })
      : undefined
    const { minutes = 5, seconds = 4 } = settings
    const processes = wanted.includes(spread)
      ? [await measureSpread(scope, world, traffic, seconds, progress)]
      : []
    const overTime = wanted.includes(memory)
      ? await measureMemory(scope, world, traffic, minutes, progress)
      : undefined
    return {
      ...rounds,
      findings: [...(rounds?.findings ?? []), ...processes, ...(overTime?.findings ?? [])],
      drawings: { ...rounds?.drawings, ...overTime?.drawings },
    }
  },
}

const measureRounds: (
  scope: Scope,
  world: World,
  traffic: Mix,
  progress: (text: string) => void,
  wish: Parameters<Row['run']>[2],
) => Promise<Result> = async (scope, world, traffic, progress, { settings, parts: wanted }) => {
  const { rounds = 5, seconds = 4, pairs = 15 } = settings
  const ids = ['mix-raw', ...wanted, ...(wanted.includes(open) ? inOpenLoop : [])]
  const isWanted = (id: string): boolean => ids.includes(id)
  const { contender: ours, keys } = await startGatewayForMix(scope, world, traffic, 'mix:')
  const onRedis = { ABOHAWA_REDIS__URL: world.redisUrl ?? '' }
  const all: (Contender | Absent)[] = []
  for (const one of ready)
    if (isWanted(one.id)) all.push(await startReadyForMix(scope, world, traffic, keys, one))
  const nginx = ['mix-nginx', 'mix-nginx-keys'].some(isWanted)
    ? await startNginxForMix(scope, world, traffic, keys)
    : []
  all.push(ours, ...nginx)
  if (isWanted('mix-usual')) all.push(await startUsualForMix(scope, world, traffic, keys))
  all.push(
    ...(await startVariants(
      scope,
      world,
      variants.filter(({ id }) => isWanted(id)),
      {
        one: { ...onRedis, ABOHAWA_REDIS__PREFIX: 'mix-one:' },
        // A process of its own, so that the other has one body alone.
        places: { ...onRedis, ABOHAWA_REDIS__PREFIX: 'mix-places:' },
      },
    )),
  )
  if (['mix-new-identity', 'mix-new-gzip'].some(isWanted))
    all.push(...(await startNewPlaces(scope, world, seconds)))
  const chosen = inRounds.filter(isWanted).flatMap(id => all.filter(one => one.id === id))
  const contenders = chosen.filter((one): one is Contender => !('absent' in one))
  const absent = chosen.filter((one): one is Absent => 'absent' in one)

  const measured = await measureInRounds(world, contenders, { rounds, seconds }, progress)
  const judge = judgeOf(measured)
  const raw = judge.of('mix-raw')
  const halfOf = (id: string): number | undefined => {
    const one = judge.of(id)
    return one && Math.max(1, Math.floor(medianOf(one, 'perSecond') / 2))
  }
  const loopOf = (id: string, name: string, rate = halfOf(id)): OpenLoop[] => {
    const contender = contenders.find(one => one.id === id)
    return contender && rate !== undefined ? [{ contender, name, rate }] : []
  }
  const loops = {
    pair: [...loopOf('mix-raw', rawAtOurs, halfOf('mix-abohawa')), ...loopOf('mix-abohawa', 'Abohawa')],
    others: [...loopOf('mix-raw', 'raw'), ...loopOf('mix-nginx', 'nginx'), ...loopOf('mix-usual', 'usual')],
  }
  const figures = wanted.includes(open)
    ? await measureOpenPairs(world, traffic, keys, loops, pairs, progress)
    : []
  const openOf = (name: string): OpenRuns | undefined => figures.find(one => one.name === name)
  const [oursOpen, rawOpen] = [openOf('Abohawa'), openOf(rawAtOurs)]
  return {
    findings: [
      ...findingsOf(judge),
      ...(oursOpen && rawOpen ? openBars(oursOpen, rawOpen) : []),
      ...openFindings(figures),
      ...absent.map(({ name, absent: why }) => notMeasured(name, why)),
      checked(measured),
    ],
    table: tableOfRounds(measured, raw),
    versions: versionsOf([
      'fastify',
      '@fastify/rate-limit',
      '@fastify/etag',
      '@fastify/compress',
      'lru-cache',
      'ioredis',
    ]),
    notes: [
      `**The mix**: ${describe(traffic)}. Load from ${loader}; ${rounds} rounds of ${seconds} s for each row, each of a process of its own that is warm. ` +
        `The body of raw and of one URL has ${count(world.body.length)} bytes.`,
      quietness(measured),
      ...columnsOfRounds,
    ],
    drawings: {
      ...cpuBars('performance-mix-cpu.svg', 'the mix and its parts', measured),
      ...p99Bars('performance-mix-p99.svg', 'the mix and its parts', measured),
      ...(figures.length > 0 ? openDrawing(figures) : {}),
    },
  }
}

const rawAtOurs = 'raw, same rate'

const findingsOf = ({ byCpu, byCost, inCost, byCostWithRedis, byP99 }: Judge): Finding[] => [
  ...inCost('mix-abohawa', 'mix-raw', '**the mix**, log on, of raw node:http without a log, by CPU'),
  ...byCostWithRedis(
    'mix-abohawa',
    'mix-nginx',
    0.87,
    '**the mix**, server and Redis, of nginx + Lua + Redis',
  ),
  ...byP99('mix-abohawa', 'mix-nginx', 1, 'the same: p99, of nginx’s'),
  ...byCpu('mix-places', 'mix-one', 0.9, `${count(everyPlace.length)} places in turn, of one URL by CPU`),
  ...byCostWithRedis(
    'mix-keys',
    'mix-nginx-keys',
    1,
    '1,000 keys in turn, server and Redis, of nginx with them',
  ),
  ...byP99('mix-keys', 'mix-nginx-keys', 1, 'the same: p99, of nginx’s'),
  ...byCost('mix-new-gzip', 'mix-new-identity', 1.15, 'gzip of a new place, of its identity by CPU'),
]

const describe = ({ requests }: Mix): string => {
  const share = (of: (one: Mix['requests'][number]) => boolean): string =>
    `${((requests.filter(of).length / requests.length) * 100).toFixed(0)} %`
  const paths = new Set(requests.map(({ path }) => path)).size
  const keys = new Set(requests.map(({ key }) => key)).size
  return (
    `${count(requests.length)} requests for ${count(paths)} URLs with ${count(keys)} keys; ${share(one => one.accepts !== undefined)} take gzip, ` +
    `${share(one => one.accepts?.includes('br') ?? false)} br too, ${share(one => one.conditional ?? false)} come with If-None-Match`
  )
}
