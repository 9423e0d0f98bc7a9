// Target: traffic files of every format, damaged and hostile, given to the commands that read them. A command must end in time and
// memory with a documented exit code and sentences, never with a stack trace, and must connect to the given target alone.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc, { type Arbitrary } from 'fast-check'
import { demand, demandInTime } from '../fault.ts'
import { patienceMs } from '../http/conversation.ts'
import { type Ended, runLimited } from '../system/run-limited.ts'
import type { System } from '../system/system.ts'
import { batchesOf, chance, type Session, type Target, weighted } from '../target.ts'
import { countedTexts, editedTexts, type Format, faultsIn, trafficFormats } from './traffic-texts.ts'

const trafficCommands = ['import', 'stats', 'keys', 'whatif', 'replay'] as const
type Command = (typeof trafficCommands)[number]

type TrafficCase = {
  readonly format: Format
  readonly command: Command
  readonly isPacked: boolean
  readonly text: string
  /** Whether all its faulty lines are known. */
  readonly isCounted: boolean
}

const isPacked = chance(20)
const ofTraffic = fc.constantFrom(...trafficCommands)
const edited = (format: Format): Arbitrary<TrafficCase> =>
  fc
    .tuple(editedTexts(format, 4), ofTraffic, isPacked)
    .map(([text, command, isPacked]) => ({ format, command, isPacked, text, isCounted: false }))
const counted = fc.record({ counted: countedTexts, command: ofTraffic, isPacked })
const cases: Arbitrary<TrafficCase> = weighted<TrafficCase>(
  [4, counted.map(({ counted, ...more }) => ({ ...counted, ...more, isCounted: true }))],
  [5, fc.oneof(...trafficFormats.map(edited))],
)

// Preloaded: says on standard error where a command connects to.
const watch = `import net from 'node:net'
const { connect } = net.Socket.prototype
net.Socket.prototype.connect = function (...args) {
  const [first] = Array.isArray(args[0]) ? args[0] : args
  const { host = 'localhost', port, path } = first ?? {}
  process.stderr.write('CONNECTS ' + (path ?? host + ':' + port) + '\\n')
  return connect.apply(this, args)
}`

const watching = `data:text/javascript,${encodeURIComponent(watch)}`
const node = [process.execPath, '--max-old-space-size=700', '--import', watching]
const runWatched = (args: readonly string[]): Promise<Ended> =>
  runLimited([...node, 'src/main.ts', ...args], {}, patienceMs)

const argsOf = (command: Command, format: Format, file: string, gateway: string): string[] => {
  const replay = `--target ${gateway} --without-keys --any-method --as-fast-as 4 --duration 300ms --timeout 1s`
  const all = {
    import: ['traffic', 'import', file],
    stats: ['traffic', 'stats', file],
    keys: ['traffic', 'import', file, '--as', 'keys'],
    whatif: ['whatif', file, '--threads', '1'],
    replay: ['replay', file, ...replay.split(' ')],
  }
  return [...all[command], ...(command === 'replay' ? [] : ['--format', format])]
}

const checkEnd = ({ code, signal, stderr, isLate }: Ended, host: string): void => {
  demandInTime(!isLate, 'a command ends in time', `not within ${patienceMs} ms`)
  const output = stderr.replaceAll(/^CONNECTS .*\n/gm, '')
  const isDocumented = signal === null && [0, 1, 2, 99].includes(code ?? -1)
  demand(
    isDocumented,
    'a command ends with a documented exit code',
    `${code ?? signal}: ${output.slice(-200)}`,
  )
  demand(!/^ {4}at |node:internal|FATAL ERROR/m.test(output), 'a command shows no stack trace', output)
  demand(code === 0 || output !== '', 'a command that fails says why', `exit code ${code}`)
  demand(!/[^\n\x20-\x7e\u00a0-\uffff]/.test(output), 'no control reaches the terminal', output)
  for (const [, where] of stderr.matchAll(/^CONNECTS (.*)$/gm))
    demand(where === host, 'a command connects to its target alone', where)
}

const numberIn = (text: string, pattern: RegExp): number =>
  Number(pattern.exec(text)?.[1]?.replaceAll(',', '') ?? 0)

/** How many lines a command says are faulty, in its own words. */
const reportedFaults = (command: Command, { stdout, stderr }: Ended, file: string): number => {
  if (command === 'whatif') return numberIn(stdout, /([\d,]+) faulty lines? skipped/)
  if (command === 'import' || command === 'stats')
    return numberIn(stdout + stderr, /^ *faulty +([\d,]+) lines?/m)
  const sentences = stderr.split('\n').filter(text => text.includes(`${file}:`))
  return sentences.length + numberIn(stderr, /and ([\d,]+) more faulty line/)
}

/** A command does its work on a file whose faulty lines are known, and says how many they are. @throws Fault */
export const checkCount = (
  { command, format, text }: Pick<TrafficCase, 'command' | 'format' | 'text'>,
  ended: Ended,
  file: string,
): void => {
  const [faulty, reported] = [faultsIn(format, text), reportedFaults(command, ended, file)]
  demand(
    ended.code === 0,
    'faulty lines do not end a command',
    `exit code ${ended.code}: ${ended.stderr.slice(-200)}`,
  )
  const count = `${reported} reported, ${faulty} in the file`
  demand(reported === faulty, 'a command says how many lines are faulty', count)
}

/** @param run runs a command to its end */
export const openTraffic = async (
  system: Pick<System, 'gateway'>,
  run: (args: readonly string[]) => Promise<Ended> = runWatched,
): Promise<Session<TrafficCase>> => {
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-fuzz-'))
  let files = 0
  return {
    run: async given => {
      const { format, command, isPacked, isCounted, text } = given
      const { host, origin } = new URL(system.gateway().apiUrl)
      files += 1
      const file = join(folder, `${files}.json`)
      await writeFile(file, isPacked ? gzipSync(text) : text)
      const ended = await run(argsOf(command, format, file, origin)).finally(() => rm(file))
      checkEnd(ended, host)
      if (isCounted) checkCount(given, ended, file)
    },
    close: () => rm(folder, { recursive: true, force: true }),
  }
}

export const traffic: Target<TrafficCase> = {
  name: 'traffic',
  share: 1,
  checks: 'commands end in time, with a documented exit code, and connect only to their target',
  batches: batchesOf(cases, 6),
  atOnce: 2,
  setting: {},
  kindOf: ({ format, command, isCounted }) => `${command} of ${format}${isCounted ? ', counted' : ''}`,
  print: ({ format, command, isPacked, text }) =>
    `${command} of ${format}${isPacked ? ' in gzip' : ''}: ${text}`,
  open: openTraffic,
}
