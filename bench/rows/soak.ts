// Two gateways serve the mix and lists of places for hours, one on Redis and one on the embedded store, while every hundred seconds
// an upstream or Redis fails: what they hold, how late they answer in each tenth, and whether every count is right at the end.

import { globSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { issueKeys, quietZone } from '../../test/scenarios/keys.ts'
import { catalogueFile, type Env, processEnv, startProcess } from '../../test/scenarios/set-up.ts'
import { type ProviderProcess, startProvider } from '../../test/support/provider.ts'
import { startRedis } from '../../test/support/redis-server.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import { lineOf } from '../../tools/load/traffic/traffic-request.ts'
import { count, type Finding, judged, median, type Row, sum } from '../row.ts'
import { keysOf, usedBy } from '../servers/gateway.ts'
import { generateMix, type Mix, mixKeys } from '../tools/mix.ts'
import { readerOfRedis } from '../tools/processes.ts'
import { type Replayed, replayMix } from '../tools/replay.ts'
import { openFolder } from '../tools/world.ts'

const tenths = 10
const rate = 2_000
const listRate = 20
/** Units of a list. */
const placesEach = 10
// In MiB, and in handles and descriptors.
const level = 5
const sampleEveryMs = 10_000
const faultEveryMs = 100_000
const faultLastsMs = 1_000
/** Long enough for the circuit to open and for the second upstream to load many cells. */
const outageLastsMs = 60_000
const mib = 2 ** 20

/** What is read of a gateway every ten seconds, and its unit. */
const read = { resident: ' MiB', heap: ' MiB', store: ' MiB', handles: '', descriptors: '' } as const
type Name = keyof typeof read
const names = Object.keys(read) as Name[]

/** @property hours since the begin @property delay p99 of the event loop in ms */
type Sample = { readonly hours: number; readonly delay: number } & Readonly<Record<Name, number>>

/** Reads until the function returned is called, which gives all samples. */
const beginSamples = (opsUrl: string, storeBytes: () => Promise<number>): (() => Sample[]) => {
  const begun = performance.now()
  const samples: Sample[] = []
  const sample = async (): Promise<void> => {
    const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
    const metricOf = (name: string): number =>
      Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(metrics)?.[1] ?? Number.NaN)
    samples.push({
      hours: (performance.now() - begun) / 3_600_000,
      resident: metricOf('process_resident_memory_bytes') / mib,
      heap: metricOf('nodejs_heap_size_used_bytes') / mib,
      handles: metricOf('nodejs_active_resources_total'),
      descriptors: metricOf('process_open_fds'),
      delay: metricOf('nodejs_eventloop_lag_p99_seconds') * 1_000,
      store: (await storeBytes()) / mib,
    })
  }
  // One that fails, while Redis answers nothing, is left out.
  const timer = setInterval(() => void sample().catch(() => {}), sampleEveryMs)
  return () => {
    clearInterval(timer)
    return samples
  }
}

/** Growth in an hour over the second half, by the median of the slopes of all pairs, which a single high reading does not move. */
const growthAnHour = (samples: readonly Sample[], name: Name): number => {
  const half = samples.slice(Math.floor(samples.length / 2))
  return median(half.flatMap((a, i) => half.slice(i + 1).map(b => (b[name] - a[name]) / (b.hours - a.hours))))
}

/** Begins the faults, each in turn; the function returned ends them and says how often each came. */
const beginFaults = (scope: Teardown, provider: ProviderProcess, redisUrl: string) => {
  const redis = new Redis(redisUrl)
  scope.teardown(() => redis.disconnect())
  const failing = async (fault: string, lastsMs = faultLastsMs): Promise<void> => {
    await provider.steer({ fault })
    await pause(lastsMs)
    await provider.steer({ fault: 'none' })
  }
  const faults: Readonly<Record<string, () => Promise<unknown>>> = {
    'the provider: internal-error': () => failing('internal-error'),
    'Redis ends all connections': () => redis.call('CLIENT', 'KILL', 'TYPE', 'normal'),
    'the first upstream fails for a minute': () => failing('internal-error', outageLastsMs),
    'the provider: hang': () => failing('hang'),
    'Redis answers nothing': () => redis.call('CLIENT', 'PAUSE', String(faultLastsMs), 'ALL'),
    'the provider: gaps': () => failing('gaps'),
    'Redis ends the connections for messages': () => redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub'),
  }
  const times = new Map<string, number>()
  let [next, last] = [Object.entries(faults), Promise.resolve() as Promise<unknown>]
  const timer = setInterval(() => {
    const [[name, act] = ['', failing.bind(null, 'none')], ...others] = next
    next = [...others, [name, act]]
    times.set(name, (times.get(name) ?? 0) + 1)
    last = act()
  }, faultEveryMs)
  scope.teardown(() => clearInterval(timer))
  return async (): Promise<ReadonlyMap<string, number>> => {
    clearInterval(timer)
    await last
    return times
  }
}

const start = async (
  scope: Teardown,
  [first, second]: readonly [ProviderProcess, ProviderProcess],
  store: Env,
  storeBytes: () => Promise<number>,
) => {
  const env = processEnv(first.url, {
    ABOHAWA_PROVIDER__FALLBACKS: JSON.stringify([
      { baseUrl: second.url, budget: { perMinute: null, perHour: null, perDay: null } },
    ]),
    ABOHAWA_CATALOGUE__PATH: catalogueFile,
    ABOHAWA_CACHE__FRESHNESS: 'age',
    // Half of the cells become stale while the first upstream fails for a minute.
    ABOHAWA_CACHE__FRESH_FOR: '2m',
    ABOHAWA_QUOTA__TIME_ZONE: quietZone(),
    ...store,
  })
  const issued = await issueKeys(env, Array(mixKeys).fill('enterprise'))
  const { urls } = await startProcess(scope, env)
  const samples = beginSamples(urls.ops ?? '', storeBytes)
  scope.teardown(samples)
  return { url: urls.api ?? '', keys: keysOf(issued), samples, used: () => usedBy(env, issued) }
}

