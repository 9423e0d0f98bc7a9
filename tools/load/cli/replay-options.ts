// The options of `abohawa replay`, and what must be ready before the first request: target, schedule, keys, connections.

import { stoppedBySignal } from 'abohawa/command-line/interruption.ts'
import { choiceOption, numberIn } from 'abohawa/command-line/quantities.ts'
import { counted, type Terminal } from 'abohawa/command-line/terminal.ts'
import { asUsage, UsageError } from 'abohawa/command-line/usage-error.ts'
import { isoOf } from 'abohawa/common/calendar.ts'
import type { Command } from 'commander'
import { keysFor, readKeyFile, readSecret } from '../replay/key-file.ts'
import { type Threshold, thresholdOf } from '../replay/thresholds.ts'
import { commandLine } from './progress.ts'
import { durationWithin } from './quantities.ts'
import type { OpsOptions } from './replay-ops.ts'
import { hostOption } from './traffic-options.ts'
import { readFiles } from './traffic-reading.ts'

export type SendOptions = {
  target?: string
  keys?: string
  key?: string
  reuseKeys?: boolean
  withoutKeys?: boolean
  connections?: number
  workers?: number
  http: '1.1' | '2'
  patience?: number
  timeout?: number
  threshold?: Threshold[]
  anyMethod?: boolean
  host?: string
  allowRemote?: boolean
  ca?: string
  insecure?: boolean
  asFastAs?: number
}

export type ReplayOptions = SendOptions &
  OpsOptions & {
    speed?: number
    /** In requests a second, ascending. */
    rate?: ReadonlySet<number>
    untilSlower?: boolean
    loop?: boolean
    duration?: number
    warmUp?: number
    out?: string[]
    checkBodies?: boolean
    bodies?: string
    requests?: string
    force?: boolean
  }

export const connectionsIn = numberIn(1, 60_000)

export const lengthIn = durationWithin(1, Number.POSITIVE_INFINITY, 'a duration above 0, such as 30s')

const thresholdsIn = (given: string, before: Threshold[] = []): Threshold[] => [
  ...before,
  asUsage(() => thresholdOf(given)),
]

export const addSendOptions = (command: Command): Command =>
  command
    .argument('<files...>', 'traffic files; - is standard input')
    .option('--target <url>', 'http://, https:// or unix:/path')
    .option('--keys <file>', 'keys of the target, as printed by keys create --csv or --json')
    .option('--key <file>', 'a file with one key, sent with every request')
    .option('--reuse-keys', 'use keys of --keys again for ids that have none there')
    .option('--without-keys', 'send no keys')
    .option('--connections <number>', 'maximum connections (default: 256; 8 over HTTP/2)', connectionsIn)
    .option('--workers <number>', 'number of sending threads (default: 1)', numberIn(1, 64))
    .addOption(choiceOption('--http <version>', 'HTTP version', ['1.1', '2']))
    .option(
      '--patience <duration>',
      'drop a request that waits longer for a connection (default: 5s)',
      lengthIn,
    )
    .option('--timeout <duration>', 'count a request without a response as failed (default: 10s)', lengthIn)
    .option(
      '--threshold <expression>',
      'limit such as p99<20ms, weather.p99<20ms, errors<0.1%, hits>90%, rate>490 (repeatable)',
      thresholdsIn,
    )
    .addOption(hostOption())
    .option('--any-method', 'also send methods other than GET and HEAD, without bodies')
    .option('--allow-remote', 'allow a target outside this machine and private networks')
    .option('--ca <file>', 'PEM file of certificates to trust')
    .option('--insecure', 'accept any certificate of a target on this machine')

// Bounded by the ports of one machine and the target's limits; over HTTP/2 a connection has up to a hundred requests.
const usualConnections = { '1.1': 256, '2': 8 }

const connectionsOf = ({ connections, asFastAs, http, workers = 1 }: SendOptions): number => {
  if (connections !== undefined && asFastAs !== undefined)
    throw new UsageError("--as-fast-as can't be combined with --connections")
  const most = asFastAs ?? connections ?? usualConnections[http]
  if (workers > most)
    throw new UsageError(`each worker needs a connection, but ${workers} workers have ${most}`)
  return most
}

/** By the column `key` of the schedule. @throws UsageError, InputError */
const keysOf = (
  ids: readonly string[],
  { keys, key, reuseKeys, withoutKeys: hasNone }: SendOptions,
): (string | undefined)[] => {
  if ([keys, key, hasNone].filter(option => option !== undefined).length > 1)
    throw new UsageError('give only one of --keys, --key and --without-keys')
  if (reuseKeys && keys === undefined) throw new UsageError('--reuse-keys requires --keys')
  if (key !== undefined) {
    const one = readSecret('--key', 'key', key)
    return [one, ...ids.map(() => one)]
  }
  if (reuseKeys && ids.length === 0)
    throw new UsageError(
      'the traffic has no key ids, so --reuse-keys has no effect; --key FILE sends one key with every request',
    )
  if (keys !== undefined) return [undefined, ...keysFor(ids, readKeyFile(keys), reuseKeys)]
  if (ids.length > 0 && !hasNone)
    throw new UsageError(
      `the traffic has ${ids.length} key ids; give --keys with the output of \`abohawa keys create --csv\`, --key with one key for all, or --without-keys`,
    )
  return [undefined]
}

/** @throws UsageError, InputError */
export const prepareSending = async (terminal: Terminal, files: readonly string[], options: SendOptions) => {
  const { target: given, http, workers = 1, patience = 5_000, timeout = 10_000 } = options
  if (given === undefined)
    throw new UsageError('--target is required, an address such as http://127.0.0.1:8080')
  const connections = connectionsOf(options)
  const { signal } = stoppedBySignal()
  const { addressIn, checkReachable, targetOf } = await import('../replay/target.ts')
  asUsage(() => addressIn(given))
  const target = await targetOf(given, options)
  const { schedule, traffic } = await readSchedule(terminal, files, options, signal)
  const keys = keysOf(schedule.keys, options)
  return {
    order: {
      schedule,
      traffic,
      keys,
      target,
      http,
      connections,
      workers,
      queueTimeoutMs: patience,
      timeoutMs: timeout,
      command: commandLine(),
    },
    signal,
    /** @throws InputError */
    checkTarget: () => checkReachable(target, http),
  }
}

const readSchedule = async (
  terminal: Terminal,
  files: readonly string[],
  { anyMethod = false, host }: SendOptions,
  signal: AbortSignal,
) => {
  const { scheduleOf } = await import('../replay/schedule.ts')
  const reading = await readFiles(terminal, files, { ...(host !== undefined && { host }) }, signal)
  const schedule = await scheduleOf(reading.batches(), anyMethod)
  const summary = reading.endWhole()
  const { count, from, at, keys, skipped } = schedule
  for (const [method, left] of Object.entries(skipped))
    terminal.remark(`Skipped ${counted(left)} ${method} requests; --any-method sends them.`)
  if (count === 0)
    throw new UsageError(
      `the traffic has only ${Object.keys(skipped).join(', ')} requests; --any-method sends them, without bodies`,
    )
  const traffic = {
    files: summary.files.map(({ file }) => file),
    sha256: summary.sha256,
    requests: count,
    keys: keys.length,
    from: from === undefined ? null : isoOf(from),
    spanSeconds: (at[count - 1] ?? 0) / 1000,
    faultyLines: summary.faultyLines,
  }
  return { schedule, traffic }
}
