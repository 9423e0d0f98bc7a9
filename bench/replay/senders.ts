// One core that sends, one that answers: our replay, autocannon and wrk in turn on the same plain server and the same
// gateway. And our replay in an open loop, for how late it sends.

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKey } from '../../test/scenarios/set-up.ts'
import { product } from '../../test/support/process.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { count, median, ms, type Row } from '../row.ts'
import { outputOf } from '../speed/command-output.ts'
import { get, path } from '../speed/contender.ts'
import { gatewayEnv, startGateway } from '../speed/gateways.ts'
import { load, loader } from '../speed/load.ts'
import { onCores, pins, serverCores, startPinned } from '../speed/pinned.ts'

const connections = 64
const openRate = 5_000
const bodyBytes = 10_000

type Target = { readonly name: string; readonly url: string; readonly key: string }
type Sample = { readonly perSecond: number; readonly cpuMicros: number; readonly p99: number }
type Sender = {
  readonly name: string
  /** Sends hardly anything, for the cost of a start. */
  start(target: Target): Promise<unknown>
  send(target: Target, seconds: number): Promise<{ answers: number; perSecond: number; p99: number }>
}

export const senders: Row = {
  id: 'senders',
  method: `A plain server of node:http with a ready body of ${count(bodyBytes)} bytes, and a gateway with the embedded store and a warm cache, each on one core; in turn our replay (\`--as-fast-as ${connections}\`), autocannon and wrk with ${connections} connections on the other core. Processor time is the sender's for each request, less that of a run with hardly any.`,
  run: async (scope, progress, { settings: { rounds = 3, seconds = 4 } }) => {
    const folder = await mkdtemp(join(tmpdir(), 'abohawa-bench-'))
    scope.teardown(() => rm(folder, { recursive: true, force: true }))
    const bodyFile = join(folder, 'body')
    await writeFile(bodyFile, randomBytes(bodyBytes).toString('base64').slice(0, bodyBytes))
    const trafficFile = join(folder, 'traffic.ndjson')
    await writeFile(trafficFile, trafficText())
    progress('starts servers')
    const plain = await startPinned(
      scope,
      folder,
      serverCores[0],
      [process.execPath, new URL('../speed/servers/origin.ts', import.meta.url).pathname, bodyFile],
      ['api'],
    )
    const provider = await startProvider(scope, ['--runs', 'none'], null)
    const env = gatewayEnv(provider.url, { ABOHAWA_STORE__PATH: join(folder, 'store.db') })
    const key = await createKey(env)
    const gateway = await startGateway(scope, folder, serverCores[0], env)
    await get(`${gateway.urls.api}${path}`, { 'x-api-key': key })
    const keyFile = join(folder, 'key')
    await writeFile(keyFile, key)
    const targets: Target[] = [
      { name: 'plain server', url: plain.urls.api ?? '', key },
      { name: 'gateway', url: gateway.urls.api ?? '', key },
    ]
    const replay = replaySender(trafficFile, keyFile)
    const all: Sender[] = [replay, autocannon, ...(loader.startsWith('wrk') ? [wrk(folder)] : [])]

    const starts = new Map<Sender, number>()
    for (const sender of all) {
      const before = cpuOfChildren()
      await sender.start(targets[0] as Target)
      starts.set(sender, cpuOfChildren() - before)
    }
    const samples = new Map<string, Sample[]>()
    for (let round = 1; round <= rounds; round++)
      for (const target of targets)
        for (const sender of all) {
          progress(`round ${round} of ${rounds}: ${sender.name} on the ${target.name}`)
          const before = cpuOfChildren()
          const { answers, perSecond, p99 } = await sender.send(target, seconds)
          const name = `${target.name} ${sender.name}`
          const cpuSeconds = cpuOfChildren() - before - (starts.get(sender) ?? 0)
          const sample = { perSecond, p99, cpuMicros: (cpuSeconds / answers) * 1e6 }
          samples.set(name, [...(samples.get(name) ?? []), sample])
        }
    progress('open loop')
    const open = await replay.open(targets[1] as Target, seconds)

    const of = (target: Target, sender: Sender): Sample[] =>
      samples.get(`${target.name} ${sender.name}`) ?? []
    const best = (some: readonly Sample[]): number => Math.max(...some.map(({ perSecond }) => perSecond))
    const least = (some: readonly Sample[]): number => Math.min(...some.map(({ cpuMicros }) => cpuMicros))
    return {
      findings: [
        ...targets.map(target => {
          const [ours, theirs] = [of(target, replay), of(target, autocannon)]
          return {
            what: `Replay against autocannon, ${target.name}`,
            bar: 'at least as many requests a second, reached and of a full core',
            measured: `${count(1e6 / least(ours))}/s and ${count(1e6 / least(theirs))}/s of a full core by processor time; ${count(best(ours))}/s and ${count(best(theirs))}/s reached at best`,
            met: best(ours) >= best(theirs) && least(ours) <= least(theirs),
            figures: {
              ours: best(ours),
              theirs: best(theirs),
              oursCpu: least(ours),
              theirsCpu: least(theirs),
            },
          }
        }),
        {
          what: `Open loop at ${count(openRate)}/s on the gateway`,
          bar: '—',
          measured: `${count(open.perSecond)}/s sent; ${open.late} of ${count(open.sent)} late, the generator itself 1 % by ${ms(open.lateP99)} or more, with ${Math.round(open.cpuShare * 100)} % of its core`,
          met: null,
          figures: open,
        },
      ],
      table: {
        head: ['target', 'sender', 'best/s', 'median/s', 'CPU µs, least', 'p99, median'],
        lines: targets.flatMap(target =>
          all.map(sender => {
            const some = of(target, sender)
            return [
              target.name,
              sender.name,
              count(best(some)),
              count(median(some.map(({ perSecond }) => perSecond))),
              least(some).toFixed(1),
              ms(median(some.map(({ p99 }) => p99))),
            ]
          }),
        ),
      },
      notes: [
        `${rounds} rounds of ${seconds} s. ${cpus()[0]?.model ?? 'CPU'}, ${availableParallelism()} cores${pins ? '' : ', not pinned'}; load average at the end ${loadavg()[0]?.toFixed(1)}, of which some 2 are the bench. ` +
          'Other work on a machine moves the rates that are reached, and the processor time least: where a sender has time to spare, its rate is that of the server or of what else the machine does.',
      ],
    }
  },
}

