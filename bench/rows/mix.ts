// The headline: traffic as it comes on the gateway, beside a plain server, nginx with the same guarantees and the usual composition.
// Also the mix in an open loop, the spread of fresh processes and the memory of one over minutes, which use the same set-up.

import { setInterval } from 'node:timers'
import { createKey } from '../../src/keys/key-form.ts'
import type { Env } from '../../test/scenarios/set-up.ts'
import { residentMiB } from '../../test/support/proc.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import { measureInRounds, type Running, resultOf, type Subject, warmUp } from '../rounds.ts'
import { count, found, judged, median, type Row, rangeOf, sum } from '../row.ts'
import { gatewaySubject } from '../servers/gateway.ts'
import { nginxSubject } from '../servers/nginx.ts'
import { readySubject, usualSubject } from '../servers/others.ts'
import { logged } from '../tools/gateway-process.ts'
import { generateMix, keyOf, type Mix, mixKeys, mixTraffic } from '../tools/mix.ts'
import { cpuSecondsOf, emptyOutputOf } from '../tools/processes.ts'
import { type Replayed, replayMix } from '../tools/replay.ts'
import { openWorld, type World } from '../tools/world.ts'
import { connections, load } from '../tools/wrk.ts'

/** 48 hours of weather, as few ask for more. */
export const mixEnv: Env = { ...logged, ABOHAWA_WEATHER__HOURLY_HOURS: '48' }

/** @param more settings of all processes in Node */
export const setUp = async (scope: Teardown, more: Env = {}) => {
  const world = await openWorld(scope, { ...mixEnv, ...more })
  return { world, mix: await generateMix(world.folder) }
}

export const ours = (
  { folder, redisUrl, env, reference }: World,
  mix: Mix,
  prefix: string,
  more: {
    readonly id?: string
    readonly name?: string
    readonly processes?: number
    readonly env?: Env
  } = {},
): Subject =>
  gatewaySubject({
    id: 'abohawa',
    name: 'Abohawa, Redis, log',
    folder,
    ...more,
    env: env({ ABOHAWA_REDIS__URL: redisUrl, ABOHAWA_REDIS__PREFIX: prefix, ...more.env }),
    keys: mixKeys,
    traffic: mixTraffic(mix, { reference, hasOurEtags: true }),
  })

/** Servers of one ready body, which take no notice of the requests: as long as those to the others, with key and ETag. */
export const readySubjects = async (world: World, mix: Mix, keys: readonly string[]): Promise<Subject[]> => {
  const { url, key } = world.origin
  const ofReference = await mixTraffic(mix, { hasOurEtags: true })(url, [key])
  const sent = mix.requests.map(one => keyOf(one, keys))
  const workload = async () => ({ ...(await ofReference.workload()), keys: sent })
  return (['raw', 'fastify'] as const).map(kind => readySubject(world, { kind, workload }))
}

export const mix: Row = {
  id: 'mix',
  what: 'traffic as it comes, beside node:http, Fastify, nginx + Lua and the usual composition',
  run: async (scope, options, progress) => {
    const { world, mix } = await setUp(scope)
    const keys = Array.from({ length: mixKeys }, () => createKey())
    const ofOthers = (hasOurEtags: boolean) => mixTraffic(mix, { reference: world.reference, hasOurEtags })
    const subjects = [
      ...(await readySubjects(world, mix, keys)),
      ours(world, mix, 'mix:'),
      nginxSubject(world, { keys, traffic: ofOthers(true), isLogged: true }),
      usualSubject(world, keys, ofOthers(false)),
    ]
    const measured = await measureInRounds(world, subjects, options, progress)
    return resultOf(measured, {
      '**CPU of the mix**, vs raw node:http': ['abohawa', 'raw', 'cpu'],
      '**CPU with Redis**, vs nginx + Lua': ['abohawa', 'nginx', 'both', '≤', 0.85],
      'p99, vs nginx + Lua': ['abohawa', 'nginx', 'p99', '≤', 1.1],
    })
  },
}

const openSeconds = 4

