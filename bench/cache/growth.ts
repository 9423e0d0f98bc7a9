// How a deployment grows, from measured unit costs: for this country, a continent and the world, from 100 requests a second to
// ten million.

import { type Chart, chart, powerOfTen } from '../chart.ts'
import { count, type Finding, notMeasured, type Row } from '../row.ts'
import { type Area, type Growth, growthAt, plannedShare } from './growth-model.ts'
import { measureUnitCosts, type UnitCosts } from './unit-costs.ts'

// Land in km² over that of a cell of 0.1° (123.6 km² at the equator, by the cosine of the latitude): Asia's 44.6 million at 107,
// all land but Antarctica's 135 million at 98.
const areas = [
  { name: 'Bangladesh', cells: 1_259, keys: 1_000 },
  { name: 'Asia', cells: 417_000, keys: 100_000 },
  { name: 'the world', cells: 1_380_000, keys: 1_000_000 },
] as const satisfies readonly Area[]
const exponents = [2, 3, 4, 5, 6, 7]

const bytes = (value: number): string => {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(value, 1)) / 3)))
  return `${Number((value / 1000 ** power).toPrecision(3))} ${units[power]}`
}
const short = (value: number): string =>
  value >= 100 ? count(Number(value.toPrecision(3))) : String(Number(value.toPrecision(2)))

export const growth: Row = {
  id: 'growth',
  method:
    'One gateway on one core with Redis, the access log on, and the mix of `traffic generate` with gzip: processor time of gateway ' +
    'and Redis, commands, bytes and memory for each request, key and cell. The rest is arithmetic on these ' +
    '(bench/cache/growth-model.ts): requests times cost, cells in demand by Zipf, loads by age and by run.',
  run: async (scope, progress, { settings: { seconds = 4 } }) => {
    const units = await measureUnitCosts(scope, seconds, progress)
    if (!units) return { findings: [notMeasured('unit costs', 'redis-server is not installed')] }
    const grown = areas.map(area => ({
      area,
      steps: exponents.map(exponent => growthAt(10 ** exponent, area, units)),
    }))
    return {
      findings: findingsOf(units),
      table: {
        head: [
          'area',
          'requests/s',
          'cells in demand',
          'gateway cores',
          'processes',
          'Redis commands/s',
          'Redis cores',
          'shards',
          'Redis memory',
          'gzip out',
          'weight a day, by age',
          'by run',
        ],
        lines: grown.flatMap(({ area, steps }) => steps.map(step => lineOf(area, step))),
      },
      notes: notesOf(units, grown),
      drawings: { 'capacity-growth.svg': { caption, svg: chart(drawingOf(grown, units)) } },
    }
  },
}

const findingsOf = (units: UnitCosts): Finding[] => [
  ...units.requests.map(({ connections, perSecond, gatewayUs, redisUs, redisCommands }) => ({
    what: `the mix at ${connections} connection${connections === 1 ? '' : 's'}, a request`,
    bar: '—',
    measured:
      `${gatewayUs.toFixed(1)} µs of the gateway, ${redisUs.toFixed(1)} µs and ${redisCommands.toFixed(3)} commands of Redis; ` +
      `${count(perSecond)} a second`,
    met: null,
    figures: { connections, perSecond, gatewayUs, redisUs, redisCommands },
  })),
  {
    what: 'an answer, a cell, a key, an idle gateway',
    bar: '—',
    measured:
      `${count(units.bytesGzip)} bytes with gzip, ${count(units.bytesIdentity)} without, head and body; ` +
      `${count(units.bytesPerCell)} bytes of Redis a cell, ${count(units.bytesPerKey)} a key with its counts; ` +
      `${units.idleCommands.toFixed(1)} commands and ${(units.idleUs / 1000).toFixed(1)} ms of a core a second; ` +
      `${count(units.residentAtStart)} MiB at the start, ${count(units.residentAfter)} MiB with ${count(units.cells)} cells`,
    met: null,
    figures: {
      bytesGzip: units.bytesGzip,
      bytesIdentity: units.bytesIdentity,
      bytesPerCell: units.bytesPerCell,
      bytesPerKey: units.bytesPerKey,
      idleCommands: units.idleCommands,
      idleUs: units.idleUs,
      residentAtStart: units.residentAtStart,
      residentAfter: units.residentAfter,
    },
  },
]

