// Without it a pipe, a device, a huge file or deep YAML could hang a command or exhaust its memory.

import { spawnSync } from 'node:child_process'
import {
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { metric } from '../scenarios/set-up.ts'
import {
  cleanEnv,
  commandServerIn,
  product,
  runProgram,
  spawnServe,
  startCommand,
  withoutPrlimit,
} from '../support/process.ts'
import { skipFileIf } from '../support/skip-file.ts'
import { sendRequest } from '../support/start-gateway.ts'
import { patienceMs, until } from '../support/until.ts'

skipFileIf(t, withoutPrlimit)

const folder = mkdtempSync(join(tmpdir(), 'abohawa-files-'))
t.teardown(() => rmSync(folder, { recursive: true }))
const at = (name: string): string => join(folder, name)
const fixture = (name: string): string => join(import.meta.dirname, '..', 'fixtures', name)
const written = (name: string, text: string): string => {
  writeFileSync(at(name), text)
  return at(name)
}

type Ended = { code: number | null; stdout: string; stderr: string }
const dataBytes = 1_536 * 1_024 * 1_024

const little = { ABOHAWA_STORE__PATH: ':memory:', ABOHAWA_SERVER__PORT: '0', ABOHAWA_OPS__PORT: '0' }

const runAlone = (args: readonly string[], env: Record<string, string> = {}): Promise<Ended> =>
  runProgram(t, ['prlimit', `--data=${dataBytes}`, product, ...args], {
    cwd: folder,
    env: cleanEnv({ ...little, ...env }),
    timeout: patienceMs,
    killSignal: 'SIGKILL',
  })

const commands = commandServerIn(t, folder, dataBytes)
const run = (args: readonly string[], env: Record<string, string> = {}): Promise<Ended> =>
  until(`${args.join(' ')} has ended`, () => commands.run(args, { ...little, ...env }))

const pipe = at('pipe')
spawnSync('mkfifo', [pipe])
const huge = written('huge', '')
truncateSync(huge, 8 * 1024 ** 3)
const good = written('good.yaml', 'quota:\n  tiers:\n    free: 3\n')
const secret = 'f00dfeedfacedeadbeef0123456789abcdef0123456789abcdef'

const kinds: readonly (readonly [path: string, reason: RegExp])[] = [
  [pipe, /it is not a regular file/],
  ['/dev/zero', /it is not a regular file/],
  [folder, /it is a (directory|folder)/],
  [huge, /it is larger than [\d,]+ bytes/],
]

// How a path is given, and whether a file of any size is right there.
type Opening = {
  args: (path: string) => string[]
  env?: (path: string) => Record<string, string>
  anySize?: true
}
/** The path is that of a setting. */
const bySetting = (env: NonNullable<Opening['env']>, args = ['config', 'check']): Opening => ({
  args: () => args,
  env,
})
const pair = { CERT: fixture('localhost.crt'), KEY: fixture('localhost.key') }
const openings: Record<string, Opening> = {
  'a config file': { args: path => ['config', 'check', path] },
  'a config file at a start': { args: path => ['serve', '--config', path] },
  'a secret': bySetting(path => ({ ABOHAWA_OPS__TOKEN__FILE: path })),
  'the catalogue': bySetting(path => ({ ABOHAWA_CATALOGUE__PATH: path })),
  'a certificate': bySetting(path => ({ ABOHAWA_SERVER__TLS__CERT: path, ABOHAWA_SERVER__TLS__KEY: path })),
  'a ticket key': bySetting(path => ({
    ABOHAWA_SERVER__TLS__CERT: pair.CERT,
    ABOHAWA_SERVER__TLS__KEY: pair.KEY,
    ABOHAWA_SERVER__TLS__TICKET_KEY: path,
  })),
  'the authority of Redis': bySetting(path => ({
    ABOHAWA_REDIS__URL: 'rediss://127.0.0.1:1',
    ABOHAWA_REDIS__CA: path,
  })),
  'the log': { ...bySetting(path => ({ ABOHAWA_LOG__FILE: path }), ['serve']), anySize: true },
  'the store': { ...bySetting(path => ({ ABOHAWA_STORE__PATH: path })), anySize: true },
  'the requests of keys': { args: path => ['keys', 'create', '--from', path] },
  'an export of a store': { args: path => ['store', 'import', '--create-store', path], anySize: true },
  'results to compare': { args: path => ['replay', 'report', path, '--out', at('page.html')] },
  traffic: { args: path => ['traffic', 'stats', path], anySize: true },
}

for (const [name, { args, env = () => ({}), anySize }] of Object.entries(openings))
  t.test(`${name}: what is no regular file is one sentence`, async t => {
    for (const [path, reason] of kinds) {
      if (anySize && path === huge) continue
      const { code, stderr } = await (path === pipe ? runAlone : run)(args(path), env(path))
      t.ok(code === 1 || code === 2, `${path}: ${code}`)
      t.match(stderr, reason, path)
      t.ok(stderr.trimEnd().split('\n').length <= 2, stderr)
      t.notMatch(stderr, /\n\s+at /, 'no stack')
    }
  })

t.test('a line without an end is refused, and not kept', async t => {
  const { code, stderr } = await run(['store', 'import', '--create-store', huge])
  t.equal(code, 1)
  t.match(stderr, /a line of it is larger than [\d,]+ bytes/)
})

t.test('a pipe that the shell hands over is read, and waited for', async t => {
  const token = `ABOHAWA_OPS__TOKEN__FILE=/dev/fd/9`
  const right = /^The configuration is right\.$/m
  for (const [line, wanted] of [
    [`(sleep 1; cat ${good}) | ${product} config check /dev/stdin`, right],
    [`${token} ${product} config check <(cat ${good}) 9< <(echo ${secret})`, right],
    [
      `${product} config check <(echo 'quotas: 1') 2>&1`,
      /quotas is not a known setting; did you mean quota\?/,
    ],
  ] as const) {
    t.match((await runProgram(t, ['bash', '-c', line], { timeout: patienceMs })).stdout, wanted, line)
  }
})

t.test('of many mistakes a hundred are named', async t => {
  const names = Array.from({ length: 5_000 }, (_, i) => `serverz${i}: 1`).join('\n')
  const tiers = Array.from({ length: 5_000 }, (_, i) => `t${i}: x`).join(', ')
  for (const many of [names, `quota:\n  tiers: {${tiers}}`]) {
    const { code, stderr } = await run(['config', 'check', written('names.yaml', many)])
    const lines = stderr.trimEnd().split('\n')
    t.strictSame([code, lines.length], [1, 101])
    t.match(lines.at(-1), /names\.yaml: there are more mistakes than these 100$/)
  }
  const { stderr } = await run(['config', 'check', written('long.yaml', `${'server'.repeat(150)}: 1\n`)])
  t.match(stderr, /is not a known setting$/m)
})

t.test('what is large, deep, or refers without an end is one sentence', async t => {
  const cases: Record<string, [text: string, reason: RegExp]> = {
    size: ['# x\n'.repeat(70_000), /it is larger than 262,144 bytes/],
    flow: ['['.repeat(20_000), /this is not a YAML config file: /],
    block: ['- '.repeat(20_000), /this is not a YAML config file: /],
    aliases: [`x-a: &a 1\nx-b: [${'*a,'.repeat(201)}]`, /Excessive alias count/],
    bytes: ['quota:\n  timeZone: \xff', /it is not text in UTF-8/],
  }
  for (const [name, [text, reason]] of Object.entries(cases)) {
    writeFileSync(at('case.yaml'), text, 'latin1')
    const { code, stderr } = await run(['config', 'check', at('case.yaml')])
    t.equal(code, 1, name)
    t.match(stderr, reason, name)
    t.equal(stderr.trimEnd().split('\n').length, 1, stderr)
  }
})

/** A gateway that polls its file as often as may be, and how often it refused or applied. */
const running = async (t: Test, text: string) => {
  const file = written('live.yaml', text)
  const { child, urls } = await startCommand(t, ['serve', '--config', file], ['ops', 'api'], {
    ...{ ...little, ABOHAWA_SERVER__DRAIN_FOR: '0s', ABOHAWA_PROVIDER__BASE_URL: 'http://127.0.0.1:1' },
    ABOHAWA_TEST_CONFIG__POLL_EVERY: '50ms',
  })
  const outcomes = (outcome: string) =>
    metric(urls.ops ?? '', `abohawa_config_reloads_total{outcome="${outcome}"}`)
  // A change while the first polls read what is there would be read twice.
  await until('what is there has been read', async () => (await outcomes('unchanged')) > 0)
  const configuration = async () => (await sendRequest(`${urls.ops}/readyz`)).body.detail.configuration
  return { file, child, outcomes, configuration }
}

t.test('a pipe in place of the configuration of a running gateway is refused, and it serves on', async t => {
  const { file, child, outcomes, configuration } = await running(t, 'log: {level: warn}\n')
  // In one step: a look between two would find no file, which is refused as well.
  symlinkSync(pipe, at('link'))
  renameSync(at('link'), file)
  await until('it is refused', async () => (await outcomes('refused')) === 1)
  t.match(await configuration(), /it is not a regular file/)
  renameSync(written('good-again.yaml', 'log: {level: error}\n'), file)
  await until('a good one is applied', async () => (await outcomes('applied')) === 1)

  await t.test('a configuration that is put back right after a signal runs', async t => {
    const of = (level: string) => `log: {level: ${level}}\n`
    renameSync(written('info.yaml', of('info')), file)
    await until('it is applied', async () => (await outcomes('applied')) === 2)
    for (let round = 1; round <= 3; round++) {
      writeFileSync(file, of('debug'))
      child.kill('SIGHUP')
      await until('the changed one is applied', async () => (await outcomes('applied')) === 2 * round + 1)
      writeFileSync(file, of('info'))
      await until('the other is applied', async () => (await outcomes('applied')) === 2 * round + 2)
    }
    t.equal(await outcomes('refused'), 1, 'the pipe alone')
  })
})

t.test('a log file that became a link is not followed at a signal', async t => {
  const victim = written('victim', 'precious')
  const log = written('log', '')
  const { child } = spawnServe(t, folder, ['ignore', 'ignore', 'inherit'], { ABOHAWA_LOG__FILE: log })
  await until('it listens', () => readFileSync(log, 'utf8').includes('"listener":"api"'))
  const kept = openSync(log, 'r')
  rmSync(log)
  symlinkSync(victim, log)
  child.kill('SIGUSR2')
  await until('it says so', () => /log file not reopened/.test(readFileSync(kept, 'utf8')))
  t.equal(readFileSync(victim, 'utf8'), 'precious')
})
