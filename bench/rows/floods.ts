// One consumer with a steady load, and beside it one flood after the other: the p99 of the consumer while a flood goes on, of that
// right before.

import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createKey } from '../../src/keys/key-form.ts'
import { issueKeys } from '../../test/scenarios/keys.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import { count, type Finding, judged, median, ms, type Row } from '../row.ts'
import { everyPlace } from '../servers/gateway.ts'
import { gatewayEnv, startGateway } from '../tools/gateway-process.ts'
import { generateMix, mixKeys } from '../tools/mix.ts'
import { inFront, loadCores, serverCore, spawnPinned } from '../tools/processes.ts'
import { type Replayed, replayMix } from '../tools/replay.ts'
import { openBackground } from '../tools/world.ts'

const most = 2
const limit = 1_000
const wrongKeys = 100_000
const floodRate = 2_000
// Until the consumer has its connections.
const beforeSeconds = 1

const floodNames = ['slow heads', 'slow readers', 'wrong keys', 'one key'] as const
export type FloodName = (typeof floodNames)[number]

/** What the process of flood.ts reads. */
export type Flood = {
  readonly name: FloodName
  /** Taken in turn. */
  readonly keys: readonly string[]
  readonly paths: readonly string[]
  readonly rate: number
}

const floodsOf = (plenty: string, small: string): (Flood & { readonly what: string })[] => {
  const [place = ''] = everyPlace
  const whats: Readonly<Record<FloodName, readonly [what: string, more?: Partial<Flood>]>> = {
    'slow heads': ['1,000 connections that send a byte a second'],
    'slow readers': [
      '200 connections that pipeline 50 forecasts and read 2 kB a second',
      { paths: [place.replace('/weather/', '/forecast/')] },
    ],
    'wrong keys': [
      `${count(wrongKeys)} invalid keys, ${count(floodRate)} requests a second from one address`,
      { keys: Array.from({ length: wrongKeys }, () => createKey()) },
    ],
    'one key': [
      `a key of ${count(limit)} requests a day that sends ${count(floodRate)} a second from 16 addresses`,
      { keys: [small], paths: everyPlace },
    ],
  }
  const usual = { keys: [plenty], paths: [place], rate: floodRate }
  return floodNames.map(name => ({ ...usual, name, what: whats[name][0], ...whats[name][1] }))
}

const script = new URL('flood.ts', import.meta.url).pathname

/** Starts a flood that ends by itself; the function returned waits for what came of it. */
const begin = async (scope: Teardown, folder: string, flood: Flood, url: string, seconds: number) => {
  const file = join(folder, 'flood.json')
  await writeFile(file, JSON.stringify(flood))
  const command = ['nice', '-n', '10', process.execPath, script, url, String(seconds), file] as const
  const { child, output } = spawnPinned(scope, folder, loadCores, command)
  const exited = once(child, 'exit')
  return async (): Promise<Record<string, number>> => {
    await exited
    return JSON.parse(await readFile(output, 'utf8')) as Record<string, number>
  }
}

const isRight = ({ wrong, failed }: Replayed): boolean => wrong + failed === 0

export const floods: Row = {
  id: 'floods',
  what: 'what a consumer notices of floods by another client',
  run: async (scope, { pairs, seconds }, progress) => {
    const { folder, providerUrl, redisUrl } = await openBackground(scope)
    const env = gatewayEnv(providerUrl, {
      ABOHAWA_REDIS__URL: redisUrl,
      ABOHAWA_QUOTA__TIERS__FREE: String(limit),
    })
    const [consumer, plenty, small] = await issueKeys(env, ['enterprise', 'enterprise', 'free'])
    const { urls } = await startGateway(scope, folder, serverCore, env)
    const url = urls.api ?? ''
    const mix = await generateMix(folder)
    const consume = (forSeconds: number, rate = 250): Promise<Replayed> => {
      const keys = Array(mixKeys).fill(consumer?.key ?? '')
      return replayMix(folder, mix, { url, keys, rate, seconds: forSeconds, connections: 16 }, inFront)
    }
    progress('warms everything')
    await consume(10, 2_000)

    const findings: Finding[] = []
    for (const { what, ...flood } of floodsOf(plenty?.key ?? '', small?.key ?? '')) {
      const measured: { quiet: Replayed; flooded: Replayed }[] = []
      const came: Record<string, number> = {}
      for (let pair = 0; pair < pairs; pair++) {
        progress(`${flood.name}, pair ${pair + 1} of ${pairs}`)
        const quiet = await consume(seconds)
        const from = Math.round(pair * (seconds + 2) * flood.rate) % flood.paths.length
        const paths = [...flood.paths.slice(from), ...flood.paths.slice(0, from)]
        const consuming = consume(seconds + beforeSeconds)
        await pause(beforeSeconds * 1_000)
        const ended = await begin(scope, folder, { ...flood, paths }, url, seconds + 1)
        measured.push({ quiet, flooded: await consuming })
        for (const [of, times] of Object.entries(await ended())) came[of] = (came[of] ?? 0) + times
      }
      const ratio = median(measured.map(pair => pair.flooded.p99 / pair.quiet.p99))
      const p99Of = (side: 'quiet' | 'flooded'): string => ms(median(measured.map(pair => pair[side].p99)))
      const wrong = measured.flatMap(({ quiet, flooded }) => [quiet, flooded]).filter(one => !isRight(one))
      findings.push(
        judged(
          what,
          `≤ ${most} × quiet, all right`,
          ratio <= most && wrong.length === 0,
          `${ratio.toFixed(2)} × (${p99Of('flooded')} and ${p99Of('quiet')}); the flood: ` +
            `${Object.entries(came)
              .filter(([of]) => !of.endsWith('sent'))
              .map(([of, times]) => `${count(times)} ${/^\d/.test(of) ? `answers ${of}` : of}`)
              .join(', ')}${wrong.length > 0 ? `; **${wrong.length} times with wrong answers**` : ''}`,
          { measured, came },
        ),
      )
    }
    return { findings }
  },
}
