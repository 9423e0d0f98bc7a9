// Two builds beside each other: `npm run bench:builds -- --base REV`. Processes of one build differ, so every figure comes from
// fresh processes, of the base and of this checkout in turn. Prints ratios by processor time with their spread; keeps no page.

import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { mkdtemp, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { issueKeys } from '../test/scenarios/keys.ts'
import type { Env, Scope } from '../test/scenarios/set-up.ts'
import { median, sorted } from './row.ts'
import { get, path } from './speed/contender.ts'
import { everyPlace, gatewayEnv, logged } from './speed/gateways.ts'
import { load, type Workload } from './speed/load.ts'
import { generateMix, type Mix, mixKeys, receiverOf } from './speed/mix-traffic.ts'
import { cpuSecondsOf, residentOf, serverCores, startPinned } from './speed/pinned.ts'
import { readerOfRedis } from './speed/redis-cost.ts'
import { awayFromTurn, openBackground } from './speed/world.ts'

const home = resolve(import.meta.dirname, '..')

type Traffic = (url: string, keys: readonly string[], mix: Mix) => Promise<Workload>

/** Every body of the mix is requested and checked once before the load. */
const mixOf: Traffic = async (url, keys, mix) => {
  const reference = (of = path) => get(url + of, { 'x-api-key': keys[0] ?? '' })
  const receiver = receiverOf({ reference }, mix, { url, keys, hasOurEtags: true })
  await receiver.warm()
  await receiver.check()
  return receiver.workload()
}

const pathsOf =
  (paths: readonly string[], headers: Record<string, string> = {}): Traffic =>
  async (url, keys) => {
    for (const one of paths) {
      const { status } = await get(url + one, { 'x-api-key': keys[0] ?? '' })
      if (status !== 200) throw new Error(`${one} answered ${status} in place of 200`)
    }
    return { url, paths, keys, headers }
  }

type Row = {
  readonly id: string
  readonly what: string
  readonly store: 'redis' | 'embedded'
  readonly keys: number
  readonly env: Env
  readonly traffic: Traffic
}

const mixed: Env = { ...logged, ABOHAWA_WEATHER__HOURLY_HOURS: '48' }
const closing = { connection: 'close' }
const rows: readonly Row[] = [
  {
    id: 'mix',
    what: 'the mix, log on, embedded',
    store: 'embedded',
    keys: mixKeys,
    env: mixed,
    traffic: mixOf,
  },
  {
    id: 'mix-redis',
    what: 'the mix, log on, Redis',
    store: 'redis',
    keys: mixKeys,
    env: mixed,
    traffic: mixOf,
  },
  { id: 'one', what: 'one URL, Redis', store: 'redis', keys: 1, env: {}, traffic: pathsOf([path]) },
  {
    id: 'one-embedded',
    what: 'one URL, embedded',
    store: 'embedded',
    keys: 1,
    env: {},
    traffic: pathsOf([path]),
  },
  { id: 'places', what: 'all places, Redis', store: 'redis', keys: 1, env: {}, traffic: pathsOf(everyPlace) },
  {
    id: 'new',
    what: 'a new connection each, embedded',
    store: 'embedded',
    keys: 1,
    env: {},
    traffic: pathsOf([path], closing),
  },
  {
    id: 'new-redis',
    what: 'a new connection each, Redis',
    store: 'redis',
    keys: 1,
    env: {},
    traffic: pathsOf([path], closing),
  },
]

type Side = { readonly name: string; readonly folder: string }

/** A folder with an installed checkout, or a revision, which is checked out and installed beside. */
const openBase = async (scope: Scope, base: string): Promise<string> => {
  if (existsSync(base) && statSync(base).isDirectory()) return resolve(base)
  const folder = join(await mkdtemp(join(tmpdir(), 'abohawa-base-')), 'checkout')
  const git = (...args: string[]): string => execFileSync('git', ['-C', home, ...args], { encoding: 'utf8' })
  git('worktree', 'add', '--quiet', '--detach', folder, base)
  scope.teardown(() => git('worktree', 'remove', '--force', folder))
  const lockOf = (of: string): string => git('show', `${of}:package-lock.json`)
  if (lockOf(base) === lockOf('HEAD')) await symlink(join(home, 'node_modules'), join(folder, 'node_modules'))
  else execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'ignore' })
  return folder
}

