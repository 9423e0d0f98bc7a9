// Fuzz target: traffic files of every format and reports of runs, damaged and hostile, given to the commands that read them.
// A command must end in time and memory with a documented exit code and sentences, never with a stack trace, and must connect
// to the given target alone. Longer than 300 lines, because each file stands beside what the commands must say of it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { cleanEnv } from '../../test/support/process.ts'
import { drawnReplay } from '../../test/support/replay-results.ts'
import { type Finding, finding, slowness } from '../finding.ts'
import type { Random } from '../random.ts'
import { underMemoryLimit } from '../system/memory-limit.ts'
import type { System } from '../system/system.ts'
import type { Session, Target } from '../target.ts'
import { mutatedReport } from './report-mutations.ts'

type Case = {
  readonly format: Format
  readonly command: Command
  readonly isPacked: boolean
  readonly text: string
  /** Whether its faulty lines are known, all of them: those in `faultyLines`. */
  readonly isCounted: boolean
}

const separator = '\n🐵🙈🙉\n'
const line = (more: string) => `{"level":"info","time":"2026-11-21T06:00:00.000Z","msg":"answered",${more}}`
const answered =
  '"method":"GET","url":"/api/v1/weather/district/3026","ms":1.5,"status":200,"keyId":"key_1","share":0.5'
export const seeds = {
  'access-log': `${line(answered)}\n${line(answered)}\n`,
  ndjson:
    '{"at":"2026-11-21T06:00:00Z","method":"GET","path":"/api/v1/weather/district/3026","key":"key_1","accepts":"gzip","status":200,"cell":"23.7,90.4","bytes":5,"ms":1}\n'.repeat(
      2,
    ),
  har: '{"log":{"version":"1.2","entries":[{"startedDateTime":"2026-11-21T06:00:00Z","time":1,"request":{"method":"GET","url":"http://x/api/v1/locations","headers":[{"name":"x","value":"y"}]},"response":{"status":200,"headers":[],"content":{"size":5}}}]}}',
  gor: `1 a1 1439818823587396305 0\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n${separator}2 a1 1439818823587396306 5\nHTTP/1.1 200 OK\r\n\r\n${separator}`,
  combined:
    '203.0.113.7 - - [21/Nov/2026:12:00:00 +0600] "GET /api/v1/weather/district/3026 HTTP/1.1" 200 1834 "-" "curl/8" 0.005\n'.repeat(
      2,
    ),
  nginx:
    '203.0.113.7 [2026-11-21T12:00:00+06:00] GET /api/v1/weather/district/3026 200 1834 0.005 127.0.0.1:8081 200 4a1c\n'.repeat(
      2,
    ),
  report: `${JSON.stringify(drawnReplay())}\n`,
} as const
export type Format = keyof typeof seeds
export const formats = Object.keys(seeds) as Format[]

// What is wrong with a line, and with nothing around it.
const faultyLines = {
  'access-log': [line('"method":null,"url":"/"'), line('"method":"GET","url":7'), '{"msg":"answered"'],
  ndjson: ['{"at":', '{"at":"yesterday","method":"GET","path":"/"}', 'null', '[]', 'x'],
  combined: ['x', '- - - [40/Foo/2026:12:00:00 +0600] "GET /x HTTP/1.1" 200 1', '"'],
  nginx: ['x', '- [yesterday] GET /x 200 1 0.001 x', '203.0.113.7'],
} as const
type LineFormat = keyof typeof faultyLines
const lineFormats = Object.keys(faultyLines) as LineFormat[]
const isFaulty = (format: Format, text: string): boolean =>
  ((faultyLines as Partial<Record<Format, readonly string[]>>)[format] ?? []).includes(text)

/** Right lines, at first one, and a known number of faulty ones among them. */
const countedLines = (random: Random, format: LineFormat): string => {
  const [right = ''] = seeds[format].split('\n')
  const count = random.pick([3, 8, 30, 2_000])
  const faulty = random.pick([0, 0.1, 0.5, 0.9])
  const lines = Array.from({ length: count }, () =>
    random.chance(faulty) ? random.pick([...faultyLines[format]]) : right,
  )
  return `${[right, ...lines].join('\n')}\n`
}

const trafficCommands = ['import', 'stats', 'keys', 'whatif', 'replay'] as const
const reportCommands = ['compare', 'report'] as const
type Command = (typeof trafficCommands)[number] | (typeof reportCommands)[number]

const many = 100_000
const blows = [
  ...[
    '\\"',
    '"',
    ' ',
    '[',
    '{"a":',
    '?',
    '1',
    '9.',
    '\\',
    '\u0000',
    '\u001b[2J',
    'é',
    separator,
    ',',
    '\r\n',
  ],
]
const values = [
  'null',
  '-1',
  '1e999',
  '"x"',
  '[null]',
  '{"toString":null}',
  '0',
  '1e308',
  '"9999-12-31T23:59:59Z"',
  'true',
  '[]',
]

