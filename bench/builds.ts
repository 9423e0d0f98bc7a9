// Two builds beside each other: `npm run bench:builds -- --base REV`. Every figure comes from fresh processes, of the base and of
// this checkout in turn. Prints ratios by processor time with their spread; writes no page.

import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { issueKeys } from '../test/scenarios/keys.ts'
import type { Env } from '../test/scenarios/set-up.ts'
import type { Teardown } from '../test/support/teardown.ts'
import { compare, measureInRounds, type Sample, type Send } from './rounds.ts'
import { median, type Options, type Progress, rangeOf } from './row.ts'
import { certificateEnv, loadHttp2 } from './rows/http2.ts'
import { mixEnv } from './rows/mix.ts'
import { everyPlace, gatewaySubject, pathsInTurn, type Traffic } from './servers/gateway.ts'
import { gatewayEnv } from './tools/gateway-process.ts'
import { generateMix, type Mix, mixKeys, mixTraffic } from './tools/mix.ts'
import { openBackground, path } from './tools/world.ts'

const home = resolve(import.meta.dirname, '..')

type BuildRow = {
  readonly id: string
  readonly what: string
  readonly store: 'redis' | 'embedded'
  readonly keys: number
  readonly env: Env
  readonly traffic: (mix: Mix) => Traffic
  readonly send?: Send
}

// Every body of the mix is requested and checked against that of the same server.
const ofMix = { keys: mixKeys, env: mixEnv, traffic: (mix: Mix) => mixTraffic(mix, { hasOurEtags: true }) }
const ofPaths = (paths: readonly string[], headers: Record<string, string> = {}) => ({
  keys: 1,
  env: {},
  traffic: () => pathsInTurn(undefined, paths, headers),
})
const closing = ofPaths([path], { connection: 'close' })
const ofHttp2 = {
  ...ofPaths([path]),
  env: certificateEnv,
  send: (...given: Parameters<Send>) => loadHttp2(...given, 0),
}

export const buildRows: readonly BuildRow[] = [
  { id: 'mix', what: 'the mix, log on, embedded', store: 'embedded', ...ofMix },
  { id: 'mix-redis', what: 'the mix, log on, Redis', store: 'redis', ...ofMix },
  { id: 'one', what: 'one URL, Redis', store: 'redis', ...ofPaths([path]) },
  { id: 'one-embedded', what: 'one URL, embedded', store: 'embedded', ...ofPaths([path]) },
  { id: 'places', what: 'all places, Redis', store: 'redis', ...ofPaths(everyPlace) },
  { id: 'new', what: 'a new connection each, embedded', store: 'embedded', ...closing },
  { id: 'new-redis', what: 'a new connection each, Redis', store: 'redis', ...closing },
  { id: 'http2', what: 'HTTP/2, embedded', store: 'embedded', ...ofHttp2 },
  { id: 'http2-redis', what: 'HTTP/2, Redis', store: 'redis', ...ofHttp2 },
]

/** A folder with an installed checkout, or a revision, which is checked out and installed beside. */
const openBase = async (scope: Teardown, base: string): Promise<string> => {
  if (existsSync(base) && statSync(base).isDirectory()) return resolve(base)
  const parent = await mkdtemp(join(tmpdir(), 'abohawa-base-'))
  scope.teardown(() => rm(parent, { recursive: true, force: true }))
  const folder = join(parent, 'checkout')
  const git = (...args: string[]): string => execFileSync('git', ['-C', home, ...args], { encoding: 'utf8' })
  git('worktree', 'add', '--quiet', '--detach', folder, base)
  scope.teardown(() => git('worktree', 'remove', '--force', folder))
  const lockOf = (of: string): string => git('show', `${of}:package-lock.json`)
  if (lockOf(base) === lockOf('HEAD')) await symlink(join(home, 'node_modules'), join(folder, 'node_modules'))
  else execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'ignore' })
  return folder
}

/** Compares this checkout with each base. @returns the text of the results, or their samples as JSON */
export const compareBuilds = async (
  scope: Teardown,
  bases: readonly string[],
  rows: readonly BuildRow[],
  { pairs, seconds, warm, json }: Pick<Options, 'pairs' | 'seconds'> & { warm: number; json: boolean },
  progress: Progress,
): Promise<string> => {
  const sides = [...bases, 'now']
  const folders: string[] = []
  for (const base of bases) folders.push(await openBase(scope, base))
  folders.push(home)
  const background = await openBackground(scope)
  const mix = await generateMix(background.folder)
  const texts: string[] = []
  const samples: object[] = []
  for (const row of rows) {
    const subjects = await Promise.all(
      folders.map(async (folder, i) => {
        const name = `side-${i}-${row.id}`
        const store: Env =
          row.store === 'redis'
            ? { ABOHAWA_REDIS__URL: background.redisUrl, ABOHAWA_REDIS__PREFIX: `${name}:` }
            : { ABOHAWA_STORE__PATH: join(background.folder, `${name}.db`) }
        // Each its own: a revision may write keys, and the file of places, in another form.
        const places = { ABOHAWA_CATALOGUE__PATH: join(folder, 'locations.json') }
        const keys = (await import(join(folder, 'test/scenarios/keys.ts'))) as { issueKeys: typeof issueKeys }
        return gatewaySubject({
          id: sides[i] ?? '',
          name: sides[i] ?? '',
          folder: background.folder,
          env: gatewayEnv(background.providerUrl, { ...row.env, ...store, ...places }),
          traffic: row.traffic(mix),
          keys: row.keys,
          program: join(folder, 'bin/abohawa'),
          issue: keys.issueKeys,
        })
      }),
    )
    const show = (text: string): void => progress(`${row.id}, ${text}`)
    const given = { rounds: pairs, seconds, warm }
    const measured = await measureInRounds(background, subjects, given, show, row.send)
    const [fault] = measured.flatMap(({ faults }) => faults)
    if (fault !== undefined) throw new Error(`${row.id}: ${fault}`)
    samples.push({
      row: row.id,
      sides: Object.fromEntries(measured.map(one => [one.subject.id, one.samples])),
    })
    texts.push(
      `${row.what}\n`,
      ...measured.map(({ subject: { id }, samples: own }) => {
        const valuesOf = (of: keyof Sample): number[] => own.map(sample => sample[of])
        const ratios =
          id === 'now'
            ? ''
            : `; now of it, pair by pair: ${compare(measured, '', ['now', id, 'cpu']).measured}`
        return (
          `  ${id}: µs an answer ${rangeOf(valuesOf('cpuMicros'), 1)}, Redis ${median(valuesOf('redisMicros')).toFixed(1)}; ` +
          `p99 ${median(valuesOf('p99')).toFixed(1)} ms; ${median(valuesOf('mebibytes')).toFixed(0)} MiB${ratios}\n`
        )
      }),
    )
  }
  return json ? `${JSON.stringify(samples)}\n` : texts.join('')
}