/** Lists of the places of the mix, each place in one list. */
const generateLists = async (folder: string, { requests }: Mix): Promise<Mix> => {
  const path = /\/weather\/((?:division|district|upazila|union)\/\d+)/
  const places = [...new Set(requests.flatMap(one => path.exec(one.path)?.[1] ?? []))]
  const lists = requests.slice(0, Math.floor(places.length / placesEach)).map(({ at, key = '' }, i) => ({
    at,
    method: 'GET',
    path: `/api/v1/weather?places=${places.slice(i * placesEach, (i + 1) * placesEach).join(',')}`,
    key,
    accepts: 'gzip',
  }))
  const file = join(folder, 'lists.ndjson')
  await writeFile(file, lists.map(one => `${lineOf(one)}\n`).join(''))
  return { file, requests: lists }
}

/** @property single requests for one place */
type Traffic = { readonly single: readonly Replayed[]; readonly lists: readonly Replayed[] }

const findingsOf = (
  name: string,
  { single, lists }: Traffic,
  samples: readonly Sample[],
  used: number,
): Finding[] => {
  const totalOf = (of: 'good' | 'wrong' | 'failed', all = [...single, ...lists]): number =>
    sum(all.map(one => one[of]))
  const [good, wrong, failed] = [totalOf('good'), totalOf('wrong'), totalOf('failed')]
  const unitsOf = (of: 'good' | 'wrong'): number =>
    totalOf(of, [...single]) + placesEach * totalOf(of, [...lists])
  // Whether an error costs units depends on its code.
  const [least, most] = [unitsOf('good'), unitsOf('good') + unitsOf('wrong')]
  const p99s = single.map(({ p99 }) => p99)
  const growths = names.map(of => ({ of, unit: read[of], grown: growthAnHour(samples, of) }))
  const late = (p99s.at(-1) ?? 0) / (p99s[1] ?? 1)
  return [
    judged(
      `${name}: growth in an hour`,
      `≤ ${level} MiB each, ≤ ${level} handles and descriptors`,
      growths.every(({ grown }) => grown <= level),
      `${growths.map(({ of, unit, grown }) => `${of} ${grown.toFixed(1)}${unit}`).join(', ')}; ${count(samples.length)} samples`,
      samples,
    ),
    judged(
      `${name}: p99 of the last tenth, vs the second`,
      '≤ 1.5 ×',
      late <= 1.5,
      `${late.toFixed(2)} ×; event loop ${median(samples.map(({ delay }) => delay)).toFixed(1)} ms late`,
      single,
    ),
    judged(
      `${name}: every request answered and counted`,
      'units = 200 and 304, ten for a list',
      failed === 0 && used >= least && used <= most,
      `${count(good)} answers, ${count(used)} of ${count(least)} units; ${count(wrong)} of another status, ${count(failed)} unanswered`,
    ),
  ]
}

export const soak: Row = {
  id: 'soak',
  what: 'two hours of the mix with faults: growth, lateness, counts',
  isLong: true,
  run: async (scope, { minutes = 120 }, progress) => {
    const folder = await openFolder(scope)
    const upstreams = [await startProvider(scope, [], null), await startProvider(scope, [], null)] as const
    const redis = await startRedis(scope)
    const readRedis = readerOfRedis(scope, redis.url)
    const file = join(folder, 'store.db')
    const stores = { Redis: { ABOHAWA_REDIS__URL: redis.url }, embedded: { ABOHAWA_STORE__PATH: file } }
    const bytesOfRedis = async (): Promise<number> => (await readRedis()).usedMemory
    const bytesOfFiles = async (): Promise<number> =>
      sum(globSync(`${file}*`).map(name => statSync(name, { throwIfNoEntry: false })?.size ?? 0))
    const subjects = {
      Redis: await start(scope, upstreams, stores.Redis, bytesOfRedis),
      embedded: await start(scope, upstreams, stores.embedded, bytesOfFiles),
    }
    const mix = await generateMix(folder)
    const lists = await generateLists(folder, mix)
    const endFaults = beginFaults(scope, upstreams[0], redis.url)
    const all = Object.entries(subjects).map(([name, subject]) => ({
      name,
      subject,
      single: [] as Replayed[],
      lists: [] as Replayed[],
    }))
    const seconds = (minutes * 60) / tenths
    for (let tenth = 0; tenth < tenths; tenth++) {
      progress(`tenth ${tenth + 1} of ${tenths}`)
      await Promise.all(
        all.map(async ({ subject: { url, keys }, ...traffic }) => {
          const given = { url, keys, seconds }
          const sent = await Promise.all([
            replayMix(folder, mix, { ...given, rate, connections: 32 }),
            replayMix(folder, lists, { ...given, rate: listRate, connections: 4 }),
          ])
          traffic.single.push(sent[0])
          traffic.lists.push(sent[1])
        }),
      )
    }
    const faults = await endFaults()
    const findings = await Promise.all(
      all.map(async ({ name, subject: { samples, used }, ...traffic }) =>
        findingsOf(name, traffic, samples(), await used()),
      ),
    )
    const { calls } = await upstreams[1].state()
    return {
      findings: findings.flat(),
      notes: [
        `${count(rate)} requests a second to each gateway, and ${listRate} lists of ${placesEach} places; the second upstream got ${count(calls)} requests. Faults: ${[...faults].map(([name, times]) => `${name} (${times})`).join(', ') || 'none, the run was too short'}.`,
      ],
    }
  },
}