const lineOf = ({ name }: Area, step: Growth): string[] => [
  name,
  count(step.requestsPerSecond),
  short(step.inDemand),
  short(step.gatewayCores),
  count(step.instances),
  short(step.redisCommands),
  short(step.redisCores),
  count(step.shards),
  bytes(step.redisBytes),
  `${bytes(step.bytesPerSecond)}/s`,
  short(step.weightByAge),
  short(step.weightByRun),
]

const caption =
  'Cores and bandwidth by requests a second, and the weight of a day at the provider for Bangladesh, Asia and the world'

type Grown = readonly { readonly area: Area; readonly steps: readonly Growth[] }[]

const drawingOf = (grown: Grown, units: UnitCosts): Chart => {
  const [home] = grown
  const line = (name: string, steps: readonly Growth[], of: (step: Growth) => number) => ({
    name,
    points: steps.map(step => [Math.log10(step.requestsPerSecond), Math.log10(of(step))] as const),
  })
  const steps = home?.steps ?? []
  return {
    title: `Growth, from ${units.requests.find(({ connections }) => connections === 64)?.gatewayUs.toFixed(0)} µs a request; processors planned to ${plannedShare * 100} %`,
    x: { label: 'requests a second', min: 2, max: 7, step: 1, text: powerOfTen },
    panels: [
      {
        label: 'cores',
        log: true,
        lines: [
          line('gateways', steps, step => step.gatewayCores),
          line('Redis', steps, step => step.redisCores),
        ],
      },
      { label: 'bytes a second, gzip', log: true, lines: [line('out', steps, step => step.bytesPerSecond)] },
      {
        label: 'weight a day at the provider, by age',
        log: true,
        lines: grown.map(({ area, steps: of }) => line(area.name, of, step => step.weightByAge)),
      },
    ],
  }
}

const notesOf = (units: UnitCosts, grown: Grown): string[] => {
  const at = (name: string, requestsPerSecond: number): Growth => {
    const step = grown
      .find(({ area }) => area.name === name)
      ?.steps.find(one => one.requestsPerSecond === requestsPerSecond)
    if (!step) throw new Error(`no figures of ${name} at ${requestsPerSecond}`)
    return step
  }
  const [home, asia, world] = [at('Bangladesh', 100_000), at('Asia', 100_000), at('the world', 1_000_000)]
  const perShard = (plannedShare * 100_000) / home.redisCores
  const timelineBytes = 17_352
  return [
    '**How to read the growth.** Traffic multiplies gateways, Redis commands and bandwidth, and nothing else: the weight at the ' +
      'provider and the memory of cells follow from how many cells are in demand, and stop growing once all are. Keys cost ' +
      `memory of Redis (${count(units.bytesPerKey)} bytes each). Instances cost at most ${units.idleCommands.toFixed(0)} commands a second each, measured right after all keys were in use. ` +
      `Gateways and shards are planned to ${plannedShare * 100} % of a core.`,
    `**Another shard** of a Redis Cluster is due every ${short(perShard)} requests a second, by processor time; by memory it never is ` +
      `before that: all cells of the world and a million keys take ${bytes(world.redisBytes)}. Counts of a key and its cell's entry ` +
      'each live in one slot, so shards share the work evenly as long as no single key has more than a shard can count.',
    `**A continent** (${count(areas[1].cells)} cells): ${count(asia.instances)} processes and ${count(asia.shards)} shards for 100,000 requests a second. The ` +
      `provider is the first limit: by age ${short(asia.weightByAge)} of weight a day, by run ${short(asia.weightByRun)}, where the free plan has 10,000; ` +
      "by run and a paid plan, or a provider of one's own, are the way. Next is the memory tier: " +
      `${bytes(areas[1].cells * timelineBytes)} would hold every timeline in each process, 256 MiB hold ${count(268_435_456 / timelineBytes)}; the rest is read from Redis. Then ` +
      'demand: a process follows 50,000 cells (src/cache/demand.ts), so refresh-ahead leaves the seldom requested ones to be ' +
      'refreshed while stale.',
    `**The world** (${count(areas[2].cells)} cells): the same limits, a few times nearer. Split by continent: a fleet, a Redis Cluster and an account at the ` +
      `provider each, because nothing is shared between places that no one requests together. At a million requests a second ` +
      `${count(world.instances)} processes, ${count(world.shards)} shards, ${bytes(world.bytesPerSecond)}/s of bandwidth, and ${short(world.weightByRun)} of weight a day by run. The ` +
      'catalogue is a limit before that: it is one JSON file in the memory of each process, made for thousands of places and not for millions.',
  ]
}