type Sample = {
  readonly cpuMicros: number
  readonly redisMicros: number
  readonly p99: number
  readonly mebibytes: number
}

const parsed = () =>
  parseArgs({
    options: {
      base: { type: 'string', multiple: true },
      only: { type: 'string' },
      pairs: { type: 'string', default: '5' },
      warm: { type: 'string', default: '2' },
      seconds: { type: 'string', default: '3' },
      json: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  }).values

const usage = `Usage: npm run -s bench:builds -- --base REV [options]

Compares this checkout with another over fresh processes of both in turn, by processor time.

  --base <rev>       a revision, or the folder of an installed checkout; may be given again
  --only <row,row>   these rows alone
  --pairs <number>   processes of each for a row; default 5
  --warm <seconds>   of load on a process before it is measured; default 2
  --seconds <number> of load that is measured; default 3
  --json             the samples as JSON on standard output
  --help             this text

Example: npm run -s bench:builds -- --base HEAD~1 --only mix,one --pairs 6

Rows: ${rows.map(({ id }) => id).join(', ')}
`

const wholeOf = (name: string, text: string): number => {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`--${name} is ${text}; allowed: a whole number of at least 1`)
  return value
}

const measure = async (
  background: Awaited<ReturnType<typeof openBackground>>,
  mix: Mix,
  { row, side }: { row: Row; side: Side },
  { warm, seconds }: { warm: number; seconds: number },
  issuedOf: (side: Side, row: Row, env: Env) => Promise<readonly string[]>,
): Promise<Sample> => {
  const { folder, providerUrl, redisUrl } = background
  const own: Env =
    row.store === 'redis'
      ? { ABOHAWA_REDIS__URL: redisUrl ?? '', ABOHAWA_REDIS__PREFIX: `${basename(side.name)}-${row.id}:` }
      : { ABOHAWA_STORE__PATH: join(folder, `${basename(side.name)}-${row.id}.db`) }
  // Each its own: a revision may write the file of places in another form.
  const places = { ABOHAWA_CATALOGUE__PATH: join(side.folder, 'locations.json') }
  const env = gatewayEnv(providerUrl, { ...row.env, ...own, ...places })
  const keys = await issuedOf(side, row, env)
  const teardowns: (() => unknown)[] = []
  try {
    const process = { teardown: (fn: () => unknown) => void teardowns.push(fn) }
    const command = [join(side.folder, 'bin/abohawa'), 'serve'] as const
    const { child, urls } = await startPinned(process, folder, serverCores[0], command, ['api', 'ops'], env)
    const pid = child.pid ?? 0
    await awayFromTurn(warm + seconds + 5)
    const workload = await row.traffic(urls.api ?? '', keys, mix)
    await load(folder, workload, warm)
    const readRedis =
      row.store === 'redis' && redisUrl
        ? readerOfRedis({ teardown: fn => void teardowns.push(fn) }, redisUrl)
        : undefined
    const redisBefore = (await readRedis?.())?.cpuSeconds ?? 0
    const before = await cpuSecondsOf(pid)
    const { answers, wrong, p99 } = await load(folder, workload, seconds)
    const cpu = (await cpuSecondsOf(pid)) - before
    const redis = ((await readRedis?.())?.cpuSeconds ?? 0) - redisBefore
    if (wrong > 0) throw new Error(`${row.id}, ${side.name}: ${wrong} of ${answers} answers were wrong`)
    const { now } = await residentOf(pid)
    return { cpuMicros: (cpu * 1e6) / answers, redisMicros: (redis * 1e6) / answers, p99, mebibytes: now }
  } finally {
    for (const teardown of teardowns.reverse()) await teardown()
  }
}

