// An open loop: requests at a fixed rate, from `abohawa replay`. Latency counts from the instant at which a request was due, so that
// it includes the wait behind a slow answer.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { product } from '../../test/support/process.ts'
import { sum } from '../row.ts'
import type { Mix } from './mix.ts'
import { loadCores, onCores, outputOf } from './processes.ts'

export type Replayed = {
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly sent: number
  /** Sent more than 10 ms after they were due, and never sent. */
  readonly late: number
  readonly dropped: number
  /** Answers with 200 or 304, with another status, and requests without an answer. */
  readonly good: number
  readonly wrong: number
  readonly failed: number
}

type ReplayResult = {
  readonly totals: { sent: number; late: number; dropped: number; failed: Record<string, number> }
  readonly statuses: Record<string, number>
  readonly latency: { p50: number; p99: number; p999: number }
}

type Sent = {
  readonly url: string
  /** In the order of the keys of the mix. */
  readonly keys: readonly string[]
  readonly rate: number
  readonly seconds: number
  readonly connections: number
  /** Seconds before these, which count for nothing; none unless given. */
  readonly warmUp?: number
}

/** @param inFront stands before the command, such as nice with a priority */
export const replayMix = async (
  folder: string,
  { file }: Mix,
  { url, keys, rate, seconds, connections, warmUp = 0 }: Sent,
  inFront: readonly string[] = [],
): Promise<Replayed> => {
  const keysFile = join(folder, `keys-${new URL(url).port}.json`)
  const ids = keys.map((key, i) => ({ externalId: `key-${String(i + 1).padStart(4, '0')}`, key }))
  await writeFile(keysFile, JSON.stringify(ids))
  const [command = '', ...args] = [
    ...inFront,
    ...[product, 'replay', file, '--target', url, '--keys', keysFile, '--loop', '--json'],
    ...['--rate', `${rate}`, '--connections', `${connections}`],
    ...['--duration', `${seconds + warmUp}s`, ...(warmUp > 0 ? ['--warm-up', `${warmUp}s`] : [])],
  ]
  const { totals, statuses, latency } = JSON.parse(
    await outputOf(...onCores(loadCores, command, args)),
  ) as ReplayResult
  const good = (statuses[200] ?? 0) + (statuses[304] ?? 0)
  return {
    ...latency,
    sent: totals.sent,
    late: totals.late,
    dropped: totals.dropped,
    good,
    wrong: sum(Object.values(statuses)) - good,
    failed: sum(Object.values(totals.failed)),
  }
}