export const open: Row = {
  id: 'open',
  what: 'the mix in an open loop at half of the capacity',
  run: async (scope, { seconds, pairs }, progress) => {
    const { world, mix } = await setUp(scope)
    const subject = ours(world, mix, 'open:')
    const running = await subject.start(scope)
    progress('finds the capacity')
    const workload = await running.workload()
    await warmUp(world.folder, running)
    const { answers, seconds: took } = await load(world.folder, workload, seconds)
    const rate = Math.max(1, Math.floor(answers / took / 2))
    const [raw] = await readySubjects(world, mix, workload.keys)
    if (!raw) throw new Error('there is a plain server')
    const known = [...new Set(workload.keys)]
    const keys = Array.from({ length: mixKeys }, (_, i) => known[i % known.length] ?? '')
    const runs = { raw: [] as Replayed[], abohawa: [] as Replayed[] }
    const plain = await raw.start(scope)
    await warmUp(world.folder, plain)
    const sides = [
      ['raw', plain],
      ['abohawa', running],
    ] as const
    for (let pair = 1; pair <= pairs; pair++)
      for (const [name, one] of sides) {
        progress(`pair ${pair} of ${pairs}, ${name}`)
        const { url } = await one.workload()
        const sent = { url, keys, rate, seconds: openSeconds, connections, warmUp: 2 }
        runs[name].push(await replayMix(world.folder, mix, sent))
      }
    const valuesOf = (name: keyof typeof runs, of: 'p50' | 'p99' | 'p999'): number[] =>
      runs[name].map(one => one[of])
    const ratios = valuesOf('abohawa', 'p99').map(
      (value, i) => value / (valuesOf('raw', 'p99')[i] ?? Number.NaN),
    )
    const bad = sum(runs.abohawa.map(({ failed, wrong, dropped }) => failed + wrong + dropped))
    return {
      findings: [
        judged(
          'p99 at half of the capacity, vs raw node:http',
          '≤ 2.0 ×',
          bad === 0 && median(ratios) <= 2,
          `${median(ratios).toFixed(2)} × (${median(valuesOf('abohawa', 'p99')).toFixed(2)} of ${median(valuesOf('raw', 'p99')).toFixed(2)} ms, ${pairs} pairs)`,
          { ratios },
        ),
        ...(['raw', 'abohawa'] as const).map(name =>
          found(
            `latency, ${name === 'raw' ? 'raw node:http' : 'Abohawa'}`,
            `p50 ${median(valuesOf(name, 'p50')).toFixed(2)}, p99 ${rangeOf(valuesOf(name, 'p99'), 2)}, p99.9 ${median(valuesOf(name, 'p999')).toFixed(2)} ms ` +
              `at ${count(rate)}/s; ${count(sum(runs[name].map(({ late }) => late)))} of ` +
              `${count(sum(runs[name].map(({ sent }) => sent)))} late, ${count(sum(runs[name].map(({ dropped }) => dropped)))} dropped`,
            runs[name],
          ),
        ),
      ],
    }
  },
}

const [processes, turns] = [8, 5]

export const spread: Row = {
  id: 'spread',
  what: 'how much fresh processes of one build differ on the mix',
  run: async (scope, { seconds }, progress) => {
    const { world, mix } = await setUp(scope)
    const subject = ours(world, mix, 'spread:')
    const all: { readonly running: Running; readonly cpuMicros: number[] }[] = []
    for (let i = 1; i <= processes; i++) {
      progress(`warms process ${i} of ${processes}`)
      const running = await subject.start(scope)
      await warmUp(world.folder, running)
      all.push({ running, cpuMicros: [] })
    }
    let wrongs = 0
    // All run at once and are loaded in turn, as the machine differs from minute to minute too.
    for (let turn = 1; turn <= turns; turn++)
      for (const { running, cpuMicros } of all) {
        progress(`turn ${turn} of ${turns}`)
        const workload = await running.workload()
        const before = await cpuSecondsOf(running.pid)
        const { answers, wrong } = await load(world.folder, workload, seconds)
        cpuMicros.push((((await cpuSecondsOf(running.pid)) - before) * 1e6) / answers)
        wrongs += wrong
      }
    const values = all.map(({ cpuMicros }) => median(cpuMicros))
    const [least, most] = [Math.min(...values), Math.max(...values)]
    return {
      findings: [
        judged(
          `CPU of the slowest of ${processes} processes, vs the fastest`,
          '≤ 1.15 ×',
          wrongs === 0 && most / least <= 1.15,
          `${(most / least).toFixed(2)} × (${most.toFixed(1)} of ${least.toFixed(1)} µs; ${wrongs} wrong)`,
          { values },
        ),
      ],
    }
  },
}

const [boundMiB, levelShare] = [320, 1.05]

export const memory: Row = {
  id: 'memory',
  what: 'the resident memory of a gateway over minutes of the mix',
  run: async (scope, { minutes = 5 }, progress) => {
    const { world, mix } = await setUp(scope)
    const running = await ours(world, mix, 'memory:').start(scope)
    // The log of five minutes would be gigabytes.
    const emptied = setInterval(() => void emptyOutputOf(running.pid), 5_000)
    scope.teardown(() => clearInterval(emptied))
    const atStart = residentMiB(running.pid)
    const halves: number[] = []
    let [answers, wrong] = [0, 0]
    for (let half = 0; half < minutes * 2; half++) {
      progress(`minute ${(half / 2).toFixed(1)} of ${minutes}`)
      const loaded = await load(world.folder, await running.workload(), 30)
      answers += loaded.answers
      wrong += loaded.wrong
      halves.push(residentMiB(running.pid))
    }
    const most = residentMiB(running.pid, 'VmHWM')
    const meanOf = (some: readonly number[]): number => sum(some) / some.length
    // Too short to say whether it is level where there is no third minute before the last.
    const level = minutes > 3 ? meanOf(halves.slice(-2)) / meanOf(halves.slice(4, 6)) : Number.NaN
    return {
      findings: [
        judged(
          `resident memory over ${minutes} minutes of the mix`,
          `≤ ${boundMiB} MiB and level (≤ ${levelShare} ×)`,
          most <= boundMiB && !(level > levelShare),
          `highest ${count(most)} MiB, at the end ${count(halves.at(-1) ?? 0)}, at the start ${count(atStart)}; ${minutes > 3 ? `last minute ${level.toFixed(2)} × the third; ` : ''}` +
            `${count(answers)} answers, ${wrong} wrong`,
          { most, halves, atStart },
        ),
      ],
    }
  },
}
