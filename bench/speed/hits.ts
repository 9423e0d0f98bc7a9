// Cached responses: every variant of the gateway beside a plain server, nginx and the usual compositions.

import { readFileSync } from 'node:fs'
import { bars } from '../bars.ts'
import { count, type Finding, notMeasured, type Row } from '../row.ts'
import type { Absent, Contender } from './contender.ts'
import { gatewayIds, startGateways } from './gateways.ts'
import { connections, loader } from './load.ts'
import { nginxVersion, startNginx } from './nginx.ts'
import { startBareFastify, startProxy, startRaw, startUsual } from './others.ts'
import { coreCount, pins } from './pinned.ts'
import { best, leastOf, type Measured, measureInRounds, medianOf } from './rounds.ts'
import { openWorld } from './world.ts'

const nginxIds = ['nginx', 'nginx-open']
const parts = ['raw', 'fastify', ...gatewayIds, 'proxy', 'usual', ...nginxIds]

export const hits: Row = {
  id: 'hits',
  parts,
  method:
    `A process for each server, all started at the beginning and kept; then rounds of all rows in turn with ${connections} kept ` +
    'connections that send the next request on the response to the last. Servers run on one core; load, Redis, origin and provider on the ' +
    'others. Before and after each round answers are looked at (status, every byte of the body, ETag, headers, a refused key), ' +
    'and the counts of the key in the store, of the answers by status in the metrics and of lines in the log must agree and ' +
    `be those of the load and at most ${connections} more, which were in flight when it ended.`,
  run: async (scope, progress, { settings, parts: wanted }) => {
    const { rounds = 5, seconds = 4 } = settings
    progress('starts everything')
    const world = await openWorld(scope)
    const isWanted = (id: string): boolean => id === 'raw' || wanted.includes(id)
    const all: (Contender | Absent)[] = [
      await startRaw(scope, world),
      ...(isWanted('fastify') ? [await startBareFastify(scope, world)] : []),
      ...(await startGateways(scope, world, wanted)),
      ...(isWanted('proxy') ? [await startProxy(scope, world)] : []),
      ...(isWanted('usual') ? [await startUsual(scope, world)] : []),
      ...(nginxIds.some(isWanted) ? await startNginx(scope, world) : []),
    ].filter(({ id }) => isWanted(id))
    const contenders = all.filter((one): one is Contender => !('absent' in one))
    const absent = all.filter((one): one is Absent => 'absent' in one)
    const measured = await measureInRounds(world, contenders, { rounds, seconds }, progress)
    const of = (id: string): Measured | undefined => measured.find(({ contender }) => contender.id === id)
    const findings = [
      ...judged(of),
      ...absent.map(({ name, absent: why }) => notMeasured(name, why)),
      checked(measured),
    ]
    return {
      findings,
      table: tableOf(measured, of('raw')),
      versions: [...(nginxVersion ? [`nginx ${nginxVersion}`] : []), packages()],
      notes: [
        `Load from ${loader}. Rounds: ${rounds} of ${seconds} s for each row after one to warm up. Body: ${count(world.body.length)} bytes, the same for all.`,
        'Of a column with two figures the first is the best round and the second the median. CPU is the processor time of the ' +
          'server alone for an answer, which other work on the machine moves least; "busy" is the share of its core that the ' +
          'server used and "others" what went to anything else there, both of the median round. Where the two are well below ' +
          '100 %, load and Redis on the other core were the limit; where "others" is high, the machine was not quiet and the ' +
          'CPU column says more than the answers a second.',
        ...(pins && coreCount === 2
          ? [
              'This machine has 2 cores, so load and Redis share one. The faster a server and the more it needs Redis, the more ' +
                'of its figure is theirs; the CPU column is without them.',
            ]
          : []),
        ...(pins ? [] : ['There is no taskset or but one core here: nothing was pinned.']),
      ],
      drawings: drawingsOf(measured, of('raw')),
    }
  },
}

const ratio = (one: number, other: number): string => (one / other).toFixed(2)

/** A smaller difference means nothing on a machine with other users. */
const noise = 0.1

type Of = (id: string) => Measured | undefined

