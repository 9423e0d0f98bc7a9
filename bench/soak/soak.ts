// Two gateways serve the mix for hours, one on Redis and one on the embedded store, while a second in every hundred brings a
// fault: what they hold, how late they answer in each tenth, and whether every count is right at the end.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueKeys, quietZone, usedToday } from '../../test/scenarios/keys.ts'
import { catalogueFile, type Env, processEnv, type Scope, startProcess } from '../../test/scenarios/set-up.ts'
import { product } from '../../test/support/process.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { startRedis } from '../../test/support/redis-server.ts'
import { chart } from '../chart.ts'
import { count, type Finding, median, type Result, type Row, sum } from '../row.ts'
import { outputOf } from '../speed/command-output.ts'
import { generateMix, mixKeys } from '../speed/mix-traffic.ts'
import { beginFaults } from './faults.ts'
import {
  beginSamples,
  bytesOfFile,
  bytesOfRedis,
  growthAnHour,
  type Name,
  read,
  type Sample,
} from './samples.ts'

const tenths = 10
const connections = 32
const levelMiB = 5
const levelCount = 5
const names = Object.keys(read) as Name[]

type Subject = {
  readonly name: string
  readonly env: Env
  readonly urls: Readonly<Record<string, string>>
  readonly ids: readonly string[]
  readonly keysFile: string
  readonly samples: () => Sample[]
}

type Tenth = {
  readonly statuses: Readonly<Record<string, number>>
  readonly latency: { readonly p50: number; readonly p99: number; readonly p999: number }
  readonly totals: { readonly sent: number; readonly late: number; readonly failed: Record<string, number> }
}

const start = async (
  scope: Scope,
  folder: string,
  name: string,
  providerUrl: string,
  store: Env,
  storeBytes: () => Promise<number>,
): Promise<Subject> => {
  const env = processEnv(providerUrl, {
    ABOHAWA_CATALOGUE__PATH: catalogueFile,
    ABOHAWA_CACHE__FRESHNESS: 'age',
    ABOHAWA_CACHE__FRESH_FOR: '10m',
    ABOHAWA_QUOTA__TIME_ZONE: quietZone(),
    ...store,
  })
  const issued = await issueKeys(env, Array(mixKeys).fill('enterprise'))
  const keysFile = join(folder, `${name}.json`)
  const keys = issued.map(({ key }, i) => ({ externalId: `key-${String(i + 1).padStart(4, '0')}`, key }))
  await writeFile(keysFile, JSON.stringify(keys))
  const { urls } = await startProcess(scope, env)
  const samples = beginSamples(urls.ops ?? '', storeBytes)
  scope.teardown(samples)
  return { name, env, urls, keysFile, samples, ids: issued.map(({ id }) => id) }
}

const send = async ({ urls, keysFile }: Subject, file: string, rate: number, seconds: number) =>
  JSON.parse(
    await outputOf(product, [
      ...['replay', file, '--target', urls.api ?? '', '--keys', keysFile, '--loop', '--json'],
      ...['--rate', String(rate), '--duration', `${seconds}s`, '--connections', String(connections)],
    ]),
  ) as Tenth

const countIn = (counts: Readonly<Record<string, number>>, but: readonly string[] = []): number =>
  sum(Object.entries(counts).flatMap(([name, many]) => (but.includes(name) ? [] : [many])))

