// The options of `abohawa replay`: what each may be, and the pace, the target and the keys that they make together.

import { type Command, InvalidArgumentError, Option } from 'commander'
import { InputError } from '../../common/errors.ts'
import { quotedPath } from '../../common/outside-text.ts'
import { keysFor, readKeyFile, readOneKey } from '../../load/replay/key-file.ts'
import type { Pace } from '../../load/replay/pace.ts'
import type { Schedule } from '../../load/replay/schedule.ts'
import { type Threshold, thresholdOf } from '../../load/replay/thresholds.ts'
import { nameOfFile } from '../../load/traffic/file-bytes.ts'
import { durationIn, numberIn } from '../quantities.ts'
import { asUsage, UsageError } from '../usage-error.ts'
import { hostOption } from './traffic-options.ts'

/** The options that `saturate` has too. */
export type SendOptions = {
  target?: string
  keys?: string
  key?: string
  reuseKeys?: boolean
  withoutKeys?: boolean
  connections?: number
  workers: number
  http: '1.1' | '2'
  patience: number
  timeout: number
  threshold?: Threshold[]
  anyMethod?: boolean
  host?: string
  allowRemote?: boolean
  ca?: string
  insecure?: boolean
}

export type ReplayOptions = SendOptions & {
  asFastAs?: number
  speed?: number
  rate?: number
  loop?: boolean
  duration?: number
  warmUp?: number
  out?: string[]
  checkBodies?: boolean
  bodies?: string
  requests?: string
  ops?: string
  opsTokenFile?: string
}

export const connectionsIn = numberIn(1, 60_000)

/** A duration above 0, in ms. */
export const lengthIn = (given: string): number => {
  const ms = durationIn(given)
  if (ms > 0) return ms
  throw new InvalidArgumentError('Allowed: a duration above 0, such as 30s.')
}

const thresholdsIn = (given: string, before: Threshold[] = []): Threshold[] => [
  ...before,
  asUsage(() => thresholdOf(given)),
]

/** Those of `replay` and `saturate`. @param thresholds further examples, for the help */
export const addSendOptions = (command: Command, thresholds: string): Command =>
  command
    .argument('<files...>', 'traffic files; - is standard input')
    .option('--target <url>', 'http://, https:// or unix:/path')
    .option('--keys <file>', 'keys of the target, as keys create --csv or --json printed them')
    .option('--key <file>', 'a file with one key, sent with every request')
    .option('--reuse-keys', 'ids that --keys has no key for share its keys in turn')
    .option('--without-keys', 'send no keys')
    .option('--connections <number>', 'the most connections; 256, or 8 over HTTP/2', connectionsIn)
    .addOption(new Option('--workers <number>', 'threads that send').argParser(numberIn(1, 64)).default(1))
    .addOption(new Option('--http <version>', 'the protocol').choices(['1.1', '2']).default('1.1'))
    .addOption(
      new Option('--patience <duration>', 'a request that finds no connection for so long is dropped')
        .argParser(lengthIn)
        .default(5_000, '5s'),
    )
    .addOption(
      new Option('--timeout <duration>', 'a request without a response for so long has failed')
        .argParser(lengthIn)
        .default(10_000, '10s'),
    )
    .option(
      '--threshold <expression>',
      `such as p99<20ms, weather.p99<20ms, errors<0.1%, ${thresholds}; may be given again`,
      thresholdsIn,
    )
    .addOption(hostOption())
    .option('--any-method', 'send methods other than GET and HEAD too, without bodies')
    .option('--allow-remote', 'send to a target that is neither this machine nor in a private network')
    .option('--ca <file>', 'certificates to trust, in PEM')
    .option('--insecure', 'accept any certificate of a target on this machine')

/** @throws UsageError for options that contradict each other */
export const paceOf = ({
  speed,
  rate,
  asFastAs,
  loop = false,
  duration,
  warmUp = 0,
}: ReplayOptions): Pace => {
  const given = { '--speed': speed, '--rate': rate, '--as-fast-as': asFastAs }
  const names = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : name))
  if (names.length > 1) throw new UsageError(`${names.join(' and ')} are two paces; allowed: one of them`)
  return {
    mode: rate !== undefined ? 'rate' : asFastAs !== undefined ? 'closed' : 'recorded',
    speed: speed ?? 1,
    rate: rate ?? 0,
    loop,
    durationMs: duration,
    warmUpMs: warmUp,
  }
}

// Of one machine's ports and the targets' limits; over HTTP/2 each has up to a hundred requests at once.
const usualConnections = { '1.1': 256, '2': 8 }

export const connectionsOf = ({
  connections,
  asFastAs,
  http,
}: SendOptions & Pick<ReplayOptions, 'asFastAs'>): number => {
  if (connections !== undefined && asFastAs !== undefined)
    throw new UsageError('--as-fast-as says how many connections there are; allowed: without --connections')
  return asFastAs ?? connections ?? usualConnections[http]
}

/** By the column `key` of the schedule. @throws UsageError, InputError */
export const keysOf = (
  { ids, count }: { ids: readonly string[]; count: number },
  { keys, key, reuseKeys, withoutKeys }: SendOptions,
): (string | undefined)[] => {
  if ([keys, key, withoutKeys].filter(option => option !== undefined).length > 1)
    throw new UsageError('allowed: one of --keys, --key and --without-keys')
  if (reuseKeys && keys === undefined) throw new UsageError('--reuse-keys is about --keys; allowed: with it')
  if (key !== undefined) {
    const one = readOneKey(key)
    return [one, ...ids.map(() => one)]
  }
  if (keys !== undefined) return [undefined, ...keysFor(ids, readKeyFile(keys), reuseKeys)]
  if (ids.length > 0 && !withoutKeys && count > 0)
    throw new UsageError(
      `the traffic has ${ids.length} key ids; allowed: --keys with the file of \`abohawa keys create --csv\`, --key with a file of one key for all, or --without-keys`,
    )
  return [undefined]
}

export type Output = { readonly path: string; readonly form: 'html' | 'json' | 'hgrm' }

/** The files that are written at the end, by their extension. @throws UsageError */
export const outputsOf = ({ out = [] }: ReplayOptions): Output[] =>
  out.map((path): Output => {
    const [, form] = /\.(html|json|hgrm)$/.exec(path) ?? []
    if (form !== 'html' && form !== 'json' && form !== 'hgrm')
      throw new UsageError(
        `--out is ${quotedPath(path)}; allowed: a name that ends in .html, the page, .json, the result, or .hgrm, the percentiles`,
      )
    return { path, form }
  })

/** @throws InputError, UsageError when nothing of the traffic can be sent */
export const checkSchedule = ({ count, skipped }: Schedule, files: readonly string[]): void => {
  if (count > 0) return
  const methods = Object.keys(skipped)
  if (methods.length === 0)
    throw new InputError(
      `there are no requests in ${files.map(nameOfFile).join(', ')}; allowed: files with at least one`,
    )
  throw new UsageError(
    `the traffic has requests of ${methods.join(', ')} alone; --any-method sends them, without bodies`,
  )
}

/** @throws UsageError */
export const checkRequestLog = (path: string | undefined, files: readonly string[]): void => {
  if (path === '-')
    throw new UsageError('--requests is -; allowed: a file, since standard output has the report')
  if (path !== undefined && files.includes(path))
    throw new UsageError(`--requests is ${quotedPath(path)}, which is the traffic; allowed: another file`)
}