const judged = (of: Of): Finding[] => {
  /** The ratio to another row by the best rounds. */
  const against = (id: string, other: string, bar: number, what: string, allowed = 0): Finding[] => {
    const [one, base] = [of(id), of(other)]
    if (!one || !base || one.samples.length === 0 || base.samples.length === 0) return []
    const share = best(one) / best(base)
    const cpuShare = leastOf(base, 'cpuMicros') / leastOf(one, 'cpuMicros')
    return [
      {
        what,
        bar: `≥ ${bar.toFixed(2)} ×${allowed > 0 ? ' (a gap under 10 % is none)' : ''}`,
        measured: `${share.toFixed(2)} × (${count(best(one))} of ${count(best(base))} a second; by CPU ${cpuShare.toFixed(2)} ×)`,
        met: share >= bar - allowed,
        figures: { share, cpuShare },
      },
    ]
  }
  /** The ratio to another row by the processor time of a response. */
  const byCpu = (id: string, other: string, bar: number, what: string): Finding[] => {
    const [one, base] = [of(id), of(other)]
    if (!one || !base || one.samples.length === 0 || base.samples.length === 0) return []
    const [micros, basis] = [leastOf(one, 'cpuMicros'), leastOf(base, 'cpuMicros')]
    return [
      {
        what,
        bar: `≥ ${bar.toFixed(2)} ×`,
        measured: `${ratio(basis, micros)} × (${micros.toFixed(1)} of ${basis.toFixed(1)} µs)`,
        met: basis >= micros * bar,
        figures: { micros, basis },
      },
    ]
  }
  const late = (id: string, other: string, times: number, what: string, allowed = 0): Finding[] => {
    const [one, base] = [of(id), of(other)]
    if (!one || !base || one.samples.length === 0 || base.samples.length === 0) return []
    const [p99, basis] = [leastOf(one, 'p99'), leastOf(base, 'p99')]
    return [
      {
        what,
        bar: `≤ ${times} ×${allowed > 0 ? ' (a gap under 10 % is none)' : ''}`,
        measured: `${ratio(p99, basis)} × (${p99.toFixed(1)} of ${basis.toFixed(1)} ms)`,
        met: p99 <= basis * (times + allowed),
        figures: { p99, basis },
      },
    ]
  }
  return [
    ...byCpu('embedded', 'fastify', 0.92, 'embedded store, of bare Fastify by CPU'),
    ...byCpu('redis', 'fastify', 0.77, 'Redis, 1 key, of bare Fastify by CPU'),
    ...against('embedded', 'raw', 0.85, 'embedded store, of raw'),
    ...against('redis', 'raw', 0.8, 'Redis, 1 key, of raw'),
    ...late('redis', 'raw', 3, 'the same: p99, of raw'),
    ...against('redis-1000', 'raw', 0.75, 'Redis, 1,000 keys, of raw'),
    ...late('redis-1000', 'raw', 3, 'the same: p99, of raw'),
    ...against('embedded-log', 'raw', 0.7, 'embedded store, with the access log, of raw'),
    ...against('redis-log', 'raw', 0.7, 'Redis, 1 key, with the access log, of raw'),
    ...against('redis-304', 'redis', 1, '304, of the 200', noise),
    ...against('redis-br', 'redis', 1, 'br, of the 200', noise),
    ...against('redis', 'nginx', 1.3, 'Redis, 1 key, of nginx + Lua + Redis'),
    ...late('redis', 'nginx', 1, 'the same: p99, of nginx’s', noise),
    ...against('redis', 'proxy', 5, 'Redis, 1 key, of Fastify + reply-from'),
    ...against('redis', 'usual', 5, 'Redis, 1 key, of Fastify + rate-limit + lru-cache'),
  ]
}

const checked = (measured: readonly Measured[]): Finding => {
  const faults = measured.flatMap(one => one.faults.map(fault => `${one.contender.id}: ${fault}`))
  const answers = measured.reduce((total, one) => total + one.answers, 0)
  return {
    what: 'every answer right and counted',
    bar: 'no fault',
    measured:
      faults.length === 0
        ? `${count(answers)} answers without a fault`
        : `${faults.length} faults, such as ${[...new Set(faults)].slice(0, 3).join('; ')}`,
    met: faults.length === 0,
    figures: { answers, faults: faults.length },
  }
}

const two = (one: number, other: number, digits: number): string =>
  `${one.toFixed(digits)} / ${other.toFixed(digits)}`

const tableOf = (measured: readonly Measured[], raw: Measured | undefined) => ({
  head: ['row', 'what', 'answers a second', 'of raw', 'p50 ms', 'p99 ms', 'CPU µs', 'busy', 'others'],
  lines: measured
    .filter(({ samples }) => samples.length > 0)
    .map(one => [
      one.contender.id,
      one.contender.name,
      `${count(best(one))} / ${count(medianOf(one, 'perSecond'))}`,
      raw ? two(best(one) / best(raw), medianOf(one, 'perSecond') / medianOf(raw, 'perSecond'), 2) : '—',
      two(leastOf(one, 'p50'), medianOf(one, 'p50'), 1),
      two(leastOf(one, 'p99'), medianOf(one, 'p99'), 1),
      two(leastOf(one, 'cpuMicros'), medianOf(one, 'cpuMicros'), 0),
      `${(medianOf(one, 'busy') * 100).toFixed(0)} %`,
      `${(medianOf(one, 'others') * 100).toFixed(0)} %`,
    ]),
})

const drawingsOf = (measured: readonly Measured[], raw: Measured | undefined) => {
  const shown = measured.filter(({ samples }) => samples.length > 0)
  if (!raw || shown.length === 0) return {}
  const drawn = (value: (one: Measured) => readonly [number, number]) =>
    shown.map(one => ({ name: one.contender.id, values: value(one) }))
  return {
    'performance-share.svg': {
      caption: 'Answers a second of each row as a share of raw node:http, best and median round',
      svg: bars({
        title: 'Answers a second, as a share of raw node:http',
        kinds: ['best round', 'median'],
        bars: drawn(one => [best(one) / best(raw), medianOf(one, 'perSecond') / medianOf(raw, 'perSecond')]),
        digits: 2,
      }),
    },
    'performance-p99.svg': {
      caption: 'p99 of each row in ms, best and median round',
      svg: bars({
        title: `p99 in ms with ${connections} connections that never rest`,
        kinds: ['best round', 'median'],
        bars: drawn(one => [leastOf(one, 'p99'), medianOf(one, 'p99')]),
        digits: 1,
      }),
    },
    'performance-cpu.svg': {
      caption: 'Processor time of the server for an answer in µs, best and median round',
      svg: bars({
        title: 'Processor time of the server for an answer, µs',
        kinds: ['best round', 'median'],
        bars: drawn(one => [leastOf(one, 'cpuMicros'), medianOf(one, 'cpuMicros')]),
        digits: 0,
      }),
    },
  }
}

/** Versions of the packages used by the contenders. */
const packages = (): string => {
  const versionOf = (name: string): string => {
    try {
      const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url)
      return `${name} ${(JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version}`
    } catch {
      return `${name} not installed`
    }
  }
  return ['fastify', '@fastify/reply-from', '@fastify/rate-limit', 'lru-cache', 'ioredis']
    .map(versionOf)
    .join(', ')
}