const findingsOf = (
  subject: Subject,
  ran: readonly Tenth[],
  samples: readonly Sample[],
  used: number,
): Finding[] => {
  const good = sum(ran.map(({ statuses }) => countIn({ 200: statuses[200] ?? 0, 304: statuses[304] ?? 0 })))
  const others = sum(ran.map(({ statuses }) => countIn(statuses, ['200', '304'])))
  const failed = sum(ran.map(({ totals }) => countIn(totals.failed)))
  const p99s = ran.map(({ latency }) => latency.p99)
  const growth = (name: Name): string =>
    `${name} ${growthAnHour(samples, name).toFixed(1)} ${read[name]}`.trim()
  const isLevel = (['resident', 'heap', 'store'] as const).every(
    name => growthAnHour(samples, name) <= levelMiB,
  )
  const keepsFew = (['handles', 'descriptors'] as const).every(
    name => growthAnHour(samples, name) <= levelCount,
  )
  return [
    {
      what: `${subject.name}: growth in an hour, over the second half`,
      bar: `≤ ${levelMiB} MiB each, ≤ ${levelCount} handles and descriptors`,
      measured: `${(['resident', 'heap', 'store', 'handles', 'descriptors'] as const).map(growth).join(', ')}; ${count(samples.length)} samples`,
      met: isLevel && keepsFew,
      figures: Object.fromEntries(names.map(name => [name, samples.map(sample => sample[name])])),
    },
    {
      what: `${subject.name}: p99 of the last tenth, in p99s of the second`,
      bar: '≤ 1.5 ×',
      measured: `${((p99s.at(-1) ?? 0) / (p99s[1] ?? 1)).toFixed(2)} ×; each tenth ${p99s.map(p99 => p99.toFixed(1)).join(', ')} ms; event loop ${median(samples.map(({ delay }) => delay)).toFixed(1)} ms late, median of p99`,
      met: (p99s.at(-1) ?? 0) <= 1.5 * (p99s[1] ?? 1),
      figures: { p99s, p999s: ran.map(({ latency }) => latency.p999) },
    },
    {
      what: `${subject.name}: every request has its answer, every unit is counted`,
      bar: 'units = 200 and 304; none without an answer',
      measured: `${count(good)} answers, ${count(used)} units; ${count(others)} of another status, ${count(failed)} without an answer`,
      met: failed === 0 && used === good + others,
      figures: { good, used, others, failed },
    },
  ]
}

const drawingOf = (
  all: readonly { subject: Subject; samples: readonly Sample[] }[],
  minutes: number,
): NonNullable<Result['drawings']> => ({
  'soak.svg': {
    caption:
      'What the gateways hold over the run: resident memory, heap, descriptors, store, and the delay of the event loop',
    svg: chart({
      title: `${minutes} minutes of the mix, with faults`,
      x: { label: 'minutes', max: minutes, step: Math.max(1, Math.round(minutes / 8)) },
      panels: (['resident', 'heap', 'descriptors', 'store', 'delay'] as const).map(name => ({
        label: `${name} ${read[name]}`.trim(),
        lines: all.map(({ subject, samples }) => ({
          name: subject.name,
          points: samples.map(sample => [sample.seconds / 60, sample[name]] as const),
        })),
      })),
    }),
  },
})

export const soak: Row = {
  id: 'soak',
  method:
    'Two gateways, on Redis and on the embedded store, receive the mix of `npm run bench` in an open loop, with 1,000 keys each and weather ' +
    'that is fresh for ten minutes. In every hundred seconds one brings a fault: the provider fails, hangs or leaves gaps, Redis ends ' +
    'connections or answers nothing. Growth is the median slope between all pairs of samples of the second half.',
  run: async (scope, progress, { settings: { minutes = 120, rate = 2_000 } }) => {
    const folder = await mkdtemp(join(tmpdir(), 'abohawa-soak-'))
    scope.teardown(() => rm(folder, { recursive: true, force: true }))
    const provider = await startProvider(scope, [], null)
    const redis = await startRedis()
    scope.teardown(redis.stop)
    const file = join(folder, 'store.db')
    const subjects = [
      await start(
        scope,
        folder,
        'Redis',
        provider.url,
        { ABOHAWA_REDIS__URL: redis.url },
        bytesOfRedis(scope, redis.url),
      ),
      await start(scope, folder, 'embedded', provider.url, { ABOHAWA_STORE__PATH: file }, bytesOfFile(file)),
    ]
    const mix = await generateMix(folder)
    const endFaults = beginFaults(scope, provider, redis.url)
    const ran: Tenth[][] = subjects.map(() => [])
    for (let tenth = 0; tenth < tenths; tenth++) {
      progress(`tenth ${tenth + 1} of ${tenths}`)
      await Promise.all(
        subjects.map(async (subject, i) =>
          ran[i]?.push(await send(subject, mix.file, rate, (minutes * 60) / tenths)),
        ),
      )
    }
    const faults = await endFaults()
    const all = await Promise.all(
      subjects.map(async (subject, i) => ({
        subject,
        samples: subject.samples(),
        ran: ran[i] ?? [],
        used: sum(await usedToday(subject.env, subject.ids)),
      })),
    )
    return {
      findings: all.flatMap(({ subject, samples, ran, used }) => findingsOf(subject, ran, samples, used)),
      notes: [
        `${count(rate)} requests a second to each gateway. Faults: ${[...faults].map(([name, times]) => `${name} (${times})`).join(', ') || 'none, the run was too short'}.`,
      ],
      drawings: drawingOf(all, minutes),
    }
  },
}