/** One change of a text: of a value, a part that is repeated, cut or doubled, or a byte. */
export const mutated = (random: Random, text: string): string => {
  const at = random.between(0, Math.max(0, text.length - 1))
  const to = Math.min(text.length, at + random.between(1, 40))
  const kind = random.between(0, 6)
  if (kind === 0)
    return text.slice(0, at) + random.pick(blows).repeat(random.pick([1, 50, many])) + text.slice(at)
  if (kind === 1) return text.slice(0, at) + text.slice(to)
  if (kind === 2) return text.slice(0, at)
  if (kind === 3)
    return text.slice(0, to) + text.slice(at, to).repeat(random.pick([1, 1_000])) + text.slice(to)
  const places = [...text.slice(0, 20_000).matchAll(/:(?=["[{\d-])("[^"]*"|\[|\{|[\d.]+)|\d+(?:\.\d+)?/g)]
  const place = places[random.between(0, Math.max(0, places.length - 1))]
  if (place === undefined || kind === 4) return text.slice(0, at) + random.pick(values) + text.slice(at)
  const value = kind === 5 ? random.pick(values) : '9'.repeat(random.pick([3, 20, 400]))
  const begin = place[0].startsWith(':') ? ':' : ''
  return text.slice(0, place.index) + begin + value + text.slice(place.index + place[0].length)
}

// Preloaded: says on standard error where a command connects to.
const watch = `import net from 'node:net'
const { connect } = net.Socket.prototype
net.Socket.prototype.connect = function (...args) {
  const [first] = Array.isArray(args[0]) ? args[0] : args
  const { host = 'localhost', port, path } = first ?? {}
  process.stderr.write('CONNECTS ' + (path ?? host + ':' + port) + '\\n')
  return connect.apply(this, args)
}`

const endsWithinMs = 20_000
const maxOutput = 2_000_000

type Ended = { code: number | null; signal: string | null; stdout: string; stderr: string; isLate: boolean }

/** Runs a command to its end in a process of its own, with limited memory. */
const runWatched = async (args: readonly string[]): Promise<Ended> => {
  const node = ['--max-old-space-size=700', '--import', `data:text/javascript,${encodeURIComponent(watch)}`]
  const [program = '', ...rest] = [...underMemoryLimit, process.execPath, ...node, 'src/main.ts', ...args]
  const child = spawn(program, rest, {
    cwd: join(import.meta.dirname, '..', '..'),
    env: cleanEnv({}),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (part: Buffer) => {
    if (stdout.length < maxOutput) stdout += part
  })
  child.stderr.on('data', (part: Buffer) => {
    if (stderr.length < maxOutput) stderr += part
  })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    child.kill('SIGKILL')
  }, endsWithinMs)
  const [code, signal] = await once(child, 'close')
  clearTimeout(timer)
  return { code, signal, stdout, stderr, isLate }
}

const argsOf = (
  command: Command,
  format: Format,
  { file, gateway }: { file: string; gateway: string },
): string[] => {
  const named = ['--format', format]
  const replay = [
    '--target',
    gateway,
    '--without-keys',
    '--any-method',
    '--as-fast-as',
    '4',
    '--duration',
    '300ms',
  ]
  return {
    import: ['traffic', 'import', file, ...named],
    stats: ['traffic', 'stats', file, ...named],
    keys: ['traffic', 'import', file, '--as', 'keys', ...named],
    whatif: ['whatif', file, '--threads', '1', ...named],
    replay: ['replay', file, ...replay, '--timeout', '1s'],
    compare: ['replay', 'report', file, file, '--json'],
    report: ['replay', 'report', file],
  }[command]
}

const rulesOf = ({ code, signal, stderr, isLate }: Ended, gateway: string): Finding[] => {
  if (isLate) return [slowness('a command ends in time', `not within ${endsWithinMs} ms`)]
  const output = stderr.replaceAll(/^CONNECTS .*\n/gm, '')
  const found: Finding[] = []
  if (signal !== null || ![0, 1, 2, 99].includes(code ?? -1))
    found.push(
      finding('a command ends with a documented exit code', `${code ?? signal}: ${output.slice(-200)}`),
    )
  if (/^ {4}at |node:internal|FATAL ERROR/m.test(output))
    found.push(finding('a command shows no stack trace', output.slice(0, 300)))
  if (code !== 0 && output === '') found.push(finding('a command that fails says why', `exit code ${code}`))
  if (/[^\n\x20-\x7e\u00a0-\uffff]/.test(output))
    found.push(finding('no control reaches the terminal', output.slice(0, 200)))
  for (const [, where = ''] of stderr.matchAll(/^CONNECTS (.*)$/gm))
    if (where !== new URL(gateway).host) found.push(finding('a command connects to its target alone', where))
  return found
}

const numberIn = (text: string, pattern: RegExp): number =>
  Number(pattern.exec(text)?.[1]?.replaceAll(',', '') ?? 0)

/** How many lines a command says are faulty, in its own words. */
const reportedFaults = (command: Command, { stdout, stderr }: Ended, file: string): number => {
  const sentences = stderr.split('\n').filter(text => text.includes(`${file}:`))
  if (command === 'keys' || command === 'replay')
    return sentences.length + numberIn(stderr, /and ([\d,]+) more faulty line/)
  if (command === 'whatif') return numberIn(stdout, /([\d,]+) faulty lines? left out/)
  return numberIn(stdout + stderr, /^ *faulty +([\d,]+) lines?/m)
}

/** Of a file whose faulty lines are known: the command does its work, and says how many they are. */
export const countRules = (
  given: Pick<Case, 'command' | 'format' | 'text'>,
  ended: Ended,
  file: string,
): Finding[] => {
  const faulty = given.text.split('\n').filter(text => isFaulty(given.format, text)).length
  const reported = reportedFaults(given.command, ended, file)
  const found: Finding[] = []
  if (ended.code !== 0)
    found.push(
      finding('faulty lines do not end a command', `exit code ${ended.code}: ${ended.stderr.slice(-200)}`),
    )
  else if (reported !== faulty)
    found.push(
      finding('a command says how many lines are faulty', `${reported} reported, ${faulty} in the file`),
    )
  return found
}

/** @param runOne runs a command to its end */
export const openTraffic = async (
  system: Pick<System, 'gateway'>,
  runOne: (args: readonly string[]) => Promise<Ended>,
): Promise<Session<Case>> => {
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-fuzz-'))
  let files = 0
  return {
    run: async given => {
      const { format, command, isPacked, isCounted, text } = given
      const { host, port } = system.gateway().api
      const gateway = `http://${host}:${port}`
      files += 1
      const file = join(folder, `${files}.json`)
      await writeFile(file, isPacked && format !== 'report' ? gzipSync(text) : text)
      const ended = await runOne(argsOf(command, format, { file, gateway }))
      await rm(file)
      const found = rulesOf(ended, gateway)
      return isCounted && found.length === 0 ? countRules(given, ended, file) : found
    },
    close: () => rm(folder, { recursive: true, force: true }),
  }
}

export const traffic: Target<Case> = {
  name: 'traffic',
  checks:
    'commands on traffic files and reports end in time and memory, with a documented exit code and sentences, say how many lines are faulty, and connect to their target alone',
  share: 1,
  batch: 4,
  atOnce: 2,
  setting: {},
  generate: random => {
    const isPacked = random.chance(0.2)
    if (random.chance(0.25)) {
      const format = random.pick(lineFormats)
      const command = random.pick(trafficCommands)
      return { format, command, isPacked, isCounted: true, text: countedLines(random, format) }
    }
    const format = random.pick(formats)
    let text: string = seeds[format]
    for (let i = random.between(1, 4); i > 0; i--)
      text = format === 'report' && random.chance(0.5) ? mutatedReport(random, text) : mutated(random, text)
    const command = format === 'report' ? random.pick(reportCommands) : random.pick(trafficCommands)
    return { format, command, isPacked, isCounted: false, text: text.slice(0, 3_000_000) }
  },
  shapeOf: ({ format, command, isCounted }) => `${command} of ${format}${isCounted ? ', counted' : ''}`,
  isAlone: () => false,
  *smaller({ text, ...rest }) {
    if (rest.isCounted) {
      // Where the lines after the first begin: cut out of the text, thousands of lines are not joined for each.
      const starts = [...text.matchAll(/\n/g)].map(({ index }) => index + 1)
      for (let size = starts.length >> 1; size >= 1; size >>= 1)
        for (let at = 0; at + size < starts.length; at += size)
          yield { ...rest, text: text.slice(0, starts[at]) + text.slice(starts[at + size]) }
      return
    }
    for (let size = text.length >> 1; size >= Math.max(1, text.length >> 4); size >>= 1)
      for (let at = 0; at < text.length; at += size)
        yield { ...rest, text: text.slice(0, at) + text.slice(at + size) }
  },
  print: ({ format, command, isPacked, text }) =>
    `${command} of ${format}${isPacked ? ' in gzip' : ''}: ${text}`,
  open: system => openTraffic(system, runWatched),
}
