// A flood of wrong keys: what it costs Redis, and whether memory stays level.

import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { createKey } from '../../src/metering/key-form.ts'
import { startRedis } from '../../test/support/redis-server.ts'
import { count, type Row, type Scope } from '../row.ts'
import { askOn, commandsSent, meterEnv, patient, startGateways } from './fleet.ts'

export type Flood = {
  readonly refused: number
  readonly asked: number
  /** Commands while mistyped keys were asked with, beyond those of an idle gateway. */
  readonly commandsForMistyped: number
  readonly commandsForUnknown: number
  /** Resident memory of the process after each tenth, in MiB. */
  readonly residentMiB: readonly number[]
}

const residentMiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

const mistyped = (): string => createKey().replace(/.$/, last => (last === '0' ? '1' : '0'))

export const measureFlood = async (
  scope: Scope,
  requests: number,
  progress: (text: string) => void = () => {},
): Promise<Flood> => {
  const redis = await startRedis()
  scope.teardown(redis.stop)
  const env = meterEnv({ ...patient, ABOHAWA_REDIS__URL: redis.url })
  const { callers, processes } = await startGateways(scope, env, { processes: 1, connections: 64 })
  const raw = new Redis(redis.url)
  scope.teardown(() => raw.quit())
  const resident: number[] = []
  let refused = 0

  const flood = async (nextKey: () => string): Promise<number> => {
    const before = await commandsSent(raw)
    for (let tenth = 0; tenth < 5; tenth++) {
      let left = requests / 10
      const answers = await askOn(callers, () => (left-- > 0 ? nextKey() : undefined))
      refused += answers.filter(({ status }) => status === 401).length
      resident.push(residentMiB(processes[0]?.child.pid ?? 0))
      progress(`${refused} refused, ${Math.round(resident.at(-1) ?? 0)} MiB`)
    }
    return (await commandsSent(raw)) - before
  }
  const commandsForMistyped = await flood(mistyped)
  const commandsForUnknown = await flood(createKey)
  return { refused, asked: requests, commandsForMistyped, commandsForUnknown, residentMiB: resident }
}

export const wrongKeys: Row = {
  id: 'wrong-keys',
  method:
    'One process, 64 connections: 500,000 requests with keys whose checksum is wrong, then 500,000 with well-formed keys ' +
    'that nobody was given, all different. Commands by the statistics of Redis, those of the polls of an idle gateway among them.',
  run: async (scope, progress) => {
    const found = await measureFlood(scope, 1_000_000, progress)
    const [, second = 0] = found.residentMiB
    const last = found.residentMiB.at(-1) ?? 0
    return {
      findings: [
        {
          what: '1,000,000 requests with wrong keys: refused with 401',
          bar: 'all',
          measured: count(found.refused),
          met: found.refused === found.asked,
          figures: { refused: found.refused },
        },
        {
          what: 'the same: Redis commands for the 500,000 malformed ones',
          bar: '0 beside what an idle gateway sends',
          measured: `${count(found.commandsForMistyped)}; ${count(found.commandsForUnknown)} for as many well-formed ones`,
          met: found.commandsForMistyped < found.asked / 1_000,
          figures: { mistyped: found.commandsForMistyped, unknown: found.commandsForUnknown },
        },
        {
          what: 'the same: resident memory',
          bar: 'level',
          measured: `${found.residentMiB.map(mib => mib.toFixed(0)).join(', ')} MiB after each tenth`,
          met: last < second * 1.25,
          figures: { residentMiB: found.residentMiB },
        },
      ],
    }
  },
}
