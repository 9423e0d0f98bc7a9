// One consumer with a steady load, and beside it one flood after the other: the p99 of the consumer while a flood goes on, of
// that right before.

import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createKey } from '../../src/keys/key-form.ts'
import { issueKeys } from '../../test/scenarios/keys.ts'
import type { Env, Scope } from '../../test/scenarios/set-up.ts'
import { product } from '../../test/support/process.ts'
import { count, type Finding, median, ms, type Row, sum } from '../row.ts'
import { outputOf } from '../speed/command-output.ts'
import { everyPlace, gatewayEnv, startGateway } from '../speed/gateways.ts'
import { generateMix, mixOptions } from '../speed/mix-traffic.ts'
import { inFront, loadCores, serverCores, spawnPinned } from '../speed/pinned.ts'
import { openBackground } from '../speed/world.ts'

const floodNames = ['slow heads', 'slow readers', 'wrong keys', 'one key'] as const
export type FloodName = (typeof floodNames)[number]

const most = 2
const consumerRate = 250
const consumerConnections = 16
const limit = 1_000
const wrongKeys = 100_000
const warmUpSeconds = 10
// Until the consumer has its connections.
const beforeSeconds = 1

type Flood = {
  readonly name: FloodName
  readonly what: string
  readonly keys: readonly string[]
  readonly paths: readonly string[]
  readonly rate: number
}

type Consumed = {
  readonly statuses: Readonly<Record<string, number>>
  readonly latency: { readonly p50: number; readonly p99: number }
  readonly totals: { readonly failed: Record<string, number> }
}

const floodsOf = (rate: number, plenty: string, small: string): Flood[] => {
  const [place = ''] = everyPlace
  const one = { keys: [plenty], paths: [place], rate }
  return [
    {
      ...one,
      name: 'slow heads',
      what: '1,000 connections of one address that send a byte of their request each second',
    },
    {
      ...one,
      name: 'slow readers',
      what: '200 connections of one address that ask for 50 forecasts at once and read 2 kB of them a second',
      paths: [place.replace('/weather/', '/forecast/')],
    },
    {
      ...one,
      name: 'wrong keys',
      what: `${count(wrongKeys)} well-formed keys that nobody was given, ${count(rate)} requests a second from one address`,
      keys: Array.from({ length: wrongKeys }, () => createKey()),
    },
    {
      ...one,
      name: 'one key',
      what: `a key of ${count(limit)} requests a day that sends ${count(rate)} a second from 16 addresses`,
      keys: [small],
      paths: everyPlace,
    },
  ]
}

/** Starts a flood that ends by itself; the function returned waits for what came of it. */
const begin = async (
  scope: Scope,
  folder: string,
  flood: Flood,
  url: string,
  seconds: number,
  from: number,
) => {
  const file = join(folder, 'flood.json')
  const script = new URL('flood.ts', import.meta.url).pathname
  const paths = [...flood.paths.slice(from), ...flood.paths.slice(0, from)]
  await writeFile(file, JSON.stringify({ keys: flood.keys, paths }))
  const args = [script, flood.name, url, String(seconds), String(flood.rate), file]
  // The kernel prefers the consumer on the core that both share.
  const command = ['nice', '-n', '10', process.execPath, ...args] as const
  const { child, output } = spawnPinned(scope, folder, loadCores, command)
  const exited = once(child, 'exit')
  return async (): Promise<Record<string, number>> => {
    await exited
    return JSON.parse(await readFile(output, 'utf8')) as Record<string, number>
  }
}

const right = ({ statuses, totals }: Consumed): boolean =>
  Object.keys(statuses).every(status => status === '200' || status === '304') &&
  sum(Object.values(totals.failed)) === 0

export const besideFloods: Row = {
  id: 'floods',
  parts: floodNames,
  method:
    `A consumer with ${consumerRate} requests a second over ${consumerConnections} connections in an open loop, places by Zipf, on a ` +
    'gateway on Redis. Quiet and flooded times alternate; the flood is a process of its own that starts a second after the ' +
    'consumer. The kernel prefers Redis and the consumer to all else on their core, so that what is measured is the gateway.',
  run: async (scope, progress, { settings: { rounds = 4, seconds = 3, rate = 2_000 }, parts }) => {
    progress('starts everything')
    const { folder, providerUrl, storeEnv } = await openBackground(scope)
    const env: Env = gatewayEnv(providerUrl, { ...storeEnv, ABOHAWA_QUOTA__TIERS__FREE: String(limit) })
    const [consumer, plenty, small] = await issueKeys(env, ['enterprise', 'enterprise', 'free'])
    const plain = await startGateway(scope, folder, serverCores[0], env)
    const keyFile = join(folder, 'consumer.key')
    await writeFile(keyFile, consumer?.key ?? '')
    const mix = await generateMix(folder, mixOptions)
    const consume = async (url: string, forSeconds: number): Promise<Consumed> => {
      const command = inFront(product, [
        ...['replay', mix.file, '--target', url, '--key', keyFile, '--loop', '--json'],
        ...['--rate', String(consumerRate), '--connections', String(consumerConnections)],
        ...['--duration', `${forSeconds}s`],
      ])
      return JSON.parse(await outputOf(...command)) as Consumed
    }
    const warm = (url: string) =>
      outputOf(product, [
        ...['replay', mix.file, '--target', url, '--key', keyFile, '--loop', '--json'],
        ...['--as-fast-as', '16', '--duration', `${warmUpSeconds}s`],
      ])

    const findings: Finding[] = []
    const floods = floodsOf(rate, plenty?.key ?? '', small?.key ?? '').filter(({ name }) =>
      parts.includes(name),
    )
    const url = plain.urls.api ?? ''
    await warm(url)
    for (const flood of floods) {
      const pairs: { quiet: number; flooded: number }[] = []
      const came: Record<string, number> = {}
      let wrong = 0
      for (let round = 0; round < rounds; round++) {
        progress(`${flood.name}, pair ${round + 1} of ${rounds}`)
        const quiet = await consume(url, seconds)
        const from = Math.round(round * (seconds + 2) * flood.rate) % flood.paths.length
        const consuming = consume(url, seconds + beforeSeconds)
        await pause(beforeSeconds * 1_000)
        const ended = await begin(scope, folder, flood, url, seconds + 1, from)
        const flooded = await consuming
        for (const [what, times] of Object.entries(await ended())) came[what] = (came[what] ?? 0) + times
        wrong += [quiet, flooded].filter(each => !right(each)).length
        pairs.push({ quiet: quiet.latency.p99, flooded: flooded.latency.p99 })
      }
      const ratio = median(pairs.map(pair => pair.flooded / pair.quiet))
      const [quiet, flooded] = [
        median(pairs.map(pair => pair.quiet)),
        median(pairs.map(pair => pair.flooded)),
      ]
      findings.push({
        what: `p99 of a consumer beside ${flood.what}`,
        bar: `≤ ${most} × quiet, every answer right`,
        measured:
          `${ratio.toFixed(2)} × (${ms(flooded)} and ${ms(quiet)}, medians of ${rounds} pairs); the flood: ` +
          `${Object.entries(came)
            .map(([what, times]) => `${count(times)} ${/^\d/.test(what) ? `answers ${what}` : what}`)
            .join(', ')}${wrong > 0 ? `; **${wrong} times with wrong answers**` : ''}`,
        met: ratio <= most && wrong === 0,
        figures: { ratio, quiet, flooded, wrong, ...came },
      })
    }
    return { findings }
  },
}