const spread = (values: readonly number[], digits: number): string => {
  const inOrder = sorted(values)
  return `${median(values).toFixed(digits)} (${inOrder[0]?.toFixed(digits)} to ${inOrder.at(-1)?.toFixed(digits)})`
}

const teardowns: (() => unknown)[] = []
const scope: Scope = { teardown: fn => void teardowns.push(fn) }
try {
  const given = parsed()
  if (given.help) process.stdout.write(usage)
  else {
    const pairs = wholeOf('pairs', given.pairs)
    const times = { warm: wholeOf('warm', given.warm), seconds: wholeOf('seconds', given.seconds) }
    const wanted = given.only?.split(',') ?? rows.map(({ id }) => id)
    const unknown = wanted.find(id => !rows.some(row => row.id === id))
    if (unknown !== undefined)
      throw new Error(`--only names "${unknown}"; allowed: ${rows.map(({ id }) => id).join(', ')}`)
    if (given.base === undefined) throw new Error('--base is missing; it is a revision or a folder')
    const sides: Side[] = []
    for (const name of given.base) sides.push({ name, folder: await openBase(scope, name) })
    sides.push({ name: 'now', folder: home })
    const background = await openBackground(scope)
    const mix = await generateMix(background.folder)
    const issued = new Map<string, Promise<readonly string[]>>()
    const issuedOf = (side: Side, row: Row, env: Env): Promise<readonly string[]> => {
      const name = `${side.name} ${row.id}`
      const issue = async (): Promise<readonly string[]> => {
        const keys = (await import(join(side.folder, 'test/scenarios/keys.ts'))) as {
          issueKeys: typeof issueKeys
        }
        return (await keys.issueKeys(env, Array(row.keys).fill('enterprise'))).map(({ key }) => key)
      }
      const keys = issued.get(name) ?? issue()
      issued.set(name, keys)
      return keys
    }
    const results: object[] = []
    for (const row of rows.filter(({ id }) => wanted.includes(id))) {
      const samples = new Map(sides.map(({ name }) => [name, [] as Sample[]]))
      for (let at = 0; at < pairs; at++)
        // Who goes first changes with each pair.
        for (const side of at % 2 === 0 ? sides : sides.toReversed()) {
          process.stderr.write(`${row.id}: pair ${at + 1} of ${pairs}, ${side.name}\n`)
          samples.get(side.name)?.push(await measure(background, mix, { row, side }, times, issuedOf))
        }
      const of = (name: string, value: (one: Sample) => number): number[] =>
        samples.get(name)?.map(value) ?? []
      const cost = ({ cpuMicros }: Sample): number => cpuMicros
      const ratiosTo = (name: string): number[] =>
        of('now', cost).map((value, i) => value / (of(name, cost)[i] ?? Number.NaN))
      results.push({ row: row.id, sides: Object.fromEntries(samples) })
      if (!given.json) {
        process.stdout.write(`${row.what}\n`)
        for (const { name } of sides)
          process.stdout.write(
            `  ${name}: µs an answer ${spread(of(name, cost), 1)}, Redis ${median(of(name, one => one.redisMicros)).toFixed(1)}; ` +
              `p99 ${median(of(name, one => one.p99)).toFixed(1)} ms; ${median(of(name, one => one.mebibytes)).toFixed(0)} MiB` +
              `${name === 'now' ? '' : `; now of it, pair by pair: ${spread(ratiosTo(name), 2)}`}\n`,
          )
      }
    }
    if (given.json) process.stdout.write(`${JSON.stringify(results)}\n`)
  }
} catch (error) {
  process.stderr.write(`bench:builds: ${error instanceof Error ? error.message : error}\n${usage}`)
  process.exitCode = 1
} finally {
  for (const teardown of teardowns.reverse()) await teardown()
}