/** Requests for one place, a millisecond apart. */
const trafficText = (): string =>
  Array.from({ length: 1_000 }, (_, i) => {
    const at = new Date(1_790_000_000_000 + i).toISOString()
    return `${JSON.stringify({ at, method: 'GET', path, key: 'one' })}\n`
  }).join('')

const output = (command: string, args: readonly string[]): Promise<string> =>
  outputOf(...onCores(serverCores[1], command, args))

const replaySender = (trafficFile: string, keyFile: string) => {
  const run = async ({ url, key }: Target, seconds: number, pace: readonly string[]) => {
    const result = JSON.parse(
      await output(product, [
        'replay',
        trafficFile,
        '--target',
        url,
        '--key',
        keyFile,
        ...pace,
        '--loop',
        '--duration',
        `${seconds}s`,
        '--json',
      ]),
    )
    if (result.statuses[200] !== result.totals.answered || key === '')
      throw new Error(`the replay had ${JSON.stringify(result.statuses)}`)
    return result
  }
  return {
    name: 'abohawa replay',
    start: (target: Target) => run(target, 1, ['--rate', '10']),
    send: async (target: Target, seconds: number) => {
      const { totals, latency } = await run(target, seconds, ['--as-fast-as', String(connections)])
      return { answers: totals.answered, perSecond: totals.answered / totals.seconds, p99: latency.p99 }
    },
    open: async (target: Target, seconds: number) => {
      const { totals, generator } = await run(target, seconds, ['--rate', String(openRate)])
      const { lateP99, cpuShare } = generator
      return {
        perSecond: totals.sent / totals.seconds,
        sent: totals.sent,
        late: totals.late,
        lateP99,
        cpuShare,
      }
    },
  }
}

const program = new URL('../../node_modules/autocannon/autocannon.js', import.meta.url).pathname

const autocannon: Sender = {
  name: 'autocannon 9',
  start: ({ url }) => output(process.execPath, [program, '-c', '1', '-a', '10', '--json', url + path]),
  send: async ({ url, key }, seconds) => {
    const args = [
      '-c',
      String(connections),
      '-d',
      String(seconds),
      '-H',
      `x-api-key=${key}`,
      '--json',
      url + path,
    ]
    const result = JSON.parse(await output(process.execPath, [program, ...args]))
    if (result.non2xx > 0) throw new Error(`autocannon had ${result.non2xx} other answers`)
    return {
      answers: result.requests.total,
      perSecond: result.requests.total / result.duration,
      p99: result.latency.p99,
    }
  },
}

const wrk = (folder: string): Sender => ({
  name: loader,
  // A start of wrk is a few milliseconds.
  start: async () => {},
  send: async ({ url, key }, seconds) => {
    const workload = { url, paths: [path], keys: [key] }
    const loaded = await load(folder, workload, seconds, { on: serverCores[1], atOnce: connections })
    return { answers: loaded.answers, perSecond: loaded.answers / loaded.seconds, p99: loaded.p99 }
  },
})

/** Processor time of all children that have ended, in seconds. */
const cpuOfChildren = (): number => {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) / 100
}
